# cockpit. Needs make, git and Python 3.11 or newer; everything else is installed into .venv.
#
#   make demo       the cockpit on a sample project, offline
#   make test       all tests; make test FILTER=journal runs those whose names match
#   make test-fast  the tests without processes, chains and terminals
#   make test-agents  real programs of agents: from npm into .agents, or those in COCKPIT_AGENTS=/folder:/folder
#   make check      format, lint, types, import contracts, links, the installed package
#   make test-http  many generated requests for every route (EXAMPLES=500)
#   make test-browser  the screen in a real Chromium, which must be installed
#   make soak       the tests that search, twenty times as long (EXAMPLES=50)
#   make chaos      faults at many moments: what is lost, doubled, left unfinished (ARGS="--trials 2000 kill")
#   make defences   takes defences out, one by one, and sees a test fail for each (ARGS="'secrets are masked'")
#   make bench      the benches: a table, and bench/results.json (ARGS="--strict wave")
#   make docs       the generated reference pages
#   make snapshots  draw the snapshots of the screens
#   make setup      only install
#   make clean      remove everything that make installed or wrote
#
# PYTHON=python3.12 make setup   chooses an interpreter. make uses uv if it is on the PATH.

PYTHON ?= python3
# Tests wait for programs and clocks: two processes for each processor.
JOBS ?= $(shell expr 2 '*' $$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1))

VENV := .venv
BIN := $(VENV)/bin
CPU_TIME = $(BIN)/python .ci/cpu_time.py
# Each process of tests compiles what it imports, unless another one has kept that.
PYTEST = PYTHONDONTWRITEBYTECODE= $(CPU_TIME) $(BIN)/pytest -n $(JOBS) --dist worksteal
RUNTIME := $(VENV)/.runtime-is-installed
DEVELOPMENT := $(VENV)/.development-is-installed
PINS := pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast soak test-agents test-http test-browser check chaos defences bench docs snapshots clean

help:
	@sed -n '3,18s/^# *//p' Makefile

setup: $(DEVELOPMENT)

demo: $(RUNTIME)
	@$(BIN)/cockpit demo

test: $(DEVELOPMENT)
	@$(PYTEST) $(if $(FILTER),-k '$(FILTER)')

test-fast: $(DEVELOPMENT)
	@$(PYTEST) -m 'not slow' $(if $(FILTER),-k '$(FILTER)')

soak: $(DEVELOPMENT)
	@COCKPIT_EXAMPLES=$(or $(EXAMPLES),20) $(PYTEST) -m search $(if $(FILTER),-k '$(FILTER)')

test-http: $(DEVELOPMENT)
	@COCKPIT_HTTP_EXAMPLES=$(or $(EXAMPLES),200) $(BIN)/pytest tests/api/test_api_contract.py

test-browser: $(DEVELOPMENT)
	@$(BIN)/pytest tests/api/web/in_browser.py

# One after the other: each program needs more than a processor to itself while it starts.
test-agents: $(DEVELOPMENT)
	@agents='$(COCKPIT_AGENTS)'; \
	[ -n "$$agents" ] || agents=$$(PYTHON='$(PYTHON)' sh tests/agents/real/programs/install .agents) || exit; \
	COCKPIT_AGENTS=$$agents PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -m agents tests/agents/real \
		$(if $(FILTER),-k '$(FILTER)')

check: $(DEVELOPMENT)
	@$(CPU_TIME) .ci/check $(BIN)

chaos: $(DEVELOPMENT)
	@PYTHONPATH=tests $(BIN)/python tests/faults/chaos.py $(ARGS)

defences: $(DEVELOPMENT)
	@PYTHONPATH=tests $(BIN)/python tests/adversarial/defences.py $(ARGS)

bench: $(DEVELOPMENT)
	@$(BIN)/python bench/run.py $(ARGS)

docs: $(DEVELOPMENT)
	@$(BIN)/python docs/generate.py

snapshots: $(DEVELOPMENT)
	@$(PYTEST) tests/app --snapshot-update

clean:
	rm -rf $(VENV) .agents bench/results.json build dist
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The demo starts sooner without the tools of development. Installing those covers both.
$(RUNTIME): $(PINS)
	@sh .ci/install '$(PYTHON)' '$(VENV)' .
	@touch $@

$(DEVELOPMENT): $(PINS)
	@sh .ci/install '$(PYTHON)' '$(VENV)' '.[dev]'
	@touch $(RUNTIME) $@
