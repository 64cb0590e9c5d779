# Every target sets up what it needs in .venv; `make` alone lists the targets.
#
#   PYTHON=python3.12   the interpreter to build .venv with (default: the newest working one, 3.11 or later)
#   VENV=/some/where    where the environment and all caches go, e.g. when the checkout cannot be written to
#   SEEDS=5000          how many seeds `make simulate` runs
#   SECONDS=240         how long `make chaos` runs
#   SEED=7              the random seed of `make chaos` and `make chaos-cluster`; by default a new one, which is printed
#   FAULTS=20           how many faults `make chaos-cluster` has for each of its SEEDS
#   REAL_CLIS=/a/folder where `make test-real-clis` keeps the CLIs it installs
#   VERSIONS=4          plays a few scenes with that many of the newest releases of each CLI; CLIS="claude codex" with some

VENV ?= .venv
SEEDS ?= 5000
SECONDS ?= 240
FAULTS ?= 20
REAL_CLIS ?= $(VENV)/real-clis
PYTHON ?=

RUN = "$(VENV)/bin/python"

# These tests mostly wait for programs that take as long as people do, so many run at once, even on two processors.
TEST_TERMINALS = $(RUN) -m pytest --verbosity=0 --numprocesses=8 --maxschedchunk=1 tests/integration tests/security tests/unit/terminal tests/first_hour -m

# In separate processes: Playwright leaves an event loop running in the process it is used in.
TEST_BROWSER = $(RUN) -m pytest --verbosity=0 --numprocesses=4 --dist=loadscope --no-loadscope-reorder tests/browser tests/security -m browser

# Caches live in the environment, so that only .venv is written and `make clean` removes all of it.
export PYTHON VENV
export RUFF_CACHE_DIR = $(VENV)/cache/ruff
export MYPY_CACHE_DIR = $(VENV)/cache/mypy
export HYPOTHESIS_STORAGE_DIRECTORY = $(VENV)/cache/hypothesis

# Without bytecode, each of the hundreds of processes that the tests start recompiles the sources and takes twice as long.
unexport PYTHONDONTWRITEBYTECODE

SHELL = /bin/sh
.DEFAULT_GOAL = help
.NOTPARALLEL:
.PHONY: help setup demo demo-cluster test test-terminals test-real-clis lint bench simulate chaos chaos-cluster docs constraints clean environment bench-environment generator \
	screenshots test-dashboard-load

help:  ## list the targets
	@echo "Agent Relay. Targets:"
	@sed -n 's/^\([a-z][a-z-]*\):[^#]*## *\(.*\)/  make \1 | \2/p' Makefile | awk -F'|' '{ printf "%-20s %s\n", $$1, $$2 }'

setup: environment  ## build .venv (every other target does this when needed)
	@echo "$(VENV) is ready."

demo:  ## run a short live demo; needs no account and ends by itself
	@scripts/setup
	@"$(VENV)/bin/agent-relay" demo

demo-cluster:  ## three hosts, three NATS servers, agents in terminals; a leader and a host are killed; ends by itself
	@scripts/setup cluster
	@$(RUN) -m tests.cluster.demo

test: lint generator  ## run everything: linters, types, architecture, tests
	@$(RUN) -m pytest --verbosity=0 -m 'not terminals and not browser and not real_clis' --numprocesses=4 --dist=worksteal
	@$(TEST_BROWSER)
	@$(TEST_TERMINALS) 'terminals and not longest'

test-terminals: environment  ## run only the tests with real tmux and PTY terminals, end to end; a few minutes
	@$(TEST_TERMINALS) terminals

test-real-clis: environment  ## test claude, codex, gemini, opencode and aider under the relay, offline; most of an hour
ifdef VERSIONS
	@$(RUN) scripts/cli_releases.py "$(REAL_CLIS)/releases" "$(VERSIONS)" $(CLIS)
	@$(RUN) -m tests.real_clis.offline $(RUN) -m tests.real_clis.try_releases "$(REAL_CLIS)/releases" $(CLIS)
else
	@$(RUN) scripts/real_clis.py "$(REAL_CLIS)"
	@REAL_CLIS="$(REAL_CLIS)" REAL_CLIS_RESULTS=docs/real-clis.md $(RUN) -m tests.real_clis.offline $(RUN) -m pytest --verbosity=0 -m real_clis tests/real_clis
endif

test-dashboard-load: generator  ## test the dashboard with 50 agents and 100,000 messages; some minutes
	@DASHBOARD_AGENTS=50 DASHBOARD_MESSAGES=100000 $(RUN) -m pytest --verbosity=0 -s tests/browser/test_load.py

lint: environment  ## run ruff and mypy
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .
	@$(RUN) -m mypy --strict

bench: bench-environment  ## measure throughput, latency and memory on this machine
	@$(RUN) -m bench

simulate: environment  ## run the delivery logic through SEEDS simulated histories of faults
	@$(RUN) -m tests.simulation --seeds $(SEEDS)

chaos: environment  ## run real daemons under kill -9, failing disks, damaged files, clock jumps and storms, for SECONDS
	@$(RUN) -m tests.chaos --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

chaos-cluster: SEEDS = 5
chaos-cluster: SECONDS = 3600
chaos-cluster: environment  ## run three hosts and three NATS servers under kill -9, SIGSTOP and cut networks, FAULTS for each of SEEDS
	@$(RUN) -m tests.cluster.chaos --seeds $(SEEDS) --faults $(FAULTS) --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

docs: environment  ## regenerate the generated parts of the documentation
	@$(RUN) scripts/docs.py
	@$(RUN) scripts/scale_model.py --write
	@$(RUN) -m agent_relay.cli.reference > docs/cli.md
	@$(RUN) -m agent_relay openapi > docs/api/openapi.json
	@$(RUN) -m agent_relay.cli.team.team_file > docs/api/team.schema.json
	@$(RUN) -m agent_relay run --schema > docs/api/run.schema.json
	@$(RUN) -m agent_relay events --schema events > docs/api/events.schema.json
	@$(RUN) -m agent_relay events --schema header-file > docs/api/header-file.schema.json

screenshots:  ## retake the pictures of the dashboard in docs/screenshots
	@scripts/setup dev,screenshots tests
	@$(RUN) -m tests.browser.screenshots docs/screenshots

constraints:  ## pin the newest version of everything in constraints.txt
	@scripts/constraints

clean:  ## remove .venv and every cache
	@if [ -f "$(VENV)/pyvenv.cfg" ]; then rm -rf "$(VENV)"; fi
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	@find . -name .git -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +

environment:
	@scripts/setup dev

generator:
	@scripts/setup dev tests
	@scripts/generator

bench-environment:
	@scripts/setup dev,bench
