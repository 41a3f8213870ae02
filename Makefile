# `make` or `make help` lists what there is. `make demo` and `make test` set everything up themselves.

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format play eval loop1 loop2 serve runs report log diff check doctor bench speed clean

# The first Python that is new enough: `command -v` alone would also find shims that start nothing.
PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := $(or $(AUTOMEM_VENV),.venv)/bin

TASK ?= crafter
SUITE ?= smoke
MODEL ?= scripted
REVIEWER ?= rules
ITERATIONS ?= 6
EXTRAS ?=
ARGS ?=

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  TASK=$(TASK) SUITE=$(SUITE) MODEL=$(MODEL) can be given, and ARGS for further options,"
	@echo "  RUN names what is made, and for report what is shown; AGENTS for bench, GAME for log and the loops,"
	@echo "  REVIEWER (rules, llm, command) and META for loop1, GAMEPLAY and RECIPE for loop2,"
	@echo "  versions A and B for diff, REF for check,"
	@echo "  e.g. make play TASK=nethack MODEL=smollm2 ARGS='--watch --steps 20'"

setup: ## everything installed into .venv, once (EXTRAS=ray for further extras)
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed and not found; give it as PYTHON=..." >&2; exit 1; }
	@$(PYTHON) scripts/setup.py $(EXTRAS)

demo: setup ## play each game in the terminal, ending with a table: start here
	@$(BIN)/automem demo

test: setup lint ## lint, types and all tests
	$(BIN)/python -m pytest $(ARGS)

lint: setup ## style and types only
	$(BIN)/ruff check .
	$(BIN)/mypy

format: setup ## bring the style in order
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

play: setup ## watch one episode of TASK
	@$(BIN)/automem play $(TASK) --model $(MODEL) --watch $(if $(RUN),--run $(RUN)) $(ARGS)

eval: setup ## play a SUITE and store the run
	@$(BIN)/automem eval $(SUITE) --model $(MODEL) $(if $(RUN),--run $(RUN)) $(ARGS)

# Two models may be at work: MODEL plays, META reviews.
loop1: setup ## let a REVIEWER rewrite the scaffold of GAME, ITERATIONS times, and keep what plays better
	@$(BIN)/automem loop1 $(or $(GAME),crafter) --model $(MODEL) --reviewer $(REVIEWER) --iterations $(ITERATIONS) \
		$(if $(META),--meta-model $(META)) $(if $(RUN),--run $(RUN)) $(ARGS)

# MODEL is whose specialist is trained, GAMEPLAY acts.
loop2: setup ## train a memory specialist of MODEL for GAME by RECIPE, play it beside GAMEPLAY and compare
	@$(BIN)/automem loop2 $(or $(GAME),crafter) --model $(if $(filter scripted,$(MODEL)),smollm2,$(MODEL)) \
		$(if $(GAMEPLAY),--gameplay $(GAMEPLAY)) $(if $(RECIPE),--recipe $(RECIPE)) $(if $(RUN),--run $(RUN)) $(ARGS)

serve: setup ## serve MODEL, and specialists of it (ARGS="--specialist FOLDER")
	@$(BIN)/automem serve --model $(if $(filter scripted,$(MODEL)),smollm2,$(MODEL)) $(ARGS)

runs: setup ## the runs so far
	@$(BIN)/automem runs

log: setup ## versions of the scaffolds of GAME as a tree, with their scores
	@$(BIN)/automem scaffold log $(GAME) $(ARGS)

# These refuse what is not named before they set anything up.
report: ## one HTML file about runs, RUN="first second", with a replay of every episode
	@test -n "$(RUN)" || { echo "name a run: make report RUN=first; make runs lists them" >&2; exit 2; }
	@$(MAKE) --no-print-directory setup
	@$(BIN)/automem report $(RUN) $(ARGS)

diff: ## what differs between two scaffolds, A=crafter/v0 B=crafter/v1
	@test -n "$(A)" -a -n "$(B)" || { echo "name two versions: make diff A=crafter/v0 B=crafter/v1" >&2; exit 2; }
	@$(MAKE) --no-print-directory setup
	@$(BIN)/automem scaffold diff $(A) $(B) $(ARGS)

check: ## all that is wrong with a scaffold, REF=crafter/v1
	@test -n "$(REF)" || { echo "name a version: make check REF=crafter/v1" >&2; exit 2; }
	@$(MAKE) --no-print-directory setup
	@$(BIN)/automem scaffold check $(REF) $(ARGS)

doctor: setup ## what can run here, what is missing and how to get it
	@$(BIN)/automem doctor

# Naming no MODEL plays agents that need no language model; `fixed` stands in for one.
bench: setup ## play AGENTS on a SUITE and put what they reach beside published figures
	@$(BIN)/automem bench $(SUITE) --agents $(or $(AGENTS),random,naive,memory,scripted) \
		--model $(if $(filter scripted,$(MODEL)),fixed,$(MODEL)) $(if $(RUN),--run $(RUN)) $(ARGS)

speed: setup ## the speed measurements, one after another
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

clean: ## what tests and tools left behind; keeps .venv and runs
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
