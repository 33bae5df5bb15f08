"""Programs for mpi4py give here what they give with the real mpi4py on MPICH.

Each program of ``programs`` runs on both, and prints one JSON document: name of a case -> its
result. The two documents are compared.

    python -m tests.mpi.test_against_mpi4py PROGRAM N    both results of cases that differ, in full
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest

Document = dict[str, Any]

PROGRAMS = Path(__file__).with_name("programs")
SECONDS = 60

RUNS = {
    "collectives": (5,),
    "communicators": (1, 4),
    "datatypes": (1,),
    "errors": (2,),
    "intercommunicators": (4,),
    "module": (1,),
    "objects": (4,),
    "p2p_buffers": (1, 4),
    "reductions": (5,),
    "requests": (1, 3),
    "topologies": (5,),
}
"""Program -> numbers of ranks. Most make communicators of fewer ranks themselves."""

OTHERWISE = {
    "communicators": {"Split": "a color below 0 is an error here"},
    "datatypes": {
        "struct of resized": "its extent is the standard's (MPI 4.1, 5.1.7): its parts have bounds",
        "subarray": "a wrong start is no wrong number",
    },
    "errors": {"too large a tag": "all that an int can hold are tags here"},
    "topologies": {"Compute_dims": "no processes cannot be divided"},
}
"""Program -> ends of cases whose results differ on purpose, and why."""

ELSEWHERE = """
    Win File
    Spawn Spawn_multiple Accept Connect Join Open_port Close_port Publish_name Unpublish_name
    Lookup_name Register_datarep Get_abi_version Get_abi_info Get_abi_fortran_info
    Revoke Is_revoked Get_failed Ack_failed Agree Iagree Shrink Ishrink
"""
"""Functions that tests/c tests."""

START_AND_END = "Abort Init Init_thread Finalize"
"""Functions that have tests of their own."""

COLLECTIVES = """
    Barrier Bcast Gather Gatherv Scatter Scatterv Allgather Allgatherv Alltoall Alltoallv Alltoallw
    Reduce Allreduce Reduce_scatter Reduce_scatter_block Scan Exscan
"""
OF_NEIGHBOURS = "allgather allgatherv alltoall alltoallv alltoallw"

ALL = [(program, ranks) for program, numbers in RUNS.items() for ranks in numbers]


def command(real: bool, ranks: int) -> list[str]:
    """The start of the command, which a program's path and arguments follow."""
    if not real:
        limit = ["--timeout", str(SECONDS)]
        return [sys.executable, "-m", "sfm_kernel.mpi", "-n", str(ranks), *limit]
    beside = Path(sys.executable).with_name("mpiexec")
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    assert mpiexec is not None, "MPICH's mpiexec is not here: pip install 'mpich>=5'"
    # By its module, so that a rank that raises ends the others.
    return [mpiexec, "-n", str(ranks), sys.executable, "-m", "mpi4py"]


def document(program: str, ranks: int, *, real: bool, uncut: bool = False) -> Document:
    """The document that a program prints."""
    done = subprocess.run(
        [*command(real, ranks), str(PROGRAMS / f"{program}.py")],
        capture_output=True,
        text=True,
        timeout=SECONDS + 20,
        env=os.environ | ({"CASES": "whole"} if uncut else {}),
    )
    assert done.returncode == 0, f"{program} of {ranks}:\n{done.stdout[-500:]}\n{done.stderr}"
    result: Document = json.loads(done.stdout)
    return result


@cache
def names() -> dict[str, set[str]]:
    """Kind of object -> the names that the real one has."""
    return {kind: words(text) for kind, text in document("names", 1, real=True).items()}


def differences(
    real: Document, ours: Document, otherwise: Iterable[str] = (), most: int = 300
) -> Iterator[str]:
    """A text for each case whose results differ but should not, or should differ but do not.

    Args:
        otherwise: ends of the names of cases that should differ.
    """
    ends = tuple(otherwise)
    for case in dict.fromkeys([*real, *ours]):
        expected, got = (str(found.get(case, "(no such case)")) for found in (real, ours))
        if (expected != got) != case.endswith(ends):
            yield f"{case}\n    real: {expected[:most]}\n    ours: {got[:most]}"


def words(names: str) -> set[str]:
    return set(names.split())


def test_every_name_of_mpi4py_is_there() -> None:
    ours = document("names", 1, real=False)
    missing = {kind: real - words(ours.get(kind, "")) for kind, real in names().items()}
    assert not {kind: names for kind, names in missing.items() if names}


def test_the_programs_call_every_function() -> None:
    texts = [path.read_text(encoding="utf-8") for path in PROGRAMS.glob("*.py")]
    called = set(re.findall(r"\w+", " ".join(texts)))
    # The programs put together the names of a family.
    for word in words(COLLECTIVES):
        called |= {f"I{word.lower()}", f"{word}_init"}
    for word in words(OF_NEIGHBOURS):
        called |= {f"Neighbor_{word}", f"Ineighbor_{word}", f"Neighbor_{word}_init"}
    for verb, many in product(
        words("Test Wait test wait Get_status_ get_status_"), words("any all some")
    ):
        called.add(verb + many)
    listed = names() | {"MPI": {name for name in names()["MPI"] if not name.isupper()}}
    needed = set().union(*(listed[kind] for kind in listed.keys() - {"Win", "File"}))
    assert needed - called <= words(ELSEWHERE) | words(START_AND_END)


@pytest.mark.parametrize(("program", "ranks"), ALL)
def test_results_are_those_of_mpi4py(program: str, ranks: int) -> None:
    real, ours = (document(program, ranks, real=real) for real in (True, False))
    assert real, "no case has run"
    found = list(differences(real, ours, OTHERWISE.get(program, ())))
    assert not found, "\n".join([f"{len(found)} cases differ", *found])


def main() -> None:
    """Print the cases that differ, as both give them now, in full."""
    parser = argparse.ArgumentParser(description="Compare with the real mpi4py.")
    parser.add_argument("program", choices=RUNS)
    parser.add_argument("ranks", type=int)
    options = parser.parse_args()
    both = [
        document(options.program, options.ranks, real=real, uncut=True) for real in (True, False)
    ]
    print("\n".join(differences(*both, most=2000)) or "no case differs")


if __name__ == "__main__":
    main()
