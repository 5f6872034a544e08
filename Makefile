# Everything runs in .venv, which every target sets up if needed.
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

# Install the built wheel in a fresh venv, as a user would.
wheel: $(STAMP)
	rm -rf build/wheel && mkdir -p build/wheel
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps -w build/wheel .
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/bin/pip install --quiet --disable-pip-version-check -c constraints.txt build/wheel/*.whl
	cd build/wheel && venv/bin/unmask demo --problems 1 && venv/bin/unmask list decoders

docs: $(STAMP)
	$(BIN)/python -m tools.reference

results: $(STAMP)
	$(BIN)/python -m tools.results_page

performance: $(STAMP)
	$(BIN)/python -m tools.performance

clean:
	rm -rf .venv build dist
