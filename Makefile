# cockpit. Needs make, git and Python 3.11 or newer; everything else is installed into .venv.
#
#   make demo       the cockpit on a sample project, offline
#   make test       the tests
#   make check      format, lint, types, import contracts
#   make bench      the benches: a table, and bench/results.json; ARGS='--strict wave'
#   make docs       generate the pages of docs/reference/ that list commands and settings
#   make snapshots  draw the screens' snapshots anew
#   make setup      only install
#   make clean      remove what make made
#
# PYTHON=python3.12 make setup   chooses an interpreter. uv is used when it is on the PATH.

PYTHON ?= python3
# One process more than there are processors: tests wait for programs that they start.
JOBS ?= $(shell expr 1 + $$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1))

VENV := .venv
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.runtime-is-installed
DEVELOPMENT := $(VENV)/.development-is-installed
PINS := pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.PHONY: help setup demo test check bench docs snapshots clean

help:
	@sed -n '3,10s/^# *//p' Makefile

setup: $(DEVELOPMENT)

demo: $(RUNTIME)
	@$(BIN)/cockpit demo

test: $(DEVELOPMENT)
	@$(BIN)/pytest -n $(JOBS) --dist worksteal

check: $(DEVELOPMENT)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(DEVELOPMENT)
	@$(BIN)/python bench/run.py $(ARGS)

docs: $(DEVELOPMENT)
	@$(BIN)/python docs/generate.py

snapshots: $(DEVELOPMENT)
	@$(BIN)/pytest tests/app -n $(JOBS) --dist worksteal --snapshot-update

clean:
	rm -rf $(VENV) bench/results.json build dist
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The demo starts sooner without the tools of development. Installing those covers both.
$(RUNTIME): $(PINS)
	@sh .ci/install '$(PYTHON)' '$(VENV)' .
	@touch $@

$(DEVELOPMENT): $(PINS)
	@sh .ci/install '$(PYTHON)' '$(VENV)' '.[dev]'
	@touch $(RUNTIME) $@
