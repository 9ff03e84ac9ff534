# Two commands are enough on a fresh machine with Python 3.11 or newer: `make demo` and `make test`.
# `make thorough` runs what takes longer; with npm on the path it also tests with clients from npm, with Chromium in a browser,
# and with Postgres and PgBouncer on a shared store.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SARIF_SCHEMA := $(VENV)/sarif-2.1.0.json
CI_SCHEMAS := $(VENV)/ci-schemas
INPUTS ?= 1000000
MINUTES ?= 30
TIMES ?= 10
CLIENTS := $(VENV)/node/ready
PYTHON_CLIENTS := $(VENV)/python-clients/ready
PYTHON_TOOLS := $(VENV)/python-tools/ready
MLFLOW := $(VENV)/mlflow/ready
S3_SERVER := $(VENV)/s3-server/ready
RAY := $(VENV)/ray/ready
ADK := $(VENV)/adk/ready
UV := $(VENV)/uv/ready
# The frameworks whose agents are asked as they are. Each has an environment of its own.
FRAMEWORKS := $(basename $(notdir $(wildcard tests/frameworks/*.txt)))
RELEASE := $(VENV)/release
# The tests marked npm need these files. Without npm, `make thorough` leaves those tests out; CI always has npm.
NPM := $(shell command -v npm)
PROMPTFOO := $(VENV)/promptfoo/ready
NODE_MATERIAL := $(if $(NPM),$(SARIF_SCHEMA) $(CLIENTS) $(PROMPTFOO))
NOT_NPM := $(if $(NPM),,and not npm)
# Likewise for Chromium and the tests marked browser.
NOT_BROWSER := $(if $(shell command -v chromium),,and not browser)
# Likewise for Postgres, of which distributions have only a wrapper on the path, and the tests marked postgres.
POSTGRES := $(wildcard /usr/lib/postgresql/*/bin/postgres)$(shell command -v postgres)
POOL := $(wildcard /usr/sbin/pgbouncer)$(shell command -v pgbouncer)
NOT_POSTGRES := $(if $(and $(POSTGRES),$(POOL)),,and not postgres)
# What tests need that `make test` leaves out.
ENVIRONMENTS := $(addprefix $(VENV)/,ready peers/ready) $(PYTHON_CLIENTS) $(PYTHON_TOOLS) $(ADK) $(MLFLOW) $(S3_SERVER) $(RAY) $(CI_SCHEMAS) $(NODE_MATERIAL)
# What a shared store must do as the file of SQLite does it.
ON_POSTGRES := tests/store tests/org tests/viewer tests/api/runs tests/api/judging tests/api/evaluating
# One process more than cores, as many tests wait for other programs. A single file or test runs without this, in one
# process: starting workers takes longer.
PYTEST := $(BIN)/pytest -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) --dist worksteal
# CI has run the default tests before the thorough ones, and does not run them twice.
THOROUGH := $(if $(IN_CI),(slow or npm or browser or postgres or ray),(slow or not slow))
# Tests that failed, one after the other: one that only a busy machine made fail passes now, and both outcomes are printed.
AGAIN := $(BIN)/pytest --last-failed --last-failed-no-failures none
# Tests start hundreds of programs: each would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-again coverage environments test-browser test-frameworks thorough thorough-tests more-examples thorough-long faults versions lint bench bench-scale fuzz docs screenshots dist sbom audit constraints image

demo: $(VENV)/installed  ## the typical workflow on a copy of metadata-samples
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash docs/demo.sh

test: lint  ## lint, types, imports and the default tests: at most 4 minutes on 2 cores
	$(PYTEST) $(if $(IN_CI),--cov --cov-report= --cov-fail-under=0)

coverage: $(VENV)/ready  ## what the last `make test IN_CI=yes` covered, with the lines that it did not
	$(BIN)/coverage report

test-again: $(VENV)/ready  ## run the tests that failed last once more, one after the other
	$(AGAIN)

environments: $(ENVIRONMENTS) $(FRAMEWORKS:%=$(VENV)/frameworks/%/ready)  ## what `make thorough` and `make test-frameworks` install first

test-browser: $(VENV)/ready $(if $(NPM),$(CLIENTS))  ## use the viewer, HTML reports and the documentation site in Chromium (apt-get install chromium)
	$(BIN)/pytest -m "browser $(NOT_NPM)"

# One of them: make test-framework-langgraph
test-frameworks: $(addprefix test-framework-,$(FRAMEWORKS))  ## ask agents of frameworks: the newest versions, with fake models

test-framework-%: $(VENV)/frameworks/%/ready
	cd tests/frameworks && $(CURDIR)/$(VENV)/frameworks/$*/bin/python -m pytest -q -c pytest.ini $*_agents.py

thorough: thorough-tests more-examples  ## what `make test` leaves out: 30 to 45 minutes on 2 cores

# All tests, in CI without those of broken code; those of the store and what uses it on Postgres.
thorough-tests: $(ENVIRONMENTS)
	$(PYTEST) -m "$(THOROUGH) $(NOT_NPM) $(NOT_BROWSER) $(NOT_POSTGRES)" $(if $(IN_CI),--ignore=tests/breaks) || \
		$(AGAIN) -m "$(THOROUGH) $(NOT_NPM) $(NOT_BROWSER) $(NOT_POSTGRES)"
	$(if $(NOT_POSTGRES),,EVALMETA_TESTS_ON=pooled $(PYTEST) $(ON_POSTGRES) || EVALMETA_TESTS_ON=pooled $(AGAIN) $(ON_POSTGRES))

# In CI, broken code, which tests must notice. Then the store directly on Postgres; as many killed suites and examples of
# property tests as there are; the three validators on 10,000 documents of each type; damaged inputs for all that reads
# untrusted input.
more-examples: $(VENV)/ready
	$(if $(IN_CI),$(PYTEST) -m slow tests/breaks || $(AGAIN) -m slow tests/breaks)
	$(if $(NOT_POSTGRES),,EVALMETA_TESTS_ON=direct $(PYTEST) tests/store tests/org || EVALMETA_TESTS_ON=direct $(AGAIN) tests/store tests/org)
	EVALMETA_EXAMPLES=250 $(PYTEST) -m "hypothesis $(NOT_NPM) $(NOT_POSTGRES)" || \
		EVALMETA_EXAMPLES=250 $(AGAIN) -m "hypothesis $(NOT_NPM) $(NOT_POSTGRES)"
	EVALMETA_EXAMPLES=250 $(BIN)/pytest -m slow tests/cli/test_suites_killed.py
	EVALMETA_EXAMPLES=10000 $(PYTEST) -m hypothesis tests/validation/test_agreement.py -k same_verdict
	$(MAKE) fuzz INPUTS=100000

# At least 2,000 deployments and 500 runs. It fails if something was lost, or the server's memory grew by more than 10 %.
thorough-long: $(VENV)/ready  ## several clients use a served org for MINUTES, while workers are killed
	PYTHONPATH=tests $(BIN)/python -m soak.run $(MINUTES) 2000 500

# FAULTS selects some by words of their names, such as node or Ray.
faults: $(VENV)/ready $(RAY)  ## TIMES runs of 12,000 cases each, while Postgres, the network, the command or a node of Ray fails: a minute each
	PYTHONPATH=tests $(BIN)/python -m faults.run $(TIMES) 12000 60 $(FAULTS)

# PYTHONS selects some of 3.11 3.12 3.13 3.14 lowest; `lowest` has the oldest versions of the dependencies.
versions: $(RELEASE)/ready  ## `make demo` and the default tests with each Python that can be had: 5 minutes each on 2 cores
	.ci/versions $(PYTHONS)

lint: $(VENV)/ready
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports & imports=$$!; $(BIN)/mypy && wait $$imports

# ROWS selects rows by words of their names, or sections: public, engine, other.
# `make bench ROWS=--list` prints the names; `make bench ROWS=--update-docs` writes docs/performance.md.
bench: $(VENV)/ready $(VENV)/peers/ready  ## performance ratios, each measured in one run, with their goals
	PYTHONPATH=tests $(BIN)/python benchmarks/run.py $(ROWS)

bench-scale: $(VENV)/ready $(VENV)/peers/ready $(RAY)  ## the same for a million results, stores in Postgres and clusters of Ray: 15 minutes
	$(MAKE) bench ROWS=scale

fuzz: $(VENV)/ready  ## INPUTS damaged inputs for all that reads untrusted input; exits with 1 on an undocumented error
	PYTHONPATH=tests $(BIN)/python -m fuzz.run $(INPUTS)

screenshots: $(VENV)/ready  ## draw the viewer's pages for docs/viewing.md in Chromium
	$(BIN)/python docs/screenshots.py

docs: $(VENV)/ready  ## regenerate the generated parts of the documentation, build the site in build/docs, check its links
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/build_site.py

dist: $(RELEASE)/ready  ## the sdist and the wheel in dist/, checked by twine
	rm -rf dist
	$(RELEASE)/bin/python -m build
	$(RELEASE)/bin/twine check --strict dist/*

sbom: dist  ## build/evalmeta.cdx.json: what an installation with all extras contains (CycloneDX)
	rm -rf build/sbom
	$(PYTHON) -m venv --without-pip build/sbom
	$(RELEASE)/bin/python -m pip --python build/sbom install --quiet --require-hashes --requirement constraints.txt
	$(RELEASE)/bin/python -m pip --python build/sbom install --quiet --no-deps dist/*.whl
	sed "s/^dynamic = .*/version = \"$$(build/sbom/bin/python -c 'import evalmeta; print(evalmeta.__version__)')\"/" pyproject.toml >build/pyproject.toml
	$(RELEASE)/bin/cyclonedx-py environment build/sbom --pyproject build/pyproject.toml --mc-type library \
		--output-reproducible --output-format JSON --output-file build/evalmeta.cdx.json

audit: $(RELEASE)/ready  ## check the versions of constraints.txt for known vulnerabilities; fails if no advisories can be had
	$(RELEASE)/bin/pip-audit --strict --disable-pip --no-deps --requirement constraints.txt

constraints: $(RELEASE)/ready  ## constraints.txt: the newest versions of all dependencies, with hashes
	$(RELEASE)/bin/uv pip compile pyproject.toml --quiet --upgrade --universal --python-version 3.11 --all-extras \
		--generate-hashes --no-annotate --custom-compile-command "make constraints" --output-file constraints.txt

image: dist  ## a container image named evalmeta; needs docker
	docker build --tag evalmeta .
	docker run --rm evalmeta --version

$(RELEASE)/ready: pyproject.toml
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(RELEASE)/bin/python -m pip install --quiet --group release
	@touch $@

$(VENV)/pip:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/installed: $(VENV)/pip pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

# The programs that benchmarks compare with have an environment of their own.
$(VENV)/peers/ready: benchmarks/peers/requirements.txt
	$(PYTHON) -m venv $(VENV)/peers
	$(VENV)/peers/bin/python -m pip install --quiet --requirement $<
	@touch $@

# So have clients of Salesforce orgs that are written in Python. The first lines of the file say how to update it.
$(PYTHON_CLIENTS): tests/python_clients/requirements.txt
	$(PYTHON) -m venv $(VENV)/python-clients
	$(VENV)/python-clients/bin/python -m pip install --quiet --requirement $<
	@touch $@

# So have notebooks, type checkers and plugins of pytest, with which users of evalmeta work.
$(PYTHON_TOOLS): tests/python_tools/requirements.txt
	$(PYTHON) -m venv $(VENV)/python-tools
	$(VENV)/python-tools/bin/python -m pip install --quiet --requirement $< --editable .
	@touch $@

# So has google-adk, whose verdicts are compared.
$(ADK): tests/journeys/adk/requirements.txt
	$(PYTHON) -m venv $(VENV)/adk
	$(VENV)/adk/bin/python -m pip install --quiet --requirement $< --editable .
	@touch $@

# So has MLflow, whose results are compared, and whose objects evalmeta runs.
$(MLFLOW): tests/journeys/mlflow_requirements.txt
	$(PYTHON) -m venv $(VENV)/mlflow
	$(VENV)/mlflow/bin/python -m pip install --quiet --requirement $< --editable .
	@touch $@

# So has a server that answers as S3 does, for archives.
$(S3_SERVER): tests/s3_server/requirements.txt
	$(PYTHON) -m venv $(VENV)/s3-server
	$(VENV)/s3-server/bin/python -m pip install --quiet --requirement $<
	@touch $@

$(UV):
	$(PYTHON) -m venv $(VENV)/uv
	$(VENV)/uv/bin/python -m pip install --quiet uv
	@touch $@

$(VENV)/frameworks/%/ready: tests/frameworks/%.txt pyproject.toml | $(UV)
	$(VENV)/uv/bin/uv venv --quiet --clear --python $(PYTHON) $(VENV)/frameworks/$*
	$(VENV)/uv/bin/uv pip install --quiet --python $(VENV)/frameworks/$*/bin/python --editable . pytest pytest-timeout --requirement $<
	@touch $@

.PRECIOUS: $(VENV)/frameworks/%/ready

# Ray takes 400 MB, and few who work on evalmeta need it.
$(RAY): pyproject.toml
	$(PYTHON) -m venv $(VENV)/ray
	$(VENV)/ray/bin/python -m pip install --quiet --editable '.[ray,postgres]'
	@touch $@

$(VENV)/ready: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $@

$(SARIF_SCHEMA): $(VENV)/pip
	cd $(VENV) && npm pack --silent @microsoft/jest-sarif@1.0.0-beta.0 >/dev/null
	tar -xzOf $(VENV)/microsoft-jest-sarif-1.0.0-beta.0.tgz package/lib/schemas/sarif-2.1.0-rtm.5.json >$@

# The schemas of GitHub's actions and workflows, GitLab's and Azure's pipelines, as a package publishes them.
$(CI_SCHEMAS): $(VENV)/pip
	$(BIN)/python -m pip install --quiet --no-deps --upgrade --target $(VENV)/check-jsonschema check-jsonschema==0.39.0
	@rm -rf $@
	cp -R $(VENV)/check-jsonschema/check_jsonschema/builtin_schemas/vendor $@
	@touch $@

# promptfoo, whose verdicts on arguments are compared. None of the scripts of its packages runs during installation.
$(PROMPTFOO): tests/argument_peers/package.json
	@mkdir -p $(@D)
	cp $< $(@D)
	npm install --prefix $(@D) --ignore-scripts --omit=optional --no-audit --no-fund --loglevel=error >/dev/null
	@touch $@

# Clients that others wrote, and the Node.js that they need. None of their scripts runs during installation.
$(CLIENTS): tests/clients_elsewhere/clients/package.json tests/clients_elsewhere/clients/package-lock.json | $(VENV)/pip
	@mkdir -p $(@D)
	cp $^ $(@D)
	npm ci --prefix $(@D) --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
	@touch $@
