"""Programs in C that end in the wrong way end at once, with one sentence that names the wrong line
and says what to do."""

from __future__ import annotations

import re
import signal

import pytest

from tests.c.building import PROGRAMS, needs_mpi
from tests.conftest import crossed
from tests.jupyter.notebook import notebook
from tests.mpi.launching import launched, lines, mpi_worlds, run

SOURCE = PROGRAMS.parent / "lines" / "ends.c"
LINES = SOURCE.read_text().splitlines()
OTHERS = ["receive", "barrier", "compute", "sleep"]
FINALIZE = "ended without MPI_Finalize, which every rank calls at its end"
INIT_ONCE = "MPI was initialized before; call MPI_Init once, at the beginning of main"
INIT_FIRST = "MPI_Init was not called yet; call it first, at the beginning of main"
BAD_RANK = "argument dest is 17, but MPI_COMM_WORLD has 3 processes: ranks 0 to 2 [MPI_ERR_RANK]"

pytestmark = needs_mpi

CALLS = {
    "rank-before-init": (f"MPI_Comm_rank: {INIT_FIRST}", 15),
    "send-before-init": (f"MPI_Send: {INIT_FIRST}", 15),
    "finalize-before-init": (f"MPI_Finalize: {INIT_FIRST}", 15),
    "init-twice": (f"MPI_Init: {INIT_ONCE}", 15),
    "init-thread-twice": (f"MPI_Init_thread: {INIT_ONCE}", 15),
    "wrong-rank": (f"MPI_Send: {BAD_RANK}", 6),
    "finalize-twice": ("MPI_Finalize: it was called before; call it once, at the end of main", 15),
    "init-again": (
        "MPI_Init: MPI_Finalize was called before, and MPI cannot be initialized again",
        15,
    ),
    "rank-after": ("MPI_Comm_rank: MPI_Finalize was called before it; it must be the last", 15),
}
"""Calls that fail: what is said, and the exit status."""

DEEDS = {
    "never-init": ("ended without MPI_Init, in which others wait for it: every rank calls that", 1),
    "no-finalize": (FINALIZE, 1),
    "_exit": (FINALIZE, 1),
    "exit": ("ended with exit status 3", 3),
    "kill": ("was killed by SIGKILL", 137),
}

ABORTS = {
    "abort": ("MPI_Abort(7)", 7),
    "abort-half": ("MPI_Abort(263)", 7),  # a status has eight bits
    "abort-0": ("MPI_Abort(0)", 0),
    "abort-256": ("MPI_Abort(256)", 1),  # of which the eight bits would say that all is well
    "abort-before-init": ("MPI_Abort(5)", 5),
    "abort-after": ("MPI_Abort(6)", 6),
}


def place(case: str, test: str = "wants(") -> str:
    """The line of a case's call."""
    (nth,) = (nth for nth, line in enumerate(LINES, 2) if f'{test}"{case}")' in line)
    return f"in ends.c, line {nth}" + (" (main)" if test == "wants(" else "")


@pytest.mark.parametrize(("case", "who"), crossed(CALLS, ["one", "all"]))
def test_a_call_that_fails_says_why_and_where_but_once(case: str, who: str) -> None:
    said, status = CALLS[case]
    done = run("-n", "3", str(SOURCE), case, "none", who)
    rank = done.stderr[len("sfm: rank ") :][:1]
    assert done.stderr.startswith(f"sfm: rank {rank} was stopped {place(case)}: {said}")
    assert who == "all" or rank == "1"
    assert done.stderr.endswith("; the other ranks were ended\n") and done.stderr.count("\n") == 1
    assert done.returncode == status
    assert mpi_worlds() == []


@pytest.mark.parametrize(("case", "others"), crossed(DEEDS, OTHERS))
def test_a_rank_that_ends_wrongly_ends_the_others(case: str, others: str) -> None:
    said, status = DEEDS[case]
    done = run("-n", "3", str(SOURCE), case, others, "one")
    assert done.stderr == f"sfm: rank 1 {said}; the other ranks were ended\n"
    assert done.returncode == status


def test_an_exit_status_at_the_end_of_main_ends_nobody() -> None:
    done = run("-n", "3", str(SOURCE), "status", "none", "one")
    assert done.stderr == "sfm: rank 1 ended with exit status 4\n" and done.returncode == 4
    assert done.stdout == "before"


@pytest.mark.parametrize(("case", "others"), crossed(ABORTS, OTHERS))
def test_abort_ends_all(case: str, others: str) -> None:
    """``others``: the call that the other ranks are in meanwhile."""
    said, status = ABORTS[case]
    if case == "abort-after":
        others = "none"
    done = run("-n", "3", str(SOURCE), case, others, "one")
    ended = "; the other ranks were ended\n"
    assert done.stderr == f"sfm: rank 1 called {said} {place(case)}{ended}"
    assert done.returncode == status
    assert done.stdout == ("" if case.startswith("abort-before") else "before")
    assert mpi_worlds() == []


@pytest.mark.parametrize("case", ["compute", "sleep", "receive"])
def test_stop_says_where_the_ranks_were(case: str) -> None:
    """In a loop, in a call of the system, and in a call of MPI."""
    with launched("-n", "2", str(SOURCE), "not", case, "one") as process:
        assert lines(process, 1) == ["before the end\n"]
        process.send_signal(signal.SIGINT)
        first, second = sorted(process.communicate()[1].splitlines())
    assert process.returncode == 130
    after = LINES.index("    MPI_Barrier(MPI_COMM_WORLD);")  # or still on the way there
    for line, rank in ((first, 0), (second, 1)):
        found = re.fullmatch(rf'sfm: rank {rank} was in ends.c, line (\d+) \(\w+\): "(.*)"', line)
        assert found and LINES[int(found[1]) - 1].strip() == found[2], line
        is_there = f'is(2, "{case}")' in LINES[int(found[1]) - 2]
        assert int(found[1]) > after or (is_there and rank == 0), line


def test_a_deadlock_that_is_ended_is_told_once() -> None:
    done = run("--detect", "-n", "3", str(SOURCE), "none", "receive", "one")
    end = LINES.index("    MPI_Finalize();") + 1
    stuck = (
        f"{place('receive', 'is(2, ')} (others): MPI_Recv",
        f"in ends.c, line {end} (main): MPI_Finalize",
    )
    is_told = [f" was stopped {call}: Deadlock: 0 → 1 → 0.\n" in done.stderr for call in stuck]
    assert sorted(is_told) == [False, True], done.stderr
    assert done.stderr.endswith("\nsfm: the other ranks were ended\n")
    assert done.returncode == 15


def test_alone() -> None:
    done = run("-n", "1", str(SOURCE), "abort", "none", "all")
    assert (done.stdout, done.returncode) == ("before", 7)
    assert done.stderr == f"sfm: the program called MPI_Abort(7) {place('abort')}\n"
    done = run("-n", "1", str(SOURCE), "rank-after", "none", "all")
    assert done.stderr.startswith(f"sfm: the program was stopped {place('rank-after')}: MPI_Comm")


@pytest.mark.jupyter
def test_in_a_cell_the_notebook_and_its_engines_live_on() -> None:
    with notebook("%sfm start 2") as book:
        for case in ("abort", "init-twice"):
            cell = book.run(f"%%sfm c -n 3 {case} compute one\n{SOURCE.read_text()}")
            number = int(place(case).split()[3]) + 1  # the magic's line is the first
            said = f"cell {book.run('print(len(In) - 2)').text.strip()}, line {number} (main)"
            assert said in cell.text
            status = {"abort": 7, "init-twice": 15}[case]
            assert cell.error == f"CellFailed: the program ended with exit status {status}"
            assert book.text("%%sfm\nprint('alive')").count("alive") == 2
