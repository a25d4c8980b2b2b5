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
#   make live       ten small tasks by a real small model: fetches 1.2 GB into .live (ARGS="--tasks 1,2")
#   make docs       the generated reference pages
#   make snapshots  draw the snapshots of the screens
#   make setup      only install
#   make clean      remove everything that make installed or wrote
#
# PYTHON=python3.12 make setup   chooses an interpreter. make uses uv if it is on the PATH.

PYTHON ?= python3
# Each process of tests loads all of them, which costs more than waiting for programs: one for each processor.
JOBS ?= $(shell nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
# Without stored bytecode every process that a test starts compiles cockpit anew (0.8 s in place of 0.1).
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
CPU_TIME = $(BIN)/python .ci/cpu_time.py
# Their bytecode is kept: compiling cockpit and the tests takes longer than collecting them.
PYTEST = $(CPU_TIME) $(BIN)/pytest -n $(JOBS) --dist worksteal
RUNTIME := $(VENV)/.runtime-is-installed
DEVELOPMENT := $(VENV)/.development-is-installed
PINS := pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast soak test-agents test-http test-browser check chaos defences bench live docs snapshots clean

help:
	@sed -n '3,19s/^# *//p' Makefile

setup: $(DEVELOPMENT)

demo: $(RUNTIME)
	@$(BIN)/cockpit demo

test: $(DEVELOPMENT)
	@$(PYTEST) $(if $(FILTER),-k '$(FILTER)')

# These wait for nothing: one process for each processor.
test-fast: $(DEVELOPMENT)
	@$(PYTEST) -n auto -m 'not slow' $(if $(FILTER),-k '$(FILTER)')

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
	COCKPIT_AGENTS=$$agents $(BIN)/pytest -m agents tests/agents/real \
		$(if $(FILTER),-k '$(FILTER)')

check: $(DEVELOPMENT)
	@$(CPU_TIME) .ci/check $(BIN)

chaos: $(DEVELOPMENT)
	@PYTHONPATH=tests $(BIN)/python tests/faults/chaos.py $(ARGS)

defences: $(DEVELOPMENT)
	@PYTHONPATH=tests $(BIN)/python tests/adversarial/defences.py $(ARGS)

bench: $(DEVELOPMENT)
	@$(BIN)/python bench/run.py $(ARGS)

live: $(DEVELOPMENT)
	@$(BIN)/python bench/live/live.py $(ARGS)

docs: $(DEVELOPMENT)
	@$(BIN)/python docs/generate.py

snapshots: $(DEVELOPMENT)
	@$(PYTEST) tests/app --snapshot-update

clean:
	rm -rf $(VENV) .agents .live bench/results.json build dist
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The demo starts sooner without the tools of development. Installing those covers both.
$(RUNTIME): $(PINS)
	@sh .ci/install '$(PYTHON)' '$(VENV)' .
	@touch $@

$(DEVELOPMENT): $(PINS)
	@sh .ci/install '$(PYTHON)' '$(VENV)' '.[dev]'
	@touch $(RUNTIME) $@
