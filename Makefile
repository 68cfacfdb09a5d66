# Everything runs inside .venv, which is made once. PYTHON names the interpreter to make it with (3.11 or later).
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
TESTED := .venv/tested
# Small matrices gain nothing from threads, and tests run side by side.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

# Packages whose annotations `make shapes` checks; studies and outcomes refuse bad values by name instead.
SHAPES := iclab.theory,iclab.simulation,iclab.spectra,iclab.inspection,iclab.planning,iclab.problem,iclab.numerics,iclab.attention,iclab.published

.PHONY: help report test test-all shapes lint engines benchmarks clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

report: $(READY)  ## run the headline studies and write report/index.html
	$(BIN)/iclab report

test: $(TESTED)  ## the fast tests
	$(BIN)/pytest -q -n 2 -m "not slow"

test-all: $(TESTED)  ## the fast tests and the slow witnesses
	$(BIN)/pytest -q -n 2

shapes: $(TESTED)  ## the fast tests, with shapes and types of annotations checked at run time
	$(BIN)/pytest -q -n 2 -m "not slow" --jaxtyping-packages=$(SHAPES),beartype.beartype

lint: $(TESTED)  ## style, types, and who may import whom
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/pyright
	$(BIN)/lint-imports

engines: $(TESTED)  ## sweeps on a real Dask and, where Debian's packages are, a real SLURM, with kills
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[sim,test,cluster]"
	$(BIN)/pytest -q -rs tests/engines/on_dask.py tests/engines/on_slurm.py

benchmarks: $(TESTED)  ## speed, as ratios in one run
	$(BIN)/python benchmarks

clean:  ## forget the environment and the report
	rm -rf .venv report results

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "iclab needs Python 3.11 or later; name one with: make PYTHON=python3.11 ..."; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[sim]"
	touch $@

$(TESTED): $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[sim,test]"
	touch $@
