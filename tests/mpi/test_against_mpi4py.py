"""Programs for mpi4py give here what they give with the real mpi4py on MPICH.

Each program of ``programs`` prints one JSON document: name of a case -> its result. What the real
one prints is stored in ``programs/expected``; where it is installed, this is checked, too.

    python -m tests.mpi.test_against_mpi4py --record            store what the real one prints now
    python -m tests.mpi.test_against_mpi4py --show PROGRAM N    both results of cases that differ
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
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from sfm_kernel.lessons.measure.launched import absent

Document = dict[str, Any]

PROGRAMS = Path(__file__).with_name("programs")
EXPECTED = PROGRAMS / "expected"
SECONDS = 120

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

NAMES = "names"
"""The program that prints the names of MPI."""

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
"""What tests/c has tests of."""

START_AND_END = "Abort Init Init_thread Finalize"
"""They have tests of their own."""

COLLECTIVES = """
    Barrier Bcast Gather Gatherv Scatter Scatterv Allgather Allgatherv Alltoall Alltoallv Alltoallw
    Reduce Allreduce Reduce_scatter Reduce_scatter_block Scan Exscan
"""
OF_NEIGHBOURS = "allgather allgatherv alltoall alltoallv alltoallw"

ALL = [(program, ranks) for program, numbers in RUNS.items() for ranks in numbers]


def command(real: bool, ranks: int) -> list[str]:
    """What a program's path and arguments are added to."""
    if not real:
        limit = ["--timeout", str(SECONDS)]
        return [sys.executable, "-m", "sfm_kernel.mpi", "-n", str(ranks), *limit]
    own = Path(sys.executable).with_name("mpiexec")
    mpiexec = str(own) if own.exists() else shutil.which("mpiexec")
    assert mpiexec is not None
    # By its module, so that a rank that raises ends the others.
    return [mpiexec, "-n", str(ranks), sys.executable, "-m", "mpi4py"]


def document(program: str, ranks: int, *, real: bool, whole: bool = False) -> Document:
    """What a program prints."""
    done = subprocess.run(
        [*command(real, ranks), str(PROGRAMS / f"{program}.py")],
        capture_output=True,
        text=True,
        timeout=SECONDS + 20,
        env=os.environ | ({"CASES": "whole"} if whole else {}),
    )
    assert done.returncode == 0, f"{program} of {ranks}:\n{done.stdout[-500:]}\n{done.stderr}"
    result: Document = json.loads(done.stdout)
    return result


def stored(program: str) -> dict[str, Document]:
    """Number of ranks -> what the real one has printed."""
    path = EXPECTED / f"{program}.json"
    result: dict[str, Document] = json.loads(path.read_text(encoding="utf-8"))
    return result


def differences(
    real: Document, ours: Document, otherwise: Iterable[str] = (), most: int = 300
) -> Iterator[str]:
    """A text for each case whose results are not the same, but should be; or the other way round.

    Args:
        otherwise: ends of the names of cases that should differ.
    """
    ends = tuple(otherwise)
    for case in dict.fromkeys([*real, *ours]):
        one, other = (str(found.get(case, "(no such case)")) for found in (real, ours))
        if (one != other) != case.endswith(ends):
            yield f"{case}\n    real: {one[:most]}\n    ours: {other[:most]}"


def words(names: str) -> set[str]:
    return set(names.split())


def test_every_name_of_mpi4py_is_there() -> None:
    real, ours = stored(NAMES)["1"], document(NAMES, 1, real=False)
    missing = {kind: words(real[kind]) - words(ours.get(kind, "")) for kind in real}
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
        ("Test", "Wait", "test", "wait", "Get_status_"), words("any all some")
    ):
        called.add(verb + many)
    listed = {kind: words(names) for kind, names in stored(NAMES)["1"].items()}
    listed["MPI"] = {name for name in listed["MPI"] if not name.isupper()}
    own = set().union(*(listed[kind] for kind in listed.keys() - {"Win", "File"}))
    assert own - called <= words(ELSEWHERE) | words(START_AND_END)


@pytest.mark.parametrize(("program", "ranks"), ALL)
def test_results_are_those_of_mpi4py(program: str, ranks: int) -> None:
    ours = document(program, ranks, real=False)
    found = list(differences(stored(program)[str(ranks)], ours, OTHERWISE.get(program, ())))
    assert not found, "\n".join([f"{len(found)} cases differ", *found])


@pytest.mark.skipif(absent("mpi4py") is not None, reason="mpi4py or its mpiexec is not installed")
@pytest.mark.parametrize(("program", "ranks"), ALL)
def test_stored_results_are_those_of_mpi4py_still(program: str, ranks: int) -> None:
    found = list(differences(document(program, ranks, real=True), stored(program)[str(ranks)]))
    assert not found, "\n".join(["record them again, see above", *found])


# The command line


def record(programs: list[str]) -> None:
    """Store what the real one prints."""
    EXPECTED.mkdir(exist_ok=True)
    for program in programs:
        if program == NAMES:
            store(program, {"1": document(program, 1, real=True)})
            continue
        found = {str(ranks): document(program, ranks, real=True) for ranks in RUNS[program]}
        store(program, found)
        print(f"{program}: {', '.join(f'{len(found[ranks])} cases of {ranks}' for ranks in found)}")


def store(program: str, found: dict[str, Document]) -> None:
    text = json.dumps(found, indent=0, ensure_ascii=False)
    (EXPECTED / f"{program}.json").write_text(text + "\n", encoding="utf-8")


def show(program: str, ranks: int) -> None:
    """Print the cases that differ, as both give them now, in full."""
    both = [document(program, ranks, real=real, whole=True) for real in (True, False)]
    print("\n".join(differences(*both, most=2000)) or "no case differs")


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare with the real mpi4py.")
    parser.add_argument("--record", nargs="*", choices=[NAMES, *RUNS])
    parser.add_argument("--show", nargs=2, metavar=("PROGRAM", "RANKS"))
    options = parser.parse_args()
    if options.record is not None:
        record(options.record or [NAMES, *RUNS])
    if options.show is not None:
        show(options.show[0], int(options.show[1]))


if __name__ == "__main__":
    main()
