"""C on the queue: programs and cells in C, beside MPICH, Python and compiled loops.

The programs of notebook 09, calls of more ranks than cores, and the time of a cell in a notebook.
All measurements take turns in one run; the last table compares with SFM's targets.

Source: Chou, Nestinger and Cheng, "Ch MPI: Interpretive Parallel Computing in C" (2010).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from benchmarks.c import parts
from benchmarks.c.verdicts import summary, tables
from sfm_kernel.lessons import c
from sfm_kernel.lessons.c import programs
from sfm_kernel.lessons.c.plots import drawn as plot
from sfm_kernel.lessons.measure.arguments import chosen, names, numbers
from sfm_kernel.lessons.measure.launched import left_out
from sfm_kernel.lessons.measure.results import Part
from sfm_kernel.lessons.measure.rows import Row

PARTS = ("messages", "crowds", "calls", "loops", "matrices", "farm", "cells")
QUICK_SIZES = ("8 B", "64 kB", "1 MB")


def rows(
    *,
    some: Sequence[str] = PARTS,
    mpich: bool = True,
    repeat: int = 5,
    seconds: float = 0.1,
    processes: Sequence[int] = (2,),
    quick: bool = False,
) -> Iterator[Row]:
    """Measure parts of this benchmark; the column ``part`` names the source of each row.

    Args:
        some: some of ``PARTS``; the functions of these names describe their columns.
        mpich: whether MPICH and mpi4py are measured, if they are installed.
        repeat: rounds. seconds: for one measurement of a message or call.
        processes: for ``calls``.
        quick: few and small measurements, to see that it works.
    Raises:
        ValueError: an argument is out of range; nothing was started.
        SFMError: there is no compiler, or a program failed.
    """
    if repeat < 1 or not seconds > 0:
        raise ValueError(f"repeat {repeat}: at least 1; seconds {seconds}: more than 0")
    if not processes or min(processes) < 2:
        raise ValueError(f"processes {list(processes)}: at least 2")
    selected = chosen(some, PARTS, "part")
    rounds = {"repeat": repeat}
    both = rounds | {"mpich": mpich}
    known: dict[str, tuple[Callable[..., Iterator[Row]], dict[str, Any], dict[str, Any]]] = {
        "messages": (c.messages, both | {"seconds": seconds}, {"sizes": QUICK_SIZES}),
        "crowds": (parts.crowds, both | {"seconds": 3 * seconds}, {"ranks": 3, "pairs": 1}),
        "calls": (parts.repeated, both | {"seconds": seconds, "processes": processes}, {}),
        "loops": (c.loops, rounds, {"n": 10_000, "processes": (1, 2)}),
        "matrices": (c.matrices, both, {"sizes": (60, 50, 40), "workers": (1, 2)}),
        "farm": (c.farm, both, {"tasks": 4, "particles": 100, "workers": (1, 2)}),
        "cells": (parts.cells, {"repeat": 2 * repeat}, {}),
    }
    for part in selected:
        measuring, options, small = known[part]
        for row in measuring(**options, **(small if quick else {})):
            yield {"part": part} | row


# The command line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``python -m benchmarks c``."""
    parser.add_argument(
        "--only",
        type=names(PARTS, "part"),
        default=PARTS,
        metavar="PART,…",
        help=f"some of {', '.join(PARTS)}",
    )
    parser.add_argument(
        "--processes", type=numbers, default=(2,), metavar="n,n,…", help="for the calls (2)"
    )


def notes(options: argparse.Namespace) -> list[str]:
    """A line for each library that is left out on this machine, and one for the compiler."""
    lines = [programs.absent(library) for library in (programs.SFM, programs.MPICH)]
    found = [line for line in lines if line is not None]
    command = programs.compiler()
    used = [f"compiler: {' '.join(command)} {' '.join(programs.FLAGS)}"] if command else []
    return [*used, *dict.fromkeys(found), *left_out(["mpi4py"])]


def plan(options: argparse.Namespace) -> list[Part]:
    """What the command line asks for."""
    repeat = options.repeat or (2 if options.quick else 5)
    asked = partial(
        rows,
        repeat=repeat,
        seconds=0.02 if options.quick else 0.1,
        processes=options.processes,
        quick=options.quick,
    )
    return [
        Part(part, partial(asked, some=(part,)), (2 if options.quick else 6) * repeat, repeat)
        for part in options.only
    ]


__all__ = ["PARTS", "add_arguments", "notes", "plan", "plot", "rows", "summary", "tables"]
