# make demo and make test work on a fresh clone with Python 3.11 to 3.13 and make, nothing else.
.DEFAULT_GOAL := help
.PHONY: help install install-dev demo test lint bench clean

find_python = for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; raise SystemExit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && echo $$p && break; done
PYTHON ?= $(shell $(find_python))
PIP := .venv/bin/python -m pip --disable-pip-version-check
DEMO ?= runs/demo

help:
	@echo "make install   .venv with the package and its pinned dependencies"
	@echo "make demo      collect, train, evaluate, report on coding and dbbench, simulated (a minute or two)"
	@echo "make test      the tests"
	@echo "make lint      ruff, basedpyright, import-linter"
	@echo "make bench     benchmarks, each beside a peer in the same run"

install: .venv/installed
install-dev: .venv/installed-dev

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "no Python 3.11, 3.12 or 3.13 found; set PYTHON=..."; exit 1; }
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) install --quiet -c constraints.txt -e .
	@touch $@

.venv/installed-dev: .venv/installed
	$(PIP) install --quiet -c constraints.txt -e '.[dev]'
	@touch $@

demo: .venv/installed
	.venv/bin/python -m experiments.demo root=$(DEMO)

test: .venv/installed-dev
	.venv/bin/python -m pytest -n auto

lint: .venv/installed-dev
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/basedpyright
	.venv/bin/lint-imports

bench: .venv/installed-dev
	.venv/bin/python -m benchmarks

clean:
	rm -rf .venv runs
