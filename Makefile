# Everything runs in .venv, which every target sets up if needed.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check

.PHONY: install demo test test-all check wheel lock audit docs results performance site clean
install: $(STAMP)

# First what is locked, by hash and whole; then torch, whose build depends on the machine, and this package itself.
$(STAMP): pyproject.toml constraints.txt requirements.lock
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(INSTALL) --no-deps --require-hashes -r requirements.lock
	$(INSTALL) --no-build-isolation -c constraints.txt -e '.[dev]'
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
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w build/wheel .
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/bin/pip install --quiet --disable-pip-version-check -c constraints.txt build/wheel/*.whl
	cd build/wheel && venv/bin/unmask demo --problems 1 && venv/bin/unmask list decoders

# Write requirements.lock again after a change of pyproject.toml; `make lock UPGRADE=--upgrade` takes newer versions.
lock: $(STAMP)
	$(INSTALL) uv
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tools.lock $(UPGRADE)

# Known vulnerabilities of what is locked; asks a database on the network.
audit: $(STAMP)
	$(PYTHON) -m venv build/audit
	build/audit/bin/pip install --quiet --disable-pip-version-check pip-audit
	build/audit/bin/pip-audit --disable-pip --require-hashes -r requirements.lock

docs: $(STAMP)
	$(BIN)/python -m tools.reference
	$(BIN)/python -m tools.layers

results: $(STAMP)
	$(BIN)/python -m tools.results_page
	$(BIN)/python -m tools.pictures
	$(BIN)/python -m tools.animation

# The documentation as a site, into build/site; a link that leads nowhere fails.
site: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

performance: $(STAMP)
	$(BIN)/python -m tools.performance

clean:
	rm -rf .venv build dist
