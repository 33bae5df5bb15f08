"""MPICH, beside ours. Its package is a dependency of the tests: nothing is skipped."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from functools import cache
from pathlib import Path

import pytest


@cache
def wrapper(name: str = "mpicc") -> str:
    """MPICH's mpicc or mpicxx: this Python's own, or the one on the path."""
    own = Path(sysconfig.get_path("scripts")) / name
    for found in filter(None, (shutil.which(str(own)), shutil.which(name))):
        if _header(found):
            return found
    pytest.fail(f"MPICH's {name} is not here: pip install 'mpich>=5'")


def include() -> Path:
    """The folder of MPICH's mpi.h."""
    found = _header(wrapper())
    assert found
    return found


def compiled(source: Path, target: Path, abi: bool = False) -> str:
    """Compile and link one source with MPICH; return the compiler's messages, if there are any.

    Args:
        abi: for the ABI of MPI 5.0, which MPICH has, too.
    """
    name = ("mpicxx" if source.suffix == ".cpp" else "mpicc") + ("_abi" if abi else "")
    words = [wrapper(name), "-Wall", "-Wextra", "-o", str(target), str(source), "-lm", "-pthread"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@cache
def _header(command: str) -> Path | None:
    """The folder of the mpi.h that a compiler wrapper uses, if that is MPICH's."""
    shown = subprocess.run([command, "-show"], capture_output=True, text=True, check=False).stdout
    for name in re.findall(r"-I\s*(\S+)", shown):
        header = Path(name) / "mpi.h"
        if header.exists() and "MPICH_VERSION" in header.read_text():
            return header.parent
    return None
