PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: run figures test lint bench clean

## run: the experiments that tell the story, with their scorecard, on one page: results/report.html
run: $(READY)
	$(BIN)/sgdlimits report --headline --out results

## figures: every experiment at the papers' own sizes: figures/report.html
figures: $(READY)
	$(BIN)/sgdlimits report --preset paper --out figures

## test: lint, types and tests; the one gate
test: lint
	$(BIN)/python -m mypy
	$(BIN)/python -m pytest

## lint: style of code and docstrings
lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

## bench: speed as ratios against plain baselines run in the same process
bench: $(READY)
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) results figures pictures

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade --constraint constraints.txt pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(READY)
