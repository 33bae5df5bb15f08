"""The benchmark of MPI's interface. No test here looks at how long anything took."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from sfm_kernel.bench import mpi
from sfm_kernel.bench.__main__ import main
from sfm_kernel.bench.messages import THREE
from sfm_kernel.bench.mpi_pictures import Task, rows_over_time

pytestmark = pytest.mark.usefixtures("forked")  # their processes: tests.forks

needs_mpi = pytest.mark.skipif(find_spec("mpi4py") is None, reason="mpi4py is not installed")
FEW = {mpi.BUFFERS: ("array 8 B", "array 1 kB"), mpi.OBJECTS: (THREE, "array 1 kB")}
CELLS = [(what, message) for what, messages in FEW.items() for message in messages]


def test_mechanisms_take_turns_in_every_round() -> None:
    rows = list(mpi.rows(processes=(2,), messages=FEW, mpi=False, repeat=2, seconds=1e-3))
    assert [(row["round"], row["what"], row["message"], row["mechanism"]) for row in rows] == [
        (number, what, message, mechanism)
        for number in (0, 1)
        for what, message in [*CELLS, *((call, "") for call in mpi.CALLS)]
        for mechanism in (mpi.OWN, mpi.VIEW, mpi.INTERFACE)
        if mechanism != mpi.VIEW or what == mpi.BUFFERS
    ]
    assert all(0 < row["fastest_us"] <= row["us"] and row["count"] > 0 for row in rows)


def test_messages_need_two_processes() -> None:
    calls = mpi.CALLS[:1]
    rows = list(mpi.rows(processes=(1, 3), calls=calls, mpi=False, repeat=1, seconds=1e-3))
    assert [(row["processes"], row["what"]) for row in rows] == [
        (n, calls[0]) for n in (1, 3) for _ in (mpi.OWN, mpi.INTERFACE)
    ]


@needs_mpi
def test_mpi4py_is_one_of_them() -> None:
    some = {mpi.BUFFERS: ("array 8 B",), mpi.OBJECTS: (THREE,)}
    rows = list(mpi.rows(processes=(2,), messages=some, repeat=1, seconds=1e-3))
    others = [one for one in mpi.MECHANISMS if one != mpi.VIEW]
    measured = [row["mechanism"] for row in rows]
    assert measured == [*mpi.MECHANISMS, *others * (1 + len(mpi.CALLS))]


def row(what: str, message: str, mechanism: str, us: float, processes: int = 2) -> dict[str, Any]:
    about = {"what": what, "message": message, "processes": processes, "mechanism": mechanism}
    return about | {"round": 0, "count": 5, "us": us, "fastest_us": us / 2}


def test_targets_compare_with_the_endpoint() -> None:
    rows = [
        row(mpi.BUFFERS, "array 8 B", mpi.OWN, 2.0),
        row(mpi.BUFFERS, "array 8 B", mpi.OWN, 4.0),
        row(mpi.BUFFERS, "array 8 B", mpi.INTERFACE, 3.0),
        row(mpi.BUFFERS, "array 8 B", mpi.MPI4PY, 6.0),
        row(mpi.BUFFERS, "array 1 MB", mpi.OWN, 100.0),
        row(mpi.BUFFERS, "array 1 MB", mpi.INTERFACE, 300.0),
        row(mpi.BUFFERS, "array 1 MB", mpi.VIEW, 50.0),
        row(mpi.CALLS[0], "", mpi.OWN, 1.0, processes=4),
        row(mpi.CALLS[0], "", mpi.INTERFACE, 2.0, processes=4),
    ]
    tables = mpi.tables(rows)
    first = tables["Messages, one way (µs)"][0]
    assert (first["SFM us"], first["SFM fastest"]) == (3.0, 1.0)
    assert (first["MPI / SFM"], first["MPI / mpi4py"]) == (1.0, 0.5)
    assert tables["Collectives (µs)"][0]["processes"] == 4
    targets = {(one["what"], one["target"]): one for one in tables["Targets (times in µs)"]}
    worst = targets["Send, Recv, one way", "≤ 1.5 × the endpoint"]
    assert (worst["at"], worst["ratio"], worst["verdict"]) == ("array 1 MB", 3.0, "missed by 100%")
    assert targets["Send, Recv, one way", "≤ 1.5 × the endpoint's view"]["ratio"] == 6.0
    assert targets["send, recv, one way", "≤ 1.5 × the endpoint"]["verdict"] == "not measured"
    assert targets["Send, Recv, one way", "stated, × mpi4py"]["ratio"] == 0.5
    call = targets[mpi.CALLS[0], "stated, × Group"]
    assert (call["at"], call["ratio"], call["verdict"]) == ("4 processes", 2.0, "")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"repeat": 0}, "at least 1"),
        ({"processes": ()}, "at least 1"),
        ({"processes": (0,)}, "at least 1"),
        ({"seconds": 0.0}, "more than 0"),
        ({"calls": ("fly",)}, "no call 'fly'; there are barrier"),
        ({"messages": {"shout": ("array 8 B",)}}, "no call 'shout'; there are Send, Recv"),
        ({"messages": {mpi.BUFFERS: ("rock",)}}, "no message 'rock'; there are 3 attributes"),
    ],
)
def test_bad_input_starts_nothing(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        next(mpi.rows(**options))


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


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rows.json"
    assert main(["mpi", "--quick", "--repeat", "1", "--json", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "Messages, one way" in printed and "Targets" in printed
    assert '"what": "Send, Recv"' in file.read_text()
