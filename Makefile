# make demo    cluster the handwritten digits bundled with scikit-learn
# make test    the tests
# make soak    fit, predict, save and load for up to 20 minutes, watching memory, open files and threads
# make fuzz    a million damaged files for every reader; continues where it was stopped
# make chaos   runs of the command line killed at random moments, and a fault at every system call of a fit
# make bench   where the time goes, as ratios, in under 20 minutes; results in benchmarks/results
# make docs    the documentation as a site, in site/; a warning is an error
# make lint    format, lint, spelling, types, import direction
# make check   what a change must pass: make lint, and the fast tests
.PHONY: demo test soak fuzz chaos docs lint check format clean benchmarks bench
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
THREADS := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

help:
	@sed -n 's/^# make/make/p' Makefile

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "lsdc needs Python 3.11 or newer; point to one with: make PYTHON=python3.12 ..."; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev,docs]'
	@touch $@

demo: $(READY)
	$(BIN)/lsdc fit digits --out runs/demo --overwrite
	$(BIN)/lsdc evaluate runs/demo --baselines

test: $(READY)
	$(THREADS) $(BIN)/python -m pytest -n 2 --dist worksteal

soak: $(READY)
	$(THREADS) $(BIN)/python benchmarks/soak.py --minutes 20

fuzz: $(READY)
	$(THREADS) $(BIN)/python benchmarks/fuzz.py --inputs 1000000

chaos: $(READY)
	$(THREADS) $(BIN)/python benchmarks/chaos.py --kills 50
	$(THREADS) $(BIN)/python benchmarks/faults.py

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open site/index.html"

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint
	$(THREADS) $(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)
	$(BIN)/python benchmarks/bench.py

benchmarks: $(READY)
	$(BIN)/python benchmarks/functional.py --large
	$(BIN)/python benchmarks/startup.py

clean:
	rm -rf $(VENV) runs site .pytest_cache .mypy_cache .ruff_cache .hypothesis dist
