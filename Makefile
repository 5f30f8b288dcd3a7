# Every target sets up what it needs in .venv; set-up is repeated only when the dependencies change.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help test demo bench models results results-quick packaging drills fuzz docs format clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*##/\1\t/p' $(MAKEFILE_LIST) | expand -t 15

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "pcdnet needs Python 3.11 or newer; use make PYTHON=python3.11")'
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

test: $(READY)  ## check style, types and layers, and run the tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest --numprocesses 2 --dist loadfile

demo: $(READY)  ## learn the objects of generated scenes in minutes; results in demo/
	$(BIN)/pcdnet demo

bench: $(READY)  ## measure the speed
	$(BIN)/python -m benchmarks.speed

models: $(READY)  ## train the models that come with the package anew, score them and write their cards (minutes)
	$(BIN)/python -m benchmarks.trained

results: $(READY)  ## measure what has no figures of this code yet (hours) and write docs/results.md
	$(BIN)/python -m benchmarks.run

results-quick: $(READY)  ## try the same in minutes, with small budgets; results in build/results-quick
	$(BIN)/python -m benchmarks.run --quick

packaging: $(READY)  ## build wheel and sdist, install them in fresh environments elsewhere, and try them there (minutes)
	$(BIN)/python -m benchmarks.packaging

drills: $(READY)  ## kill, damage and starve runs hundreds of times, and count what is lost (half an hour)
	$(BIN)/python -m benchmarks.drills --train 100 --decompose 100 --damages 500 --disks 100 --network 10 --workers 10

fuzz: $(READY)  ## read mutated inputs of every kind, 10 minutes each, and report what breaks (hours)
	$(BIN)/python -m benchmarks.fuzz

docs: $(VENV)/.docs  ## build the documentation into build/site; any warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

$(VENV)/.docs: $(READY)
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@

format: $(READY)  ## put the code in shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove everything that can be made again: .venv, caches, demo/
	rm -rf $(VENV) build demo src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
