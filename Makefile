# Two commands do everything on a fresh machine with Python 3.11+: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint bench docs

demo: $(VENV)/installed  ## the main job on a copy of metadata-samples
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash docs/demo.sh

test: $(VENV)/ready lint  ## everything that must hold: lint, types, imports, tests
	$(BIN)/pytest --cov --cov-report=term

lint: $(VENV)/ready
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/ready  ## ratios, each measured in one run
	$(BIN)/python benchmarks/run.py

docs: $(VENV)/ready  ## writes the generated parts of the documentation again
	$(BIN)/python docs/generate.py

$(VENV)/pip:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/installed: $(VENV)/pip pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/ready: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@
