# Needs python3, make and a package index. Everything lives in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-done
DEMO_STAMP := $(VENV)/.demo-done
PYTEST_ARGS ?=
BENCH_ARGS ?=
MUTANT_ARGS ?=
CAMPAIGN_ARGS ?=
FUZZ_ARGS ?=

# Real data sets are optional: tests that read them are skipped where they are absent.
ifneq ($(wildcard ../shared/data),)
SHAPEDP_DATA ?= $(abspath ../shared/data)
endif
ifdef SHAPEDP_DATA
export SHAPEDP_DATA
endif
export PIP_DISABLE_PIP_VERSION_CHECK = 1
export NO_MKDOCS_2_WARNING = true
# Compiled modules and rewritten tests are kept, whatever the environment says: every process would make them anew.
export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.PHONY: help setup demo test slow lint format bare bench peers tumult mutants claims docs sbom campaign fuzz check-bare clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 16

setup: $(STAMP) ## make .venv with the library (editable), every extra and the development tools

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[all,dev]'
	touch $@ $(DEMO_STAMP)

# What the demo needs and no more: under 100 MB of downloads.
$(DEMO_STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[demo]'
	touch $@

demo: $(DEMO_STAMP) ## release one query by every applicable mechanism; ends in a table and a picture
	$(BIN)/shapedp demo

test: setup ## run the whole test suite on two processes, one thread each (PYTEST_ARGS adds options)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile $(PYTEST_ARGS)

slow: setup ## run the longer tests that `make test` leaves out
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m slow $(PYTEST_ARGS)

lint: setup ## ruff, mypy, the import direction
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: setup ## let ruff format and fix what it can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bare: ## install with numpy and scipy only, import, run the commands of the README
	rm -rf .venv-bare
	$(PYTHON) -m venv .venv-bare
	.venv-bare/bin/python -m pip install -q -c constraints.txt .
	.venv-bare/bin/python -m pip list --format=freeze | sed 's/==.*//' | sort | xargs
	@extra=$$(.venv-bare/bin/python -m pip list --format=freeze | sed 's/==.*//' \
	  | grep -vxE 'numpy|scipy|shapedp|pip|setuptools' || true); \
	  test -z "$$extra" || { echo "installed beyond numpy and scipy: $$extra"; exit 1; }
	cd .venv-bare && bin/python -I -c 'import shapedp; print("import shapedp", shapedp.__version__)'
	cd .venv-bare && bin/shapedp --version
	@cd .venv-bare && for try in 1 2 3 4 5; do bin/python -I -c 'from time import process_time as now; a = now(); \
	  import numpy, scipy.special; b = now(); import shapedp; shapedp.recipes, shapedp.compose; print(now() - a, b - a)'; done | sort -g | head -n 1 \
	  | awk '{ printf "import shapedp: %.3f s of processor time, best of 5; numpy and scipy.special alone: %.3f s\n", \
	  $$1, $$2; exit !($$1 < 0.5 || $$1 < 1.5 * $$2) }'
	.venv-bare/bin/python tests/docs/commands.py README.md
	rm -rf .venv-bare

peers: .venv-peers/.setup-done .venv-diffprivlib/.setup-done ## make the environments of the libraries we compare with

tumult: .venv-tumult/.setup-done ## make the environment of Tumult Analytics, which needs Java (benchmarks/tables.py, table_times.py)

.venv-%/.setup-done: requirements/%.txt
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install -q -r $<
	touch $@

bench: setup peers ## measure against peers in one run (BENCH_ARGS: --quick, names)
	$(BIN)/python benchmarks/run.py $(BENCH_ARGS)

mutants: setup ## put seeded faults into copies of the library; prints the share the tests kill (MUTANT_ARGS: --ci, --only)
	$(BIN)/python mutants/run.py $(MUTANT_ARGS)

claims: setup ## recompute every published claim of the register
	$(BIN)/shapedp claims --verify

campaign: setup ## random certificates through the library and the independent checker, for hours (CAMPAIGN_ARGS: --seconds 120)
	OMP_NUM_THREADS=1 $(BIN)/python experiments/trust/campaign.py --log experiments/trust/campaign.jsonl $(CAMPAIGN_ARGS)

fuzz: setup ## an hour of random calls, command lines, documents, tables and ledgers; goes on where it stopped (FUZZ_ARGS: --seconds 600 --kind api)
	OMP_NUM_THREADS=1 $(BIN)/python fuzz/run.py $(FUZZ_ARGS)

check-bare: ## run the checker's tests where python-flint and pytest are all that is installed
	rm -rf .venv-check
	$(PYTHON) -m venv .venv-check
	.venv-check/bin/python -m pip install -q -c constraints.txt python-flint pytest
	! .venv-check/bin/python -c 'import numpy' 2>/dev/null
	mkdir .venv-check/alone && cp -r src/shapedp_check .venv-check/alone/
	PYTHONPATH=.venv-check/alone .venv-check/bin/python -m pytest -q -p no:cacheprovider tests/check
	rm -rf .venv-check

docs: setup ## build the documentation into site/, warnings are errors
	$(BIN)/mkdocs build --strict --quiet

sbom: setup ## write sbom.json, a CycloneDX list of everything that is installed
	$(BIN)/python requirements/sbom.py > sbom.json

clean: ## remove caches and build products (environments stay)
	rm -rf build dist site sbom.json .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .venv-bare
	find src tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +
