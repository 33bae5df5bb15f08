"""The benchmark of MPI's libraries. No test here looks at how long anything took."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import communicator, mpi
from benchmarks.__main__ import main
from sfm_kernel.errors import SFMError
from sfm_kernel.lessons.measure import launched
from sfm_kernel.lessons.mpi import Task, rows_over_time

needs_mpich = pytest.mark.skipif(launched.absent("mpi4py") is not None, reason="no MPICH here")
FEW = (communicator.BUFFERS, communicator.BARRIER, mpi.START)


@needs_mpich
def test_libraries_take_turns_in_every_round() -> None:
    rows = list(mpi.rows(processes=(2,), calls=FEW, messages=("8 B", "", mpi.PROGRAM), repeat=2,
                         seconds=1e-3))  # fmt: skip
    assert [(row["call"], row["round"], row["mechanism"]) for row in rows] == [
        (call, number, kind)
        for calls in (FEW[:2], FEW[2:])
        for number in (0, 1)
        for call in calls
        for kind in (mpi.SFM, mpi.MPICH)
    ]
    assert all(row["us"] > 0 for row in rows)
    libraries = {row["mechanism"]: row["library"] for row in rows if row["library"]}
    assert libraries[mpi.SFM] == "sfm-kernel" and libraries[mpi.MPICH].startswith("MPICH ")


def test_every_call_runs_on_our_library() -> None:
    rows = list(mpi.rows(processes=(2, 3), mpich=False, repeat=1, seconds=1e-3))
    assert [(row["processes"], row["call"], row["message"]) for row in rows[:-1]] == [
        (n, *cell) for n in (2, 3) for cell in communicator.cells(n)
    ]
    assert {row["call"] for row in rows} == {*communicator.CALLS, mpi.START}


def test_a_crowd_has_barriers_and_small_reductions() -> None:
    calls = [call for call, _ in communicator.cells(8)]
    assert calls == [communicator.BARRIER, communicator.ALLREDUCE]


def row(call: str, message: str, kind: str, us: float, processes: int = 2) -> dict[str, Any]:
    about = {"call": call, "message": message, "processes": processes, "mechanism": kind}
    return about | {"crowded": processes > 4, "library": "", "round": 0, "us": us}


def test_targets_compare_medians_with_mpich() -> None:
    rows = [
        row("Put", "8 B", mpi.SFM, 2.0),
        row("Put", "8 B", mpi.SFM, 4.0),
        row("Put", "8 B", mpi.MPICH, 6.0),
        row("Put", "1 MB", mpi.SFM, 3.0),
        row("Put", "1 MB", mpi.MPICH, 2.0),
        row("Barrier", "", mpi.SFM, 1.0, processes=4),
        row("Barrier", "", mpi.MPICH, 2.0, processes=4),
        row("Barrier", "", mpi.SFM, 1.0, processes=8),
        row("Barrier", "", mpi.MPICH, 2.0, processes=8),
        row("Get", "8 B", mpi.SFM, 1.0),
    ]
    tables = mpi.tables(rows)
    first = tables["mpi4py on both libraries (µs)"][0]
    assert (first["SFM us"], first["SFM fastest"], first["SFM / MPICH"]) == (3.0, 2.0, 0.5)
    targets = tables["Targets (times in µs)"]
    assert [(line["what"], line["target"], line["at"], line["verdict"]) for line in targets] == [
        ("Put", "≤ 1 × MPICH", "1 MB, 2 processes", "missed by 50%"),
        ("Barrier", "≤ 0.6 × MPICH", "4 processes", "met"),
        ("Barrier, crowded", "≤ 0.1 × MPICH", "8 processes", "missed by 400%"),
        ("Get", "≤ 1 × MPICH", "", "not measured"),
    ]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"repeat": 0}, "at least 1"),
        ({"processes": ()}, "at least 2"),
        ({"processes": (1,)}, "at least 2"),
        ({"seconds": 0.0}, "more than 0"),
        ({"calls": ("fly",)}, "no call 'fly'; there are Send/Recv"),
    ],
)
def test_bad_input_starts_nothing(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        next(mpi.rows(**options))


def test_a_start_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mpi, "PROGRAM", "raise SystemExit('no MPI today')")
    with pytest.raises(SFMError, match="no MPI today"):
        next(mpi.rows(calls=(mpi.START,), mpich=False))


def test_the_command_without_mpich(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launched, "beside", lambda tool: None)
    file = tmp_path / "rows.json"
    line = f"mpi --quick --repeat 1 --only send*,put --json {file}"
    assert main(line.split()) == 0
    printed = capsys.readouterr().out
    assert "there is no mpiexec" in printed and "not measured" in printed
    assert '"call": "Put"' in file.read_text()


def test_rows_are_drawn_over_time_in_their_workers_colours() -> None:
    tasks = [Task(1, 0, 40, 5.0, 5.2), Task(2, 40, 80, 5.1, 5.2), Task(3, 80, 120, 5.0, 5.3)]
    figure = rows_over_time({"few": tasks, "one": tasks[:1]})
    first, second = figure.axes
    assert [patch.get_bbox().bounds for patch in first.patches] == [
        pytest.approx((0, 0, 200, 40)),
        pytest.approx((100, 40, 100, 40)),
        pytest.approx((0, 80, 300, 40)),
    ]
    assert len({patch.get_facecolor() for patch in first.patches}) == 3
    assert (first.get_title("left"), second.get_title("left")) == ("few: 300 ms", "one: 200 ms")
    assert [text.get_text() for text in figure.legends[0].texts] == [
        "worker 1", "worker 2", "worker 3"
    ]  # fmt: skip


@pytest.mark.parametrize("runs", [{}, {"empty": []}])
def test_a_picture_needs_tasks(runs: dict[str, list[Task]]) -> None:
    with pytest.raises(ValueError, match="each with one task or more"):
        rows_over_time(runs)
