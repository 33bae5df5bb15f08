"""mpi4py without a launcher, in a program that has imported sfm_kernel: a world of one, unless
another MPI is there."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

import sfm_kernel
from tests.mpi.launching import PATIENCE

IMPORTS = "import sfm_kernel, sys\nfrom mpi4py import MPI\n"
VERSION = "print(MPI.COMM_WORLD.size, MPI.Get_library_version().split()[0])\n"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python with our packages, in whose folders no other MPI is found."""
    folder = tmp_path_factory.mktemp("python")
    venv.create(folder, symlinks=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    paths = [Path(sfm_kernel.__file__).parents[1], sysconfig.get_path("purelib")]
    (site / "ours.pth").write_text("".join(f"{path}\n" for path in paths))
    return str(folder / "bin" / "python")


def run(python: str, text: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, "-c", text],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def test_a_program_is_a_world_of_one_that_spawns(python: str) -> None:
    worker = (
        "from mpi4py import MPI; parent = MPI.Comm.Get_parent(); "
        "parent.send((MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size), dest=0); parent.Disconnect()"
    )
    text = (
        f"{IMPORTS}{VERSION}"
        f"both = MPI.COMM_SELF.Spawn(sys.executable, ['-c', {worker!r}], maxprocs=2)\n"
        "print([both.recv(source=rank) for rank in range(2)])\n"
        "both.Disconnect()\n"
    )
    done = run(python, text)
    assert (done.stdout, done.stderr) == ("1 sfm-kernel,\n[(0, 2), (1, 2)]\n", "")


CHOICES = {"MPI4PY_LIBMPI": "/no/library", "MPI4PY_MPIABI": "openmpi", "PMI_RANK": "0"}


@pytest.mark.parametrize("name", CHOICES)
def test_another_mpi_that_is_chosen_stands(python: str, name: str) -> None:
    done = run(python, IMPORTS + VERSION, **{name: CHOICES[name]})
    assert done.returncode == 1 and "sfm-kernel," not in done.stdout
    assert "libmpi.so" in done.stderr or "/no/library" in done.stderr


@pytest.mark.parametrize("first", ["", "sfm_kernel.join('w', name='A').close()\n"])
def test_another_mpi_that_is_installed_stands(first: str) -> None:
    """Here it is MPICH. Also if the core, which has MPI's functions, is loaded before it."""
    done = run(sys.executable, f"import sfm_kernel\n{first}{IMPORTS}{VERSION}")
    assert done.stdout.startswith("1 MPICH"), done.stderr


@pytest.mark.jupyter
def test_a_notebook_has_a_pool(python: str) -> None:
    """In the kernel itself, which loads the extension, or has used ``%sfm``."""
    cell = (
        "%load_ext sfm_kernel\n"
        "from mpi4py.futures import MPIPoolExecutor\n"
        "with MPIPoolExecutor(2) as pool:\n"
        "    found = list(pool.map(abs, [-1, 2]))"
    )
    text = (
        "from ipykernel.inprocess.manager import InProcessKernelManager\n"
        "manager = InProcessKernelManager()\n"
        "manager.start_kernel()\n"
        f"manager.kernel.shell.run_cell({cell!r}).raise_error()\n"
        "print(manager.kernel.shell.user_ns['found'])\n"
    )
    done = run(python, text)
    assert done.stdout.splitlines()[-1:] == ["[1, 2]"], done.stderr
