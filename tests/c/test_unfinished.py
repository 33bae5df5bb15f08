"""The launcher reports what C programs leave unfinished at MPI_Finalize, with the lines."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sfm_kernel.mpi.launch.wording import unfinished
from sfm_kernel.mpi.launch.worlds import RankId
from tests.c.building import PROGRAMS, needs_mpi
from tests.mpi.launching import PATIENCE, run

SOURCE = PROGRAMS.parent / "lines" / "left.c"
LINES = SOURCE.read_text().splitlines()

pytestmark = needs_mpi

REQUEST = "rank 1 ended with 1 unfinished request"
ONE = "rank 0 never received 1 message from rank 1"
LOCK = "the lock of rank 0 is held; call MPI_Win_unlock to release it"

LEFT = {
    "irecv": "rank 1 ended with 3 unfinished requests: MPI_Irecv(source=0, tag=7)",
    "sources": "rank 1 ended with 3 unfinished requests: MPI_Irecv(tag=7)",
    "any": f"{REQUEST}: MPI_Irecv(source=MPI_ANY_SOURCE, tag=7, comm=pairs)",
    "isend": f"{REQUEST}: MPI_Isend(dest=1, tag=3)",
    "start": f"{REQUEST}: MPI_Start(source=0, tag=9)",
    "send": "rank 0 never received 3 messages from rank 1: MPI_Send(dest=0, tag=5, comm=pairs)",
    "tags": "rank 0 never received 3 messages from rank 1: MPI_Send(dest=0)",
    "probed": f"{ONE}: MPI_Send(dest=0, tag=4)",
    "psend": f"{ONE}: MPI_Psend_init(dest=0, tag=6, comm=pairs)",
    "lock": f"rank 1 ended with memory in use ({LOCK}): MPI_Win_lock",
}


def place(case: str, call: str) -> str:
    """The line of a case's call."""
    lines = [
        nth for nth, line in enumerate(LINES, 1) if f'is("{case}")' in line and f" {call}(" in line
    ]
    if case == "start":
        lines = [nth for nth, line in enumerate(LINES, 1) if "MPI_Start(" in line]
    return f" in left.c, line {lines[0]} (main)\n"


@pytest.mark.parametrize("case", LEFT)
def test_unfinished_work_is_reported_with_its_line_and_changes_nothing(case: str) -> None:
    done = run("-n", "2", str(SOURCE), case, timeout=PATIENCE)
    call = LEFT[case].rpartition(": ")[2].partition("(")[0]
    reported = f"sfm: {LEFT[case]}{place(case, call)}"
    if case == "irecv":  # the launcher reports the exit status, too
        reported, status = f"sfm: rank 1 ended with exit status 4\n{reported}", 4
    else:
        status = 0
    assert (done.stderr, done.returncode) == (reported, status)


def test_each_rank_s_own_and_a_program_of_one() -> None:
    where = place("ibarrier", "MPI_Ibarrier")
    reported = f"ended with 1 unfinished request: MPI_Ibarrier(comm=pairs){where}"
    done = run("-n", "2", str(SOURCE), "ibarrier", timeout=PATIENCE)
    assert done.stderr == f"sfm: rank 0 {reported}sfm: rank 1 {reported}"
    done = run("-n", "1", str(SOURCE), "ibarrier", timeout=PATIENCE)
    assert done.stderr == f"sfm: the program {reported}"


@pytest.mark.parametrize("case", ["clean", "session"])
def test_a_program_that_has_finished_its_work_gets_no_report(case: str) -> None:
    """Neither does a program with a session, which may go on in it."""
    done = run("-n", "2", str(SOURCE), case, timeout=PATIENCE)
    assert (done.stderr, done.returncode) == ("", 0)


def test_an_abort_is_reported_without_unfinished_work() -> None:
    done = run("-n", "2", str(SOURCE), "abort", timeout=PATIENCE)
    assert done.stderr.startswith("sfm: rank 0 called MPI_Abort(3) in left.c")
    assert done.stderr.count("\n") == 1 and done.returncode == 3


def test_a_message_that_was_sent_before_thousands_of_others(tmp_path: Path) -> None:
    """The message carries its line: no history could be long enough."""
    program = tmp_path / "early.c"
    program.write_text("""#include <mpi.h>
int main(int argc, char **argv) {
    int rank, x = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1) MPI_Send(&x, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
    for (int i = 0; i < 20000; i++) {
        if (rank == 1) MPI_Send(&x, 1, MPI_INT, 0, 6, MPI_COMM_WORLD);
        else MPI_Recv(&x, 1, MPI_INT, 1, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
}
""")
    done = run("-n", "2", str(program), timeout=PATIENCE)
    reported = "rank 0 never received 1 message from rank 1: MPI_Send(dest=0, tag=5)"
    assert done.stderr == f"sfm: {reported} in early.c, line 6 (main)\n"


def test_a_large_message_that_nobody_receives_is_what_finalize_waits_for(tmp_path: Path) -> None:
    program = tmp_path / "large.c"
    program.write_text("""#include <mpi.h>
static char x[1000000];
int main(int argc, char **argv) {
    int rank;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1) MPI_Isend(x, sizeof x, MPI_CHAR, 0, 5, MPI_COMM_WORLD, &request);
    MPI_Finalize();
}
""")
    done = run("--detect", "-n", "2", str(program), timeout=PATIENCE)
    assert "1 is in MPI_Finalize(dest=0, tag=5) and waits for 0 in large.c, line 9" in done.stderr


def test_a_few_lines_are_enough() -> None:
    ranks: Any = [SimpleNamespace(rank=RankId(nth, 0, nth)) for nth in range(12)]
    report = [0, "never received 1 message", True, "MPI_Send(dest=0)", "", 0]
    reported = unfinished(ranks, [(rank, json.dumps(report)) for rank in ranks])
    assert reported[0] == "rank 0 never received 1 message from itself: MPI_Send(dest=0)"
    assert reported[9:] == [
        "rank 0 never received 1 message from rank 9: MPI_Send(dest=0)",
        "and 2 more",
    ]
