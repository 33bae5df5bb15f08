#!/usr/bin/env bash
# Makes the environment VENV if needed and installs sfm-kernel into it, editable.
#
#   tools/setup.sh VENV base|test|docs|bench      (what `make` calls; PYTHON names another Python)
#
# An existing environment is used unchanged (also a conda environment). Every failure ends with a
# line that says what to do.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=$1
extra=$2

say() {
    echo
    printf '%s\n' "$@"
} >&2

stop() {
    say "$@"
    exit 1
}

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

version_of() {
    "$1" -c 'import platform; print(platform.python_version())' 2>/dev/null || echo "not a Python that runs"
}

# The first Python on the PATH that is new enough; only $PYTHON if the user named one.
find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
        if new_enough "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    stop "sfm-kernel needs Python 3.11 or newer; '${PYTHON:-python3}' is $(version_of "${PYTHON:-python3}")." \
        "Install one (Debian 12, Ubuntu 24.04: apt install python3 python3-venv; or conda:" \
        "conda env create -f environment.yml), or name one: make PYTHON=/path/to/python3.12"
}

make_venv() {
    local python
    python=$(find_python)
    "$python" -c 'import venv, ensurepip' 2>/dev/null || stop \
        "$python cannot make virtual environments: its venv or ensurepip module is missing." \
        "Debian and Ubuntu: apt install python3-venv. Or name another: make PYTHON=/path/to/python3.12"
    echo "Making $venv with Python $(version_of "$python")"
    "$python" -m venv "$venv" || {
        rm -rf "$venv"  # an incomplete folder would be taken for an environment
        stop "No virtual environment could be made in $venv; the reason is above."
    }
}

[ -x "$venv/bin/python" ] || make_venv
python=$venv/bin/python

new_enough "$python" || stop \
    "$venv has Python $(version_of "$python"), and sfm-kernel needs 3.11 or newer." \
    "Remove that folder and run make again."
"$python" -m pip --version >/dev/null 2>&1 || "$python" -m ensurepip >/dev/null || stop \
    "$venv has no pip and cannot get one. Remove that folder and run make again."

# rustc links with `cc`. conda's compiler has another name, which it puts into CC.
if ! command -v cc >/dev/null; then
    [ -n "${CC:-}" ] || stop "No C compiler is on the PATH; Rust links with it." \
        "Debian and Ubuntu: apt install gcc libc6-dev. Or use conda (environment.yml)."
    triple=$("$python" -c 'import platform; print(platform.machine() + "_unknown_linux_gnu")')
    export "CARGO_TARGET_${triple^^}_LINKER=$CC"
fi
if ! command -v cargo >/dev/null; then
    say "No cargo on the PATH: the build will try to fetch Rust by itself, which needs a network."
fi

target=.
[ "$extra" = base ] || target=".[$extra]"
# pip rather than `maturin develop`: it also puts install/data under the environment's prefix.
"$python" -m pip install --disable-pip-version-check --editable "$target" |
    { grep -v '^Requirement already satisfied' || true; } || {
    if command -v cargo >/dev/null; then
        stop "The installation failed; the reason is above. If it is about Rust: the core needs" \
            "Rust $(sed -n 's/^rust-version = "\(.*\)"/\1/p' sfm_kernel/native/Cargo.toml) or newer and here is $(cargo --version || true). Debian's package is too old;" \
            "'rustup update', or conda (environment.yml), gives a new one. Then run make again."
    fi
    stop "The installation failed, and there is no cargo: without Rust the core cannot be compiled." \
        "Install Rust (https://www.rust-lang.org/tools/install, or conda with environment.yml)," \
        "open a new shell so that cargo is on the PATH, and run make again."
}
touch "$venv/.sfm-base" "$venv/.sfm-$extra"
