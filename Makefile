# The versions of Python that we support, newest first.
PYTHONS := 3.13 3.12 3.11
VENV := .venv
BIN := $(VENV)/bin

# python3 if it is one of these versions, else the newest of them that runs and can make a venv: a
# name may exist, as a shim of a version manager does, and yet run nothing. PYTHON=... overrides.
NAMES := python3 $(addprefix python,$(PYTHONS))
ASK := -c 'import ensurepip, platform, venv; print(platform.python_version())' 2>/dev/null
ifeq ($(origin PYTHON),undefined)
PYTHON := $(shell for name in $(NAMES); do version=$$($$name $(ASK)) && \
	case ' $(PYTHONS) ' in (*" $${version%.*} "*) echo $$name; break;; esac; done)
endif
VERSION := $(filter $(addsuffix .%,$(PYTHONS)),$(if $(PYTHON),$(shell $(PYTHON) $(ASK))))
# The stamp carries the version: a .venv that another one has made is remade.
READY := $(VENV)/.ready-$(VERSION)

.PHONY: run figures test test-fast lint bench venv clean

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

## test-fast: what takes seconds, for the inner loop: no types, and not the files of tests/conftest.py
test-fast: lint
	$(BIN)/python -m pytest -m 'not slow'

## lint: style of code and docstrings
lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

## bench: speed as ratios against plain baselines run in the same process
bench: $(READY)
	$(BIN)/python -m benchmarks

## venv: the environment in .venv, which every target above makes first
venv: $(READY)

clean:
	rm -rf $(VENV) results figures pictures

$(READY): pyproject.toml constraints.txt
	@test -n '$(VERSION)' || { echo >&2 "$(if $(PYTHON),PYTHON=$(PYTHON) is no,None of $(NAMES) is a) Python" \
		"$(PYTHONS) that runs and can make a venv. Name one, as in 'make test PYTHON=python3.12'."; \
		exit 1; }
	test -e $@ || rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade --constraint constraints.txt pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@
