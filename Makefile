# The commands of Punctual's developers; `make help` lists them.
# PY=python3.12 chooses the Python, ARGS="..." goes to the command that runs.

V := .venv
P := .venv-peers
# As modules: the scripts in bin/ hold absolute paths, which break when the checkout moves.
RUN := $(V)/bin/python
PIP := $(RUN) -m pip --disable-pip-version-check --no-input

# Does .venv hold a suitable Python, of the version asked for if one was, and is it whole (pip comes last)?
VERSION := 'import sys; print(sys.version_info[:2])'
IS_FIT := $(shell { $(RUN) -c 'import pip' && .ci/find-python $(RUN) && { [ -z '$(PY)' ] || \
              [ "$$($(RUN) -c $(VERSION))" = "$$($(PY) -c $(VERSION))" ]; }; } >/dev/null 2>&1 && echo yes)

.DEFAULT_GOAL := help
# Where it is set, each process would compile all of its modules anew: seconds, for every one that is started.
unexport PYTHONDONTWRITEBYTECODE
export FULL
# Two installations into one .venv would spoil it.
.NOTPARALLEL:
.PHONY: help demo test test-pooler test-distributed fuzz peers schema stop check format lint lock clean rebuild

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' Makefile

demo: $(V)/.run ## run everything with sample data; ARGS="--port 3001 --workers 4"
	@exec $(RUN) manage.py demo $(ARGS)

test: $(V)/.dev ## run the tests; ARGS="tests/unit -k name", FULL=1 at full size
	@exec $(RUN) -m pytest -q -n 2 --dist worksteal $(ARGS)

# Those whose processes have the tests' own database; of the others the pooler would see nothing.
POOLED := breaker database_faults django_tasks exactly_once isolation keys_and_rates leader limits misfire pooler \
          schedules secrets several shutdown storm time_limits worker_leases

test-pooler: $(V)/.dev ## run the tests of processes behind PgBouncer (Debian's package pgbouncer)
	@APP_TEST_POOLER=1 $(RUN) -m pytest -q -n 2 --dist worksteal $(or $(ARGS),$(POOLED:%=tests/process/test_%.py))

test-distributed: $(V)/.dev ## run the tests with the tenant tables hash-partitioned by project; ARGS as for test
	@APP_TEST_DISTRIBUTED=1 $(RUN) -m pytest -q -n 2 --dist worksteal $(ARGS)

fuzz: $(V)/.dev ## send made-up requests to a real server for a while; SECONDS=600
	@FUZZ_SECONDS=$(or $(SECONDS),600) $(RUN) -m pytest -q tests/fuzz

peers: $(P)/.done ## install what `manage.py bench peers` compares with, into a .venv of its own

schema: $(V)/.dev ## write the API's schema to docs/openapi.json
	@$(RUN) manage.py openapi > docs/.openapi.new && mv docs/.openapi.new docs/openapi.json

stop: ## stop a demo that is running, and the databases it or the tests left
	@[ ! -e $(V)/.run ] || $(RUN) manage.py demo --stop
	@python=$$(.ci/find-python $(PY)) && $$python -m scheduler_project.lib.embedded_pg stop

check: ## all that CI does before the tests
	@.ci/run check

format: $(V)/.dev ## format the code and mend what can be mended
	@$(RUN) -m ruff check -q --fix-only .
	@$(RUN) -m ruff format .

lint: $(V)/.dev ## look for faults in the code
	@$(RUN) -m ruff check .

lock: ## pin requirements*.in anew; ARGS=--upgrade takes newer versions
	@python=$$(.ci/find-python $(PY)) && rm -rf .tools && $$python -m venv .tools
	@.tools/bin/python -m pip --disable-pip-version-check install -q uv
	@for name in requirements requirements-dev requirements-peers; do \
	    .tools/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes \
	        --no-emit-index-url --no-header --no-annotate $(ARGS) $$name.in -o $$name.txt || exit 1; \
	done
	@rm -rf .tools

clean: stop ## remove what was installed and built; the demo's data stays
	@rm -rf $(V) $(P) .tools build .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .demo.lock
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# -- the environment ------------------------------------------------------------------------------------------
# A stamp is written after its installation alone: a failed one is taken up again, a finished one is reused.

$(V)/.run: requirements.txt $(if $(IS_FIT),,rebuild)
	$(call install,-r requirements.txt)
	@touch $@

# Both lists at once, so that the hashes cover what they share.
$(V)/.dev: requirements.txt requirements-dev.txt $(if $(IS_FIT),,rebuild)
	$(call install,-r requirements.txt -r requirements-dev.txt)
	@touch $(V)/.run $@

$(P)/.done: requirements-peers.txt $(V)/.run
	@echo 'Installing -r requirements-peers.txt into $(P) …'
	@rm -rf $(P) && $(RUN) -m venv $(P)
	@$(P)/bin/python -m pip --disable-pip-version-check --no-input install -q --require-hashes -r requirements-peers.txt
	@touch $@

define install
	@echo 'Installing $(filter-out -r,$(1)) into $(V) …'
	@$(PIP) install -q --require-hashes $(1) || \
	    { echo 'The installation failed, see above. The same command takes it up again.' >&2; exit 1; }
endef

rebuild:
	@[ -w . ] || { echo 'This folder is read-only, and Punctual installs into $(V) in it: copy it to a folder of yours.' >&2; exit 1; }
	@python=$$(.ci/find-python $(PY)) || exit 1; \
	if [ -e $(V) ]; then \
	    $$python -m scheduler_project.lib.embedded_pg stop >/dev/null 2>&1; \
	    echo 'Rebuilding $(V): its Python is gone or not the one to use.'; \
	fi; \
	rm -rf $(V) && $$python -m venv $(V)
