"""C programs of these tests: compiled once, with all warnings as errors."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

import sfm_kernel
from sfm_kernel.c import LIBMPI

PROGRAMS = Path(__file__).parent / "programs" / "sfm"
_PACKAGE = Path(sfm_kernel.__file__).parent
INCLUDE = _PACKAGE / "c" / "include"
_STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-g", "-O1"]
_DIALECT = {".c": ("cc", "-std=c11"), ".cpp": ("c++", "-std=c++17")}


needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
needs_mpi = [
    needs_cc,
    pytest.mark.skipif(not Path(LIBMPI).exists(), reason="libmpi.so.12 was not built"),
]


@cache
def library(name: str = "libsfm.so") -> Path:
    """A library as it was installed, or as cargo has just made it, without a version."""
    made = _PACKAGE / "native/target/release" / f"{name.partition('.so')[0]}.so"
    found = [path for path in (_PACKAGE / "c/lib" / name, made) if path.exists()]
    if not found:
        pytest.fail(f"there is no {name}: cargo build --release, in sfm_kernel/native")
    return max(found, key=lambda path: path.stat().st_mtime)


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="sfm-test-c-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def compiler(source: Path) -> list[str]:
    """The compiler for a file, and its dialect."""
    command, dialect = _DIALECT[source.suffix]
    if shutil.which(command) is None:
        pytest.skip(f"no {command} on this machine")
    return [command, dialect]


@cache
def program(name: str, text: str = "") -> Path:
    """A program of ``programs/sfm``, or one of this text; compiled."""
    source = PROGRAMS / name
    target = _folder() / name.replace(".", "-")
    if text:
        source = _folder() / name
        source.write_text(text)
    words = [*compiler(source), *_STRICT, "-D_GNU_SOURCE", f"-I{INCLUDE}", str(source)]
    words += [str(library()), f"-Wl,-rpath,{library().parent}", "-pthread", "-o", str(target)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


@cache
def variant(source: Path, *flags: str) -> Path:
    """Any program in C that uses sfm.h, compiled with these flags alone."""
    target = _folder() / "".join((source.stem, *flags))
    words = [*compiler(source), *flags, "-D_GNU_SOURCE", f"-I{INCLUDE}", str(source)]
    words += [str(library()), f"-Wl,-rpath,{library().parent}", "-o", str(target)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target
