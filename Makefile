PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: run test lint bench clean

## run: matrix PCA around its transition and XOR, SGD against its limit, into results/
run: $(READY)
	$(BIN)/python examples/first_look.py results

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
	rm -rf $(VENV) results

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade --constraint constraints.txt pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(READY)
