# make run    the console, in an environment of its own (.venv); needs Python 3.11 or newer
# make test   lint, types and all tests, in the same environment
# make clean  remove the environment and caches; stored memories stay

SHELL := bash
.DELETE_ON_ERROR:
.PHONY: run test browser clean

BIN := .venv/bin
PYTHON ?= python3 python3.13 python3.12 python3.11 python3.14 python
# Arguments of `memcore serve`, as in: make run SERVE="--port 9000 --headless"
SERVE ?=
# Tests at a time; a file's tests stay together because they share a database.
WORKERS ?= 2

run: .venv/installed
	@exec $(BIN)/memcore serve $(SERVE)

test: .venv/installed-dev browser
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n $(WORKERS) --dist loadfile

.venv/created:
	@for python in $(PYTHON); do \
	  if "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
	      >/dev/null 2>&1; then \
	    echo "Creating .venv with $$("$$python" --version) …"; \
	    "$$python" -m venv --clear .venv && touch $@; \
	    exit; \
	  fi; \
	done; \
	echo "memcore needs Python 3.11 or newer with its venv module, and found none."; \
	echo "Install it (Debian: apt install python3-venv), or name one: make run PYTHON=/path/to/python3"; \
	exit 1

# Editable: the checkout is what runs. Only the lines that tell progress are shown.
define install
	@echo "Installing memcore and what it needs (one or two minutes the first time) …"
	@set -o pipefail; $(BIN)/python -m pip install --disable-pip-version-check --editable '$(1)' 2>&1 \
	  | tee .venv/install.log \
	  | { grep -oE --line-buffered '^(Collecting|Building|Installing|ERROR).{0,90}' || true; } \
	  || { echo "That failed; .venv/install.log tells why."; exit 1; }
	@touch $@
endef

# With LangGraph, so that the demo has threads to show on the Checkpoints page.
.venv/installed: pyproject.toml | .venv/created
	$(call install,.[langgraph])

.venv/installed-dev: pyproject.toml | .venv/created
	$(call install,.[dev])
	@touch .venv/installed

# The browser tests need Debian's chromium and a Chinese font. They are installed where that needs
# no question (root, or sudo without a password in CI); elsewhere the tests are skipped and say why.
browser:
	@if command -v chromium >/dev/null || ! command -v apt-get >/dev/null; then exit; fi; \
	if [ "$$(id -u)" = 0 ]; then as=; \
	elif [ -n "$${CI:-}" ] && sudo -n true 2>/dev/null; then as=sudo; \
	else exit 0; fi; \
	echo "Installing chromium and a Chinese font for the browser tests …"; \
	{ $$as apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$as apt-get install -qq -y \
	  --no-install-recommends chromium fonts-noto-cjk >/dev/null; } \
	  || echo "That failed; the browser tests will be skipped."

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
