"""Programs in C beside MPICH, Python and compiled loops: each function a generator of rows.

They measure messages between programs in C, in Python, and in C on MPICH; pi, a matrix product and
a task farm. Rounds are interleaved: each takes every library and mechanism in turn.

Source: Chou, Nestinger and Cheng, "Ch MPI: Interpretive Parallel Computing in C" (2010).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import groupby
from operator import itemgetter
from statistics import median
from typing import Any

from sfm_kernel.lessons import cpi, pingpong
from sfm_kernel.lessons.c import programs
from sfm_kernel.lessons.c.programs import MPICH, SFM, SOURCES, Programs
from sfm_kernel.lessons.measure.machine import usable_cores
from sfm_kernel.lessons.measure.rows import Row
from sfm_kernel.lessons.pingpong.messages import SIZES

C, C_MPICH = "C", "C on MPICH"
SEND_RECV, MPI4PY = "Python", "mpi4py"
LIBRARIES = {C: SFM, C_MPICH: MPICH}
"""Mechanisms that are programs in C -> the library that they run on."""

PYTHON = {SEND_RECV: "SFM w/Q", MPI4PY: "mpi4py buffers"}
"""Mechanisms that are Python -> their names in ``pingpong``."""

ONE_WAY, STREAM, LOOP = "one way", "stream", "cpi"
MATRIX, TASK, FARM = "matrix", "task", "farm"

GCC, CELL, FAST, PLAIN, NUMPY = "compiled -O2", "cell", "cell --fast", "Python", "NumPy"
LOOPS = (GCC, CELL, FAST, PLAIN, NUMPY)

MATRIX_SIZES = (2880, 2000, 450)
TASKS, PARTICLES = 64, 1000


def libraries(mpich: bool = True) -> dict[str, str]:
    """The mechanisms in C that can be measured on this machine, with their libraries."""
    known = LIBRARIES if mpich else {C: SFM}
    return {name: library for name, library in known.items() if programs.absent(library) is None}


def messages(
    *,
    sizes: Sequence[str] = tuple(SIZES),
    mpich: bool = True,
    repeat: int = 3,
    seconds: float = 0.1,
) -> Iterator[Row]:
    """Messages between two processes: latency and bandwidth, C beside Python beside MPICH.

    Columns: what ("one way", "stream"), mechanism, bytes, round, count, latency_us and fastest_us
    (half of a round trip; a message of the stream), bandwidth_mbit_s (1 Mbit = 2**20 bits).
    Source: Chou, Nestinger and Cheng, "Ch MPI", Fig. 8 and 9.
    """
    nbytes = [SIZES[size] for size in sizes]
    python = [PYTHON[name] for name in PYTHON if mpich or name != MPI4PY]
    of_python = pingpong.rows(
        messages=[f"array {size}" for size in sizes],
        mechanisms=python,
        repeat=repeat,
        seconds=seconds,
    )
    names = {mechanism: name for name, mechanism in PYTHON.items()}
    with Programs() as compiled:
        for number, python_rows in groupby(of_python, itemgetter("round")):
            for name, library in libraries(mpich).items():
                for program in ("pingpong", "bandwidth"):
                    for row in compiled.run(program, library, 2, seconds, *nbytes):
                        yield _message(row["what"], name, row["bytes"], number, row["us"], row)
            for row in python_rows:
                name = names[row["mechanism"]]
                yield _message(ONE_WAY, name, row["bytes"], number, row["latency_us"], row)


def _message(
    what: str, mechanism: str, nbytes: int, number: int, us: float, row: Mapping[str, Any]
) -> Row:
    return {
        "what": what,
        "mechanism": mechanism,
        "bytes": nbytes,
        "round": number,
        "count": row["count"],
        "latency_us": us,
        "fastest_us": row["fastest_us"],
        "bandwidth_mbit_s": 8 * nbytes / (us * 1e-6) / pingpong.MEGABIT,
    }


def loops(
    *,
    n: int = cpi.PAPER_INTERVALS,
    processes: Sequence[int] | None = None,
    mechanisms: Sequence[str] = LOOPS,
    repeat: int = 5,
) -> Iterator[Row]:
    """The loop of cpi: compiled, in a cell with checks and without, in Python, in NumPy.

    Columns: what, mechanism, n, processes, round, seconds (of the slowest process; of five runs of
    a compiled one the median), error (distance from pi).
    Source: Chou, Nestinger and Cheng, "Ch MPI", Tables 1 and 2.
    """
    several = processes or tuple(range(1, int(usable_cores()) + 1))
    with ExitStack() as stack:
        compiled = stack.enter_context(Programs())
        asking = None
        if CELL in mechanisms or FAST in mechanisms:
            from sfm_kernel.lessons.c.kernel import notebook

            asking = stack.enter_context(notebook())
        for number in range(repeat):
            for mechanism in mechanisms:
                for count in several if mechanism in (GCC, CELL, FAST) else (1,):
                    about: Row = {"what": LOOP, "mechanism": mechanism, "n": n}
                    about |= {"processes": count, "round": number}
                    if mechanism in (PLAIN, NUMPY):
                        yield about | _in_python(mechanism, n)
                        continue
                    if mechanism == GCC:
                        found = list(compiled.run("cpi", SFM, count, n, 5))
                    else:
                        assert asking is not None
                        fast = "--fast " if mechanism == FAST else ""
                        cell = f"%%sfm c -n {count} {fast}{n} 5\n{source('cpi')}"
                        found = list(programs.rows_in(asking.run(cell)[0]))
                    seconds = median(row["seconds"] for row in found)
                    yield about | {"seconds": seconds, "error": found[0]["error"]}


def _in_python(mechanism: str, n: int) -> Row:
    area = cpi.KERNELS[{PLAIN: "python", NUMPY: "numpy"}[mechanism]]
    started = time.perf_counter()
    pi = area(n, cpi.share(n, 0, 1))
    return {"seconds": time.perf_counter() - started, "error": float(cpi.error_of(pi))}


def source(name: str) -> str:
    """The text of a program."""
    return (SOURCES / f"{name}.c").read_text(encoding="utf-8")


def matrices(
    *,
    workers: Sequence[int] | None = None,
    sizes: Sequence[int] = MATRIX_SIZES,
    mpich: bool = True,
    repeat: int = 3,
) -> Iterator[Row]:
    """A matrix product by a master, which does not compute, and its workers.

    Columns: what, mechanism, workers, round, seconds (the longest time that a worker has
    computed), all_seconds (with the master's sends and receives).
    Source: Chou, Nestinger and Cheng, "Ch MPI", Fig. 10 and 11.
    """
    with Programs() as compiled:
        for number in range(repeat):
            for count in workers or _workers():
                for name, library in libraries(mpich).items():
                    for row in compiled.run("matrix", library, count + 1, *sizes):
                        yield row | {"mechanism": name, "round": number}


def farm(
    *,
    workers: Sequence[int] | None = None,
    tasks: int = TASKS,
    particles: int = PARTICLES,
    mpich: bool = True,
    repeat: int = 3,
) -> Iterator[Row]:
    """A master hands out tasks, each a run of ``nbody``, to workers that are ready.

    Columns of a task, as it ends: what ("task"), mechanism, workers, round, task, worker, began,
    ended (seconds from the start). Of a run, at its end: what ("farm"), tasks, seconds.
    Source: Chou, Nestinger and Cheng, "Ch MPI", Fig. 13.
    """
    with Programs() as compiled:
        nbody = compiled.compiled("nbody", None)
        file = compiled.folder / "tasks"
        output = "\n".join(f"{nbody} {particles} > out_{number}" for number in range(tasks))
        file.write_text(output + "\n", encoding="utf-8")
        for number in range(repeat):
            for count in workers or _workers():
                for name, library in libraries(mpich).items():
                    for row in compiled.run("farm", library, count + 1, file):
                        yield row | {"mechanism": name, "workers": count, "round": number}


def _workers() -> range:
    return range(1, int(usable_cores()) + 1)
