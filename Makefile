# Two commands do everything: `make demo` and `make test`. Each sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test every check quick soak lint docs browser clean
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	@$(BIN)/homing demo

# Lint and types beside the tests: they take one core for most of a minute when nothing is cached.
test: $(VENV)/.dev browser
	@$(MAKE) --no-print-directory -j2 lint every

every: $(VENV)/.dev
	$(BIN)/pytest -n auto --dist worksteal

# While one works: lint and types beside every test that is not slow.
check: $(VENV)/.dev
	@$(MAKE) --no-print-directory -j2 lint quick

quick: $(VENV)/.dev
	$(BIN)/pytest -n auto --dist worksteal -m "not slow"

# For hours: every property, kill and fuzz in full, every process in an interpreter of its own.
soak: lint browser
	HOMING_SOAK=1 HOMING_SOAK_ROUNDS=400 $(BIN)/pytest -n auto --dist worksteal

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The page is tested in a real browser. A container that has none gets Debian's; elsewhere those tests are skipped.
browser:
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit; done; \
	{ [ "$$(id -u)" = 0 ] && apt-get update -qq \
		&& DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends \
			chromium fonts-noto-cjk fonts-noto-color-emoji >/dev/null; } \
	|| echo "No Chromium here: the tests of the page are skipped. Install it to run them too."

docs: $(VENV)/.dev
	$(BIN)/python tools/reference.py
	$(BIN)/python tools/benchmarks.py
	$(BIN)/python tools/typescript.py

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Homing needs Python 3.11 or newer: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --editable '.[all,dev]'
	@touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
