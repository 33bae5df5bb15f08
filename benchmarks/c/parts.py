"""Further measurements of ``c``, beside the programs of notebook 09: crowds, loops, and cells."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from sfm_kernel.lessons.c import libraries
from sfm_kernel.lessons.c.kernel import notebook
from sfm_kernel.lessons.c.programs import Programs
from sfm_kernel.lessons.measure.rows import Row

SOURCES = Path(__file__).with_name("sources")

PAIRS = "pairs"
TOGETHER = ("barrier", "allreduce 8 B", "token hop")
CHANGED, UNCHANGED = "cell changed", "cell unchanged"


def crowds(
    *, ranks: int = 8, pairs: int = 2, mpich: bool = True, repeat: int = 5, seconds: float = 0.3
) -> Iterator[Row]:
    """More ranks than cores: calls of all, a token that goes round, and ping-pong of pairs.

    Columns: what, mechanism, processes, bytes, round, count, mean_us (over all calls or messages,
    so that rare long waits count). Pairs measure the same as OSU's osu_multi_lat.
    """
    with Programs(SOURCES) as compiled:
        for number in range(repeat):
            for name, library in libraries(mpich).items():
                for program, n, sizes in (
                    ("together", ranks, ()),
                    ("pairs", 2 * pairs, (8, 1 << 10)),
                ):
                    for row in compiled.run(program, library, n, seconds, *sizes):
                        yield _mean(row, name, n, number)


def repeated(
    *,
    processes: Sequence[int] = (2,),
    mpich: bool = True,
    repeat: int = 5,
    seconds: float = 0.1,
) -> Iterator[Row]:
    """Calls in a loop without a barrier between, for each number of processes.

    Columns: what, mechanism, processes, bytes, round, count, mean_us (over the loop and all ranks;
    of ``Put`` and ``Accumulate``, with a flush each, that of the only rank which calls them).

    Source: Intel MPI Benchmarks, which time the same loops; their root changes, this one does not.
    """
    with Programs(SOURCES) as compiled:
        for number in range(repeat):
            for n in processes:
                for name, library in libraries(mpich).items():
                    for row in compiled.run("loops", library, n, seconds):
                        yield _mean(row, name, n, number)


def _mean(row: Row, mechanism: str, processes: int, number: int) -> Row:
    about: Row = {"what": row["what"], "mechanism": mechanism, "processes": processes}
    about |= {"bytes": row["bytes"], "round": number, "count": row["count"]}
    return about | {"mean_us": row["mean_us"]}


HELLO = """#include <mpi.h>
#include <stdio.h>

int main(int argc, char *argv[])
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("hello %d from %d\\n", EDITION, rank);
    MPI_Finalize();
    return 0;
}
"""


def cells(*, ranks: int = 4, repeat: int = 5) -> Iterator[Row]:
    """The time of a cell in a notebook's kernel, from Shift-Enter to the last rank's output.

    Columns: what ("cell changed", "cell unchanged"), processes, round, seconds. The very first
    cell, which prepares the compiler, is not counted.
    """

    def seconds(edition: int) -> float:
        cell = f"%%sfm c -n {ranks}\n{HELLO.replace('EDITION', str(edition))}"
        return kernel.run(cell, lambda text: text.count(f"hello {edition} from") == ranks)[1]

    with notebook() as kernel:
        seconds(time.time_ns() % 10**6)
        for number in range(repeat):
            edition = time.time_ns() % 10**6  # not in any cache from an earlier run
            for kind in (CHANGED, UNCHANGED):
                about: Row = {"what": kind, "processes": ranks, "round": number}
                yield about | {"seconds": seconds(edition)}
