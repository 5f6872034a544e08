# Everything runs from .venv, which `make install` (or any other target) sets up by itself.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: install demo test test-all check wheel docs results performance clean
install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: $(STAMP)
	$(BIN)/unmask demo

test: $(STAMP)
	$(BIN)/pytest -n 2 -m 'not slow'

test-all: $(STAMP)
	$(BIN)/pytest -n 2 -m slow

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/pyright

# The built wheel, alone in a venv of its own: what a user gets.
wheel: $(STAMP)
	rm -rf build/wheel && mkdir -p build/wheel
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps -w build/wheel .
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/bin/pip install --quiet --disable-pip-version-check -c constraints.txt build/wheel/*.whl
	cd build/wheel && venv/bin/unmask demo --problems 1 && venv/bin/unmask list decoders

docs: $(STAMP)
	$(BIN)/python -m unmask.cli.reference

results: $(STAMP)
	$(BIN)/python -m tools.results_page

performance: $(STAMP)
	$(BIN)/python -m unmask.report.performance

clean:
	rm -rf .venv build dist
