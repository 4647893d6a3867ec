.DEFAULT_GOAL := help
PYTHON ?= python

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-10s %s\n", $$1, $$2}'

install:  ## install the package with everything that developing it needs
	$(PYTHON) -m pip install -e '.[test,parity,libraries,browser,docs,lint]'

check: lint types test  ## what must pass before a commit: lint, types, tests

lint:  ## ruff: lint and format
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

types:  ## mypy, strict
	$(PYTHON) -m mypy

test:  ## the tests that need no torch
	$(PYTHON) -m pytest -n auto

parity:  ## the comparisons with PyTorch 2.13
	$(PYTHON) -m pytest -m parity -n auto

browser:  ## the pages in chromium, which must be installed with its driver
	$(PYTHON) -m pytest -m browser

coverage:  ## PyTorch's operator database and public names against ours; refreshes docs/compatibility.md
	$(PYTHON) tests/parity/surface.py
	$(PYTHON) tests/parity/opinfo.py --write docs/compatibility.md

bench:  ## timings side by side with torch
	$(PYTHON) -m benchmarks

samples:  ## catch the samples of the gradient tests anew from PyTorch's operator database
	$(PYTHON) tests/parity/capture.py

site:  ## the pages and the reference as a site, in the folder site; warnings are errors
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict --quiet

docs:  ## write the samples of output on the pages anew
	PYTHONPATH=src $(PYTHON) docs/generate.py

report-ui:  ## build the pages of reports from their TypeScript; needs npm
	cd report-ui && npm ci --no-audit --no-fund && npm run build

fix:  ## let ruff mend what it can
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .

.PHONY: help install check lint types test parity browser coverage bench samples site docs report-ui fix
