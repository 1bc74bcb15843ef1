# Everything sets itself up: a bare machine with Python (3.11 or newer) and make is enough.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo check test lint bench benchopt docs clean-docs soak reproduce release clean

demo: $(VENV)/.demo
	$(BIN)/safesift demo

test: $(VENV)/.test $(VENV)/.browser lint
	$(BIN)/pytest -n 2

# what to run while working: a tenth of the laws' examples, and nothing that takes long
check: $(VENV)/.test lint
	HYPOTHESIS_PROFILE=check $(BIN)/pytest -n 2 -m "not slow"

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/screening_cost.py
	$(BIN)/python benchmarks/screen_vs_fit.py
	$(BIN)/python benchmarks/curvature_power.py
	$(BIN)/python benchmarks/convolution_cost.py
	$(BIN)/python benchmarks/paths_vs_peers.py
	$(BIN)/python benchmarks/paths_vs_peers.py --busy
	$(BIN)/python benchmarks/price_of_ridge.py
	$(BIN)/python benchmarks/kernels_vs_svc.py
	$(BIN)/python benchmarks/growth.py
	$(BIN)/python benchmarks/costs.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/mining.py
	$(BIN)/python benchmarks/tracking.py
	$(BIN)/python benchmarks/leave_one_out.py
	$(BIN)/python benchmarks/leave_one_out.py --busy --no-coverage
	$(BIN)/python benchmarks/leave_one_out_widths.py
	$(BIN)/python benchmarks/certify_alpha.py
	$(BIN)/python benchmarks/certify_alpha.py --exact
	$(BIN)/python benchmarks/compression.py
	$(BIN)/python benchmarks/compression_transfer.py
	$(BIN)/python benchmarks/proofs.py

# the race in benchopt's form, small; benchopt would not see that the library has changed
benchopt: $(VENV)/.bench
	$(BIN)/benchopt run benchmarks/benchopt --config benchmarks/benchopt/quick.yml \
		--no-cache --no-display

soak: $(VENV)/.test
	HYPOTHESIS_PROFILE=soak $(BIN)/pytest -n 2 tests/laws
	$(BIN)/python -m tests.soak
	$(BIN)/python -m tests.soak_proofs

# the site in build/site, without a warning and without a broken link; what has not changed since
# the last time, examples included, is not run again
docs: $(VENV)/.docs
	$(BIN)/pytest tests/test_site.py
	$(BIN)/sphinx-build -W --keep-going -n -d build/doctrees docs build/site
	$(BIN)/python docs/links.py build/site

clean: clean-docs
clean-docs:
	rm -rf docs/api docs/gallery docs/tutorials docs/measured.md docs/measured_race.md

# what is finished under docs/reproduction is not run again
reproduce: $(VENV)/.paper
	$(BIN)/safesift reproduce all --out docs/reproduction --page docs/reproduction.md \
		--stand-in cifar10 --stand-in imdb

# the wheel on every Python that is found, and on the oldest dependencies: see noxfile.py
release: $(VENV)/.release
	$(BIN)/nox

clean:
	rm -rf $(VENV) .nox build dist paper/build paper/dist

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.docs: $(VENV)/bin/python pyproject.toml paper/pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[docs]' -e ./paper
	touch $@ $(VENV)/.test $(VENV)/.paper $(VENV)/.demo

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[cli,plot]'
	touch $@

$(VENV)/.paper: $(VENV)/bin/python pyproject.toml paper/pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[cli,plot]' -e ./paper
	touch $@ $(VENV)/.demo

$(VENV)/.test: $(VENV)/bin/python pyproject.toml paper/pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[test]' -e ./paper
	touch $@ $(VENV)/.paper $(VENV)/.demo

# pages are tested in a browser where there is one, or where this user may install it
$(VENV)/.browser: $(VENV)/bin/python
	command -v chromedriver > /dev/null || { test "$$(id -u)" = 0 && \
		export DEBIAN_FRONTEND=noninteractive && apt-get -qq update && \
		apt-get -qq install -y --no-install-recommends chromium chromium-driver; } > /dev/null 2>&1 || true
	touch $@

$(VENV)/.bench: $(VENV)/bin/python pyproject.toml paper/pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[bench]' -e ./paper
	# it asks for NumPy 1, and what the race needs of it works with NumPy 2; it imports IPython
	$(BIN)/python -m pip install --quiet --no-deps 'adelie>=1.1.52'
	$(BIN)/python -m pip install --quiet ipython
	touch $@ $(VENV)/.test $(VENV)/.paper $(VENV)/.demo

$(VENV)/.release: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --group release
	touch $@
