# `make demo` and `make test` each set up all they need in .venv; a second run installs nothing.
# Paths stay relative, so that a checkout under a folder with a space in its name works.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin/python
INSTALL := $(BIN) -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help demo test test-processors test-slow chaos fuzz check docs bench quality contest clean
.DEFAULT_GOAL := help

help:
	@echo "make demo       learn scikit-learn's digits, print a table, draw the embedding (runs/demo)"
	@echo "make test       the test suite"
	@echo "make test-processors  its numeric part, as on processors with fewer instructions"
	@echo "make test-slow  the tests that take minutes each"
	@echo "make chaos      fits killed hundreds of times end with the same bits"
	@echo "make fuzz       tens of thousands of new mutated files and models"
	@echo "make check      lint and types"
	@echo "make docs       build the documentation into site/ (site/index.html opens without a server)"
	@echo "make bench      speed, as ratios measured in one run"
	@echo "make quality    accuracy over seconds, ours and UMAP (hours; RECORDS=file, DATASETS=fsdd ...)"
	@echo "make contest    every method at its defaults on fifteen sets (hours; resumable; needs SELFVIEW_DATA)"
	@echo "make clean      remove the environment, caches and runs"

$(VENV)/.made:
	$(PYTHON) -m venv $(VENV)
	@touch $@

# torch first and by its pin: resolved alone it is never exchanged for another build.
$(VENV)/.demo: $(VENV)/.made pyproject.toml constraints.txt
	$(INSTALL) torch
	$(INSTALL) -e '.[plots,graph]'
	@touch $@

$(VENV)/.dev: $(VENV)/.made pyproject.toml constraints.txt
	$(INSTALL) torch
	$(INSTALL) -e '.[dev]'
	@touch $@ $(VENV)/.demo

$(VENV)/.docs: $(VENV)/.made pyproject.toml constraints.txt
	$(INSTALL) torch
	$(INSTALL) -e '.[docs]'
	@touch $@

demo: $(VENV)/.demo
	$(BIN) -m selfview demo

# Two processes of one thread each: small tests gain nothing from threads.
test: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN) -m pytest -n 2

test-processors: $(VENV)/.dev
	$(BIN) tests/processors.py

test-slow: $(VENV)/.dev
	$(BIN) -m pytest -m slow

chaos: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN) -m pytest -m chaos -n 2

# New cases each time; FUZZ_TIMES=1 are the four thousand of the test suite.
fuzz: $(VENV)/.dev
	FUZZ_RANDOM=1 FUZZ_TIMES=$${FUZZ_TIMES:-10} OMP_NUM_THREADS=1 $(BIN) -m pytest -n 2 \
		tests/data/test_data_fuzz.py tests/hostile/test_fuzz_models.py

check: $(VENV)/.dev
	$(BIN) -m ruff check .
	$(BIN) -m ruff format --check .
	$(BIN) -m mypy

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN) -m mkdocs build --strict --quiet

# Speed and memory; quality.py, which takes hours, is run by itself.
BENCHMARKS := step sinkhorn transform scaling data evaluation baselines traffic soak per_row memory passes
bench: $(VENV)/.dev
	@for b in $(BENCHMARKS); do echo "== $$b"; $(BIN) benchmarks/$$b.py || exit 1; done

# What is on record there is not run again: another file begins anew.
RECORDS ?= runs/quality.jsonl
DATASETS ?= fsdd reuters 20news msi mnist fashion-mnist
quality: $(VENV)/.dev
	$(INSTALL) -e '.[peers]'
	$(BIN) benchmarks/quality.py run --datasets $(DATASETS) --records "$(RECORDS)" \
		--contenders selfview umap-5 umap-15 umap-30 umap-50 pca
	$(BIN) benchmarks/quality.py show --records "$(RECORDS)"

# Two threads, and nothing beside it: it measures time.
contest: $(VENV)/.dev
	$(INSTALL) -e '.[peers]'
	$(BIN) benchmarks/contest.py run
	$(BIN) benchmarks/contest.py show

clean:
	rm -rf $(VENV) build dist runs site .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
