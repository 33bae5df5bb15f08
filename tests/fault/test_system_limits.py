"""Limits of a shell: who meets one reads which it is, and how to raise it."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from sfm_kernel.errors import BadName, SystemLimit, limit_named
from sfm_kernel.jupyter.limits import check_descriptors

RUN = """
import sfm_kernel
if __name__ == "__main__":
    print(sum(sfm_kernel.run(lambda sfm: sfm.rank, 4)))
"""
MPI = "from mpi4py import MPI; print(MPI.COMM_WORLD.allreduce(1))"
C = """
#include <mpi.h>
int main(int argc, char **argv) { MPI_Init(&argc, &argv); return MPI_Finalize(); }
"""
FILES, SIZE = "`ulimit -n 4096`", "`ulimit -f unlimited`"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"run.py": RUN, "mpi.py": MPI, "a.c": C}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def limited(folder: Path, limit: str, *words: str) -> tuple[int, str]:
    """The exit status and stderr of Python in a shell with this limit."""
    line = f'ulimit {limit}; exec "$@"'
    environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache")}
    command = ["bash", "-c", line, "bash", sys.executable, *words]
    # Pipes: a file would have the limit, too.
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return done.returncode, done.stderr


LAUNCHER = ("-m", "sfm_kernel.mpi", "-n", "2")


@pytest.mark.parametrize(
    ("limit", "words", "advice"),
    [
        ("-n 9", ("run.py",), FILES),
        ("-n 16", (*LAUNCHER, "mpi.py"), FILES),
        ("-f 10", ("run.py",), SIZE),
        ("-f 10", (*LAUNCHER, "mpi.py"), SIZE),
        ("-f 0", (*LAUNCHER, "a.c"), SIZE),  # it cannot be compiled
    ],
)
def test_the_limit_is_named(limit: str, words: tuple[str, ...], advice: str, folder: Path) -> None:
    status, said = limited(folder, limit, *words)
    assert status != 0 and advice in said.splitlines()[-1], said
    assert "Traceback" not in said or words == ("run.py",)  # the program's own


def test_a_program_in_c_gets_no_signal(folder: Path) -> None:
    """The first call of MPI has asked for a file that was too large, which SIGXFSZ ended."""
    words = (*LAUNCHER, "a.c")
    assert limited(folder, "-f unlimited", *words) == (0, "")
    assert limited(folder, "-f 1000", *words) == (0, "")
    status, said = limited(folder, "-f 100", *words)
    assert status == 15 and SIZE in said and "MPI_Init" in said, said


@pytest.mark.parametrize("chosen", ["/proc/nothing", f"/tmp/{'long' * 1250}"])
def test_a_rank_names_a_root_that_cannot_be(chosen: str, folder: Path) -> None:
    """A rank asks the core, by the same rule as Python: see tests/unit/test_roots.py."""
    command = [sys.executable, *LAUNCHER, "mpi.py"]
    environment = os.environ | {"SFM_DIR": chosen}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    (said,) = done.stderr.splitlines()
    assert f"SFM_DIR={chosen[:6]}" in said.replace("'", "").replace('"', "") and len(said) < 400
    assert "cannot hold your worlds: " in said and "Set SFM_DIR to a folder of your own" in said


def test_engines_are_not_started_without_descriptors() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        check_descriptors(2)
        with pytest.raises(SystemLimit, match=r"may have .* files open, and needs more"):
            check_descriptors(1 << 40)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_other_failures_stay_what_they_are() -> None:
    problem = FileNotFoundError(errno.ENOENT, "no such file")
    assert limit_named(problem) is problem


@pytest.mark.parametrize(
    ("length", "left"), [(900, "A" * 900), (5000, f"{'A' * 80}… (5,000 characters)")]
)
def test_what_a_user_has_given_is_cut(length: int, left: str) -> None:
    for end in ("", ".", "':"):  # of a sentence, and of a quotation
        assert str(BadName(f"the name {'A' * length}{end} or")) == f"the name {left}{end} or"
