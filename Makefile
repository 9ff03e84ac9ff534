# Two commands do everything on a fresh machine with Python 3.11+: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SARIF_SCHEMA := $(VENV)/sarif-2.1.0.json
INPUTS ?= 1000000
CLIENTS := $(VENV)/node/ready
# What tests need from npm; without npm those tests are skipped, in CI npm is always there.
NODE_MATERIAL := $(if $(shell command -v npm),$(SARIF_SCHEMA) $(CLIENTS))

.PHONY: demo test thorough lint bench fuzz docs

demo: $(VENV)/installed  ## the main job on a copy of metadata-samples
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash docs/demo.sh

test: $(VENV)/ready $(NODE_MATERIAL) lint  ## everything that must hold: lint, types, imports, tests
	$(BIN)/pytest --cov --cov-report=term

thorough: $(VENV)/ready  ## libxml2, xmlschema and the reader hold 10,000 generated documents of each type to the same verdict: minutes
	EVALMETA_EXAMPLES=10000 $(BIN)/pytest --no-cov -n 2 tests/validation/test_agreement.py -k same_verdict

lint: $(VENV)/ready
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/ready $(VENV)/peers/ready  ## ratios, each measured in one run
	PYTHONPATH=tests $(BIN)/python benchmarks/run.py

fuzz: $(VENV)/ready  ## INPUTS damaged inputs for everything that reads what strangers send; exits 1 on an error nobody promised
	PYTHONPATH=tests $(BIN)/python -m fuzz.run $(INPUTS)

docs: $(VENV)/ready  ## writes the generated parts of the documentation again
	$(BIN)/python docs/generate.py

$(VENV)/pip:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/installed: $(VENV)/pip pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

# What we are measured against has an environment of its own.
$(VENV)/peers/ready: benchmarks/peers/requirements.txt
	$(PYTHON) -m venv $(VENV)/peers
	$(VENV)/peers/bin/python -m pip install --quiet --requirement $<
	@touch $@

$(VENV)/ready: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable '.[server]' --group dev
	@touch $@

$(SARIF_SCHEMA): $(VENV)/pip
	cd $(VENV) && npm pack --silent @microsoft/jest-sarif@1.0.0-beta.0 >/dev/null
	tar -xzOf $(VENV)/microsoft-jest-sarif-1.0.0-beta.0.tgz package/lib/schemas/sarif-2.1.0-rtm.5.json >$@

# Clients written elsewhere and the Node that they need; nothing of theirs runs while they are installed.
$(CLIENTS): tests/clients_elsewhere/clients/package.json tests/clients_elsewhere/clients/package-lock.json | $(VENV)/pip
	@mkdir -p $(@D)
	cp $^ $(@D)
	npm ci --prefix $(@D) --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
	@touch $@
