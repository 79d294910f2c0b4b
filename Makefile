# `make run`: install and run the main job. `make test`: install and check everything.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/installed

.PHONY: run test lint unit wheel figures browser clean

run: $(STAMP)
	$(BIN)/borelax run gridworld --preset quick

test: lint unit wheel

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

unit: $(STAMP)
	$(BIN)/python -m pytest -n 2 --durations=10 -rs

# The figures of the docs, and the runs they show: long on two cores.
figures: $(STAMP)
	$(BIN)/python benchmarks/figures.py --runs runs/figures --out docs/figures

# A browser for the tests of the report. Without one they are skipped, and say so.
browser:
	command -v chromium >/dev/null \
	|| (apt-get update -qq && apt-get install -y -qq chromium >/dev/null) \
	|| echo "No Chromium: the tests that open reports in a browser will be skipped."

# The package as users get it: built, installed elsewhere, run outside the checkout.
wheel: $(STAMP)
	rm -rf dist && $(BIN)/python -m build --wheel --outdir dist .
	$(BIN)/python tests/check_wheel.py dist

$(STAMP): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev,gym,mujoco]"
	touch $(STAMP)

clean:
	rm -rf .venv dist .pytest_cache .ruff_cache .hypothesis
