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

PROGRAMS = Path(__file__).parent / "programs" / "sfm"
_PACKAGE = Path(sfm_kernel.__file__).parent
INCLUDE = _PACKAGE / "c" / "include"
_STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-g", "-O1"]
_DIALECT = {".c": ("cc", "-std=c11"), ".cpp": ("c++", "-std=c++17")}


@cache
def library() -> Path:
    """libsfm.so: the installed one, or the one that cargo has just made."""
    places = [_PACKAGE / "c" / "lib", _PACKAGE / "native" / "target" / "release"]
    found = [place / "libsfm.so" for place in places if (place / "libsfm.so").exists()]
    if not found:
        pytest.fail("there is no libsfm.so: cargo build --release -p sfm-c, in sfm_kernel/native")
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
