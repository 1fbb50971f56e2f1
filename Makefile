# `make train VARIANT=xiangqi` and `make test` set up everything they need.
# On Windows, or without make: see "Without make" in README.md.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VARIANT ?= xiangqi
VENV ?= .venv
# More options of `variant-ai train` and of pytest.
ARGS ?=
# Tests run side by side, one process a core; JOBS=0 runs them in one.
JOBS ?= auto

BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help install engine train test nightly lint format docs manual web wheel release check clean

help:
	@echo "make install                 set up .venv with everything, experiments included"
	@echo "make engine                  set up .venv for playing alone: without PyTorch, a third of the size"
	@echo "make train VARIANT=xiangqi   train on the games that come with the variant"
	@echo "make test                    run the tests"
	@echo "make nightly                 run the long tests that make test leaves out"
	@echo "make lint                    ruff and mypy, as in continuous integration"
	@echo "make check                   lint, test and the wheel"
	@echo "make wheel                   build the wheel and test it in a clean environment"
	@echo "make release                 build a release, try it in a clean environment, print how to publish it"
	@echo "make format                  format the code"
	@echo "make docs                    write the tables and pictures of the manual, and build it"
	@echo "make manual                  build the manual as a site: build/manual/index.html"
	@echo "make web                     bundle the page of variant-ai web; needs npm"
	@echo "make clean                   remove the environment and what was built"

install: $(READY)

# What happens is shown on stderr: stdout is that of the command that is run. Without a terminal, and
# where CI is set, pip says errors only.
$(READY): pyproject.toml experiments/pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed")'
	@echo "installing into $(VENV), once: a minute or more, most of it PyTorch" >&2
	@$(PYTHON) -m venv $(VENV)
	@quiet=; if [ -n "$$CI" ] || ! [ -t 2 ]; then quiet=-qq; fi; \
	$(BIN)/python -m pip install $$quiet --disable-pip-version-check -c constraints.txt -e '.[dev]' -e ./experiments >&2
	@echo "compiling for this machine, once" >&2
	-@$(BIN)/variant-ai doctor >/dev/null
	@touch $@

engine:
	@$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -r requirements-engine.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e .

train: $(READY)
	@$(BIN)/variant-ai train --variant $(VARIANT) $(ARGS)

test: $(READY)
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(ARGS)

nightly: $(READY)
	$(BIN)/python -m pytest -m nightly $(ARGS)
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -q tests/rules tests/perft tests/encoding tests/data tests/search tests/jit/test_random_numbers.py
	$(BIN)/python benchmarks/agreement.py --share 0.02

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy benchmarks/*.py docs/*.py

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY)
	$(BIN)/python docs/tables.py
	$(BIN)/python docs/pictures.py
	$(BIN)/python docs/web_pictures.py
	$(MAKE) manual

manual: $(VENV)/.docs
	$(BIN)/python docs/site/build.py

$(VENV)/.docs: $(READY)
	$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[docs]' >&2
	@touch $@

web:
	npm --prefix web ci --no-audit --no-fund
	npm --prefix web run check
	npm --prefix web run build

wheel: $(READY)
	PYTHON=$(BIN)/python .ci/wheel

release: $(READY)
	PYTHON=$(BIN)/python .ci/release

check: lint test wheel

clean:
	rm -rf $(VENV) build dist runs .mypy_cache .ruff_cache .pytest_cache .hypothesis
