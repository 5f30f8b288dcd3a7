# Every target sets up what it needs in .venv; set-up is repeated only when the dependencies change.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help test demo bench results format clean

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*##/\1\t/p' $(MAKEFILE_LIST) | expand -t 10

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

results: $(READY)  ## measure everything again (hours) and write docs/results.md
	mkdir -p build/results
	$(BIN)/python -m benchmarks.learning > build/results/learning.log
	$(BIN)/python -m benchmarks.learning --preset tetrominoes-paper --seeds 0 1 2 > build/results/paper.log
	for change in train.reset_every=0 train.noise_steps=0 model.peaks_per_prototype=1 model.peaks_per_prototype=6 'model.colour="network"'; do \
		$(BIN)/python -m benchmarks.learning --seeds 0 1 --set "$$change" > "build/results/$${change%%=*}$${change##*=}.log"; \
	done
	$(BIN)/python -m benchmarks.quality 12 > build/results/quality.log
	$(BIN)/python -m benchmarks.real > build/results/real.log
	$(BIN)/python -m benchmarks.speed > build/results/speed.log
	$(BIN)/python -m benchmarks.results build/results/*.log

format: $(READY)  ## put the code in shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove everything that can be made again: .venv, caches, demo/
	rm -rf $(VENV) build demo src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
