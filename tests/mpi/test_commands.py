"""mpiexec and mpicc of this package: what courses and build scripts call."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sfm_kernel.c.cache import LASTING, Cache
from sfm_kernel.mpi import discovery
from tests.c.building import needs_mpi
from tests.mpi.launching import LAUNCHER

C = """
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int one = 1, all;
    MPI_Init(&argc, &argv);
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("%d\\n", all);
    MPI_Finalize();
    return 0;
}
"""
PYTHON = "from mpi4py import MPI; print(MPI.COMM_WORLD.allreduce(1), flush=True)"


@pytest.fixture(scope="module")
def folder() -> str:
    """The folder that --path prints."""
    shown = subprocess.run([*LAUNCHER, "--path"], capture_output=True, text=True, check=True)
    (printed,) = shown.stdout.splitlines()
    assert shown.stderr == ""
    return printed


def shell(command: str, cwd: Path, path: str = "", **variables: str) -> str:
    """The output of a shell's line, which must succeed, with a folder before PATH."""
    environment = {**os.environ, **variables, "PATH": f"{path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-ec", command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("launcher", ["mpiexec -n 4", "mpirun -np 4"])
def test_python(launcher: str, folder: str, tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(PYTHON)
    options = "--oversubscribe --allow-run-as-root"
    assert shell(f"{launcher} {options} python prog.py", tmp_path, folder) == "4\n" * 4


@pytest.mark.parametrize("pytestmark", needs_mpi)
def test_c_and_cxx(pytestmark: object, folder: str, tmp_path: Path) -> None:
    (tmp_path / "prog.c").write_text(C)
    assert shell("mpicc prog.c -o prog; mpiexec -n 4 ./prog", tmp_path, folder) == "4\n" * 4
    (tmp_path / "prog.cpp").write_text(C)
    build = "mpic++ -O2 prog.cpp -o plus; mpicxx -show; mpiexec -n 2 plus"
    assert shell(build, tmp_path, folder).endswith("2\n2\n")


def test_within_ranks(folder: str, tmp_path: Path) -> None:
    """A rank finds ours first, also where another MPI's commands are on the PATH."""
    (tmp_path / "inner.py").write_text(PYTHON)
    other = tmp_path / "other"
    other.mkdir()
    for name in ("mpiexec", "mpicc"):
        (other / name).write_text("#!/bin/sh\necho another\n")
        (other / name).chmod(0o755)
    (tmp_path / "outer.py").write_text(
        "import shutil, subprocess, sys\n"
        "from mpi4py import MPI\n"
        "if MPI.COMM_WORLD.rank == 0:\n"
        "    print(shutil.which('mpiexec'), shutil.which('mpicc'), flush=True)\n"
        "    subprocess.run('mpiexec -n 3 python inner.py', shell=True, check=True)\n"
    )
    said = shell(f"{sys.executable} -m sfm_kernel.mpi -n 2 outer.py", tmp_path, str(other))
    assert said == f"{folder}/mpiexec {folder}/mpicc\n" + "3\n" * 3


def test_a_file_of_the_working_folder_replaces_no_module(folder: str, tmp_path: Path) -> None:
    for name in ("argparse", "json", "socket"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('this is mine')")
    assert shell("mpiexec -n 1 true && echo ran", tmp_path, folder) == "ran\n"


def test_it_is_a_folder_of_our_own_that_stays(folder: str, tmp_path: Path) -> None:
    """Not the environment's bin, where another MPI may have its own; no program pushes it out."""
    assert {*os.listdir(folder)} == {"mpiexec", "mpirun", "mpicc", "mpicxx", "mpic++"}
    assert not Path(folder).is_relative_to(sys.prefix)
    small = Cache(str(tmp_path), largest=1)
    for name in (f"{LASTING}one", "another"):
        small.keep(small.new(), name, ())
        os.utime(tmp_path / name, (1, 1))  # not used for long
    small.keep(small.new(), "third", ())
    assert {*os.listdir(tmp_path)} == {f"{LASTING}one", "third"}


def test_a_notebook_takes_ours_if_there_is_no_other(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    (tmp_path / "mpiexec").write_text("#!/bin/sh\n")
    (tmp_path / "mpiexec").chmod(0o755)
    discovery.offer()
    assert os.environ["PATH"] == f"{tmp_path}:/bin"
    assert discovery.other("mpiexec") == f"{tmp_path}/mpiexec"
    (tmp_path / "mpiexec").unlink()
    for _ in range(2):  # once is enough
        discovery.offer()
        first, *others = os.environ["PATH"].split(":")
        assert {*os.listdir(first)} == {*os.listdir(folder)}
        assert others == [str(tmp_path), "/bin"] and discovery.other("mpiexec") is None
