"""C on the queue: programs and cells in C, beside MPICH, Python and compiled loops.

What a message takes between programs in C, in Python, and in C on MPICH; calls of more ranks than
there are cores; pi, a matrix product and a task farm; and how long a cell takes in a notebook.
Everything is measured in turn, in one run; the last table compares with what SFM wants to reach.

Source: Chou, Nestinger and Cheng, "Ch MPI: Interpretive Parallel Computing in C" (2010).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sfm_kernel.bench import pingpong
from sfm_kernel.bench.arguments import names
from sfm_kernel.bench.c import parts, programs, verdicts
from sfm_kernel.bench.c.parts import cells, crowds, farm, loops, matrices, messages
from sfm_kernel.bench.c.verdicts import summary, tables
from sfm_kernel.bench.messages import chosen
from sfm_kernel.bench.others import crew
from sfm_kernel.bench.rows import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARTS = ("messages", "crowds", "loops", "matrices", "farm", "cells", "python")
QUICK_SIZES = ("8 B", "64 kB", "1 MB")


def rows(
    *,
    some: Sequence[str] = PARTS,
    mpich: bool = True,
    repeat: int = 5,
    seconds: float = 0.1,
    quick: bool = False,
) -> Iterator[Row]:
    """Measure parts of this benchmark; each row says in ``part`` where it comes from.

    Args:
        some: of ``PARTS``; their columns are described at the functions of these names.
        mpich: whether MPICH and mpi4py are measured, where they are installed.
        repeat: rounds. seconds: for one measurement of a message or call.
        quick: few and small, to see that it works.
    Raises:
        ValueError: an argument is out of range; nothing was started.
        SFMError: there is no compiler, or a program failed.
    """
    if repeat < 1 or not seconds > 0:
        raise ValueError(f"repeat {repeat}: at least 1; seconds {seconds}: more than 0")
    wanted = chosen(some, PARTS, "part")
    small: dict[str, dict[str, Any]] = {
        "messages": {"sizes": QUICK_SIZES},
        "crowds": {"ranks": 3, "pairs": 1},
        "loops": {"n": 10_000, "processes": (1, 2)},
        "matrices": {"sizes": (60, 50, 40), "workers": (1, 2)},
        "farm": {"tasks": 4, "particles": 100, "workers": (1, 2)},
    }
    timed = {"mpich": mpich, "repeat": repeat, "seconds": seconds}
    given: dict[str, dict[str, Any]] = {
        "messages": timed,
        "crowds": timed | {"seconds": 3 * seconds},
        "loops": {"repeat": repeat},
        "matrices": {"mpich": mpich, "repeat": repeat},
        "farm": {"mpich": mpich, "repeat": repeat},
        "cells": {"repeat": 2 * repeat},
        "python": timed,
    }
    measuring: dict[str, Callable[..., Iterator[Row]]] = {
        "messages": messages, "crowds": crowds, "loops": loops, "matrices": matrices,
        "farm": farm, "cells": cells, "python": python,
    }  # fmt: skip
    for part in wanted:
        options = given[part] | (small.get(part, {}) if quick else {})
        for row in measuring[part](**options):
            yield {"part": part} | row


def python(*, mpich: bool = True, repeat: int = 5, seconds: float = 0.1) -> Iterator[Row]:
    """Messages from Python beside mpi4py's, and encrypted ones beside pyzmq's: as ``pingpong``."""
    for some, mechanisms in (verdicts.SHARED, verdicts.ENCRYPTED):
        yield from pingpong.rows(
            messages=some,
            mechanisms=[one for one in mechanisms if mpich or one not in pingpong.CREWS],
            repeat=repeat,
            seconds=seconds,
        )


# The command line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``python -m sfm_kernel.bench c``."""
    parser.add_argument(
        "--only",
        type=names(PARTS, "part"),
        default=PARTS,
        metavar="PART,…",
        help=f"some of {', '.join(PARTS)}",
    )


def notes(options: argparse.Namespace) -> list[str]:
    """What is left out here, and how to get it; otherwise which compiler is used."""
    lines = [programs.absent(one) for one in (programs.SFM, programs.MPICH)]
    found = [line for line in lines if line is not None]
    command = programs.compiler()
    said = [f"compiler: {' '.join(command)} {' '.join(programs.FLAGS)}"] if command else []
    return [*said, *dict.fromkeys(found), *crew.left_out(["mpi4py"])]


def measure(options: argparse.Namespace) -> Iterator[Row]:
    """The rows that the command line asks for."""
    return rows(
        some=options.only,
        repeat=options.repeat or (2 if options.quick else 5),
        seconds=0.02 if options.quick else 0.1,
        quick=options.quick,
    )


def plot(measured: Sequence[Row]) -> Figure:
    """Of what was measured: latency and bandwidth against size, and the workers' speed-up."""
    from sfm_kernel.bench.c.pictures import drawn

    return drawn(measured)


__all__ = [
    "PARTS", "add_arguments", "cells", "crowds", "farm", "loops", "matrices", "measure", "messages",
    "notes", "parts", "plot", "python", "rows", "summary", "tables",
]  # fmt: skip
