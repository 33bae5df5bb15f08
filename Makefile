# make lab · demo · docs · students · solved · test · lint · rust · bench · long · labextension · format
# make wheel · wheel-test · binder · clean · distclean
#
# Each target makes the environment it needs; a second call finds it and installs nothing, unless
# pyproject.toml, the Rust sources or the installed data files have changed since.
#
#   make test ARGS="-k packaging -x"      arguments for pytest
#   make lab PYTHON=/path/to/python3.12   the Python to make .venv with
#   make lab VENV=$CONDA_PREFIX           an environment that exists (an active sfm-kernel
#                                         conda environment is found without that)

ifeq ($(CONDA_DEFAULT_ENV),sfm-kernel)
VENV ?= $(CONDA_PREFIX)
endif
VENV ?= .venv
BIN := $(abspath $(VENV))/bin
ARGS ?=

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
export PYTHON

# A Rust that was just installed is not on the PATH of this shell yet.
export PATH := $(PATH):$(HOME)/.cargo/bin

CRATE := sfm_kernel/native
CARGO := cargo
CARGO_ARGS := --manifest-path $(CRATE)/Cargo.toml
# The core, and the crates around it: the Python module, and the libraries of C programs.
CRATES := $(CRATE) $(patsubst %/Cargo.toml,%,$(wildcard $(CRATE)/*/Cargo.toml))
# What an editable install compiles or copies; Python sources are used in place.
INSTALLED := pyproject.toml tools/setup.sh tools/backend.py \
    $(foreach crate,$(CRATES),$(wildcard $(crate)/Cargo.toml $(crate)/*.rs $(crate)/*.txt)) \
    $(shell find $(CRATES:%=%/src) sfm_kernel/install/data -type f 2>/dev/null)
NOTEBOOKS := $(wildcard notebooks/*.ipynb)

.PHONY: help wheel wheel-test binder lab demo docs students solved test lint format rust loom bench long labextension labextension-test labextension-modules clean distclean FORCE
help:
	@sed -n '1,/^$$/s/^# \{0,1\}//p' $(firstword $(MAKEFILE_LIST))

# Without all that is compiled the package is not installed, whatever the stamp says.
COMPILED := sfm_kernel/_native.abi3.so \
    $(addprefix sfm_kernel/c/lib/,libsfm.so libmpi.so.12 libmpi_abi.so.1)
ifneq ($(wildcard $(COMPILED)),$(COMPILED))
$(VENV)/.sfm-%: FORCE
	@tools/setup.sh $(VENV) $*
else
$(VENV)/.sfm-%: $(INSTALLED)
	@tools/setup.sh $(VENV) $*
endif
.PRECIOUS: $(VENV)/.sfm-%

# The address that JupyterLab prints leads to the notebook, too: there may be no browser to open.
lab: $(VENV)/.sfm-base
	@# JupyterLab refuses to run as root (in a container, say) unless it is told to.
	@[ "$$(id -u)" != 0 ] || root=--allow-root; \
	PATH="$(BIN):$$PATH" exec $(BIN)/python -m jupyterlab $${root:-} --ServerApp.root_dir=notebooks \
	    --LabApp.default_url=/lab/tree/00-first-steps.ipynb $(ARGS)

demo: $(VENV)/.sfm-base
	@PATH="$(BIN):$$PATH" $(BIN)/python tools/demo.py --output build/demo $(ARGS)

# The documentation, in build/docs. The first time it runs the notebooks, which takes some minutes; then
# only those whose cells have changed. ARGS="-D nb_execution_mode=off" runs none.
docs: $(VENV)/.sfm-docs
	@PATH="$(BIN):$$PATH" $(BIN)/python -m sphinx -W --keep-going -d build/doctrees docs build/docs $(ARGS)

# For a class: the notebooks without their solutions, and (nbgrader's source, for teachers) with them.
STUDENTS ?= build/students
SOLVED ?= build/solved
students: $(VENV)/.sfm-base
	@$(BIN)/python -m sfm_kernel.lessons students $(STUDENTS)

solved: $(VENV)/.sfm-base
	@$(BIN)/python -m sfm_kernel.lessons solved $(SOLVED)

# Files of tests, in the order of their names, some more at a time than there are cores: most tests
# wait for processes that they have started. No output after pytest's own: its summary line is the
# last. Who hangs, or crashes, ends the run.
WORKERS ?= --numprocesses=$(shell echo $$(($$(nproc) + 4))) --maxprocesses=6 --dist=loadfile \
    --no-loadscope-reorder --max-worker-restart=0
test: $(VENV)/.sfm-test
	@PATH="$(BIN):$$PATH" $(BIN)/python -m pytest $(WORKERS) $(ARGS)

lint: $(VENV)/.sfm-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest sfm_kernel._native \
	    --allowlist tools/stubtest-allow.txt --ignore-unused-allowlist
	$(BIN)/lint-imports --no-cache
	$(if $(NOTEBOOKS),$(BIN)/nbstripout --verify $(NOTEBOOKS))

format: $(VENV)/.sfm-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(CARGO) fmt $(CARGO_ARGS) --all
	$(if $(NOTEBOOKS),$(BIN)/nbstripout $(NOTEBOOKS))

rust:
	@command -v cargo >/dev/null || { echo "make rust needs cargo: https://www.rust-lang.org/tools/install" >&2; exit 1; }
	$(CARGO) fmt $(CARGO_ARGS) --all --check
	$(CARGO) clippy $(CARGO_ARGS) --workspace --all-targets -- -D warnings
	$(CARGO) test $(CARGO_ARGS) --workspace

# Every interleaving of the lock-free parts, up to the bound that tests/loom/main.rs states. Its own
# target folder: other flags would rebuild everything else. No model run is a failure.
LOOM_ARGS ?=
loom:
	@mkdir -p $(CRATE)/target
	RUSTFLAGS="--cfg loom" $(CARGO) test $(CARGO_ARGS) --release --test loom \
	    --target-dir $(CRATE)/target/loom -- $(LOOM_ARGS) | tee $(CRATE)/target/loom.txt
	@grep -Eq '^test result: ok\. [1-9]' $(CRATE)/target/loom.txt || { echo "no loom model ran" >&2; exit 1; }

# The programs of the notebooks, then comparisons. $(VENV)/.sfm-bench adds MPICH and Dask for these.
bench: $(VENV)/.sfm-bench
	@PATH="$(BIN):$$PATH"; run() { printf '\n== %s ==\n' "$$2"; $(BIN)/python -m "$$@" $(ARGS); }; \
	for name in cpi pingpong dot chunks reductions speedes; do run sfm_kernel.lessons $$name; done; \
	for name in inbox peers collectives farm mpi c sites targets; do run benchmarks $$name; done

# Hours rather than minutes: many hypothesis examples, long stress and kill tests, deeper models,
# and millions of damaged packets, rings and segments, by chance.
long: $(VENV)/.sfm-test loom
	SFM_LONG=1 $(CARGO) test $(CARGO_ARGS) --lib -- damaged --nocapture
	SFM_LONG=1 PATH="$(BIN):$$PATH" $(BIN)/python -m pytest -o timeout=3600 $(ARGS)

# The sources, and from them a wheel for every Linux whose glibc is not older: dist/ is what a release
# has. 2.28 is what the oldest supported distributions have, and what NumPy's wheels ask for.
GLIBC ?= 2.28
wheel: $(VENV)/.sfm-test
	rm -rf dist
	CARGO_TARGET_DIR=$${CARGO_TARGET_DIR:-$(abspath $(CRATE))/target} \
	    $(BIN)/python -m build --outdir dist --config-setting glibc=$(GLIBC)

# In an environment with neither compiler nor cargo nor node.
wheel-test: wheel
	SFM_WHEEL=$$(echo dist/*.whl) SFM_SDIST=$$(echo dist/*.tar.gz) \
	    $(BIN)/python -m pytest tests/packaging $(ARGS)

# Binder's image, as far as it can be made without one, in what Binder gives: a core, 2 GB, 64 MB of
# /dev/shm. All notebooks with 8 engines, and what they take. Needs root, and some twenty minutes.
binder: $(VENV)/.sfm-test
	@[ -n "$$(compgen -G 'dist/*.whl')" ] || { echo "make wheel comes first" >&2; exit 1; }
	$(BIN)/python tools/binder_check.py --wheel $$(echo dist/*.whl) $(ARGS)

# Both need node. Users do not: what is built here is kept in the repository.
labextension: labextension-modules
	cd labextension; export PATH="$(BIN):$$PATH"; jlpm build; jlpm test
	$(BIN)/python tools/labextension_hash.py
	@tools/setup.sh $(VENV) test  # an editable installation has a copy

# That what is kept is what these sources make, too.
labextension-test: labextension-modules
	cd labextension; PATH="$(BIN):$$PATH" jlpm test
	PATH="$(BIN):$$PATH" $(BIN)/python tools/labextension_hash.py --compare

labextension-modules: $(VENV)/.sfm-test
	@command -v node >/dev/null || { echo "this needs node, 20 or newer: https://nodejs.org" >&2; exit 1; }
	cd labextension; PATH="$(BIN):$$PATH" jlpm install --immutable

clean:
	rm -rf build dist docs/notebooks $(CRATE)/target .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf labextension/{lib,node_modules,.yarn,tsconfig.tsbuildinfo}
	rm -rf sfm_kernel/_native*.so sfm_kernel/c/lib $(VENV)/.sfm-*
	find sfm_kernel benchmarks tests tools notebooks -name __pycache__ -prune -exec rm -rf {} +

# Only what make made itself: never a conda environment.
distclean: clean
	rm -rf .venv
