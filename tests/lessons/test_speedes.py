"""The program of fuzzy barriers, and its plots."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from PIL import Image

from sfm_kernel.lessons import speedes
from sfm_kernel.lessons.__main__ import main
from sfm_kernel.lessons.speedes.plots import ACTIVITIES, gantt, space_time
from sfm_kernel.lessons.speedes.steps import Flight, Span, predicted, slices

pytestmark = pytest.mark.usefixtures("forked")  # their processes: tests.forks


def colours(figure: Figure) -> set[tuple[int, ...]]:
    file = io.BytesIO()
    figure.savefig(file, format="png")
    image = Image.open(file).convert("RGB")
    assert image.width > 800
    return {colour for _, colour in image.getcolors(1 << 24)}


def rgb(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour[1:]))


def test_the_prediction_for_messages_without_cost() -> None:
    """One step after the other, by hand."""
    for other in (0.0, 1.0, 5.0):
        assert predicted("barrier", 4, 12, 6, 2, other) == 6 + other
    assert predicted("fuzzy barrier", 4, 12, 6, 2, 0) == 6
    # Two engines, two steps: 0 is there at 6, 1 at 2 and, after its other work, ready at 6. Then 1
    # is there at 12 and 0, which goes on at 7, at 9; the last thing done is other work until 13.
    assert predicted("fuzzy barrier", 2, 2, 6, 2, 1) == 6.5
    # With other work without end, an engine never waits: 4 on average and the other work.
    assert predicted("fuzzy barrier", 2, 1000, 6, 2, 100) == pytest.approx(104, abs=0.01)


@pytest.mark.parametrize(("seconds", "parts"), [(0.0, 0), (1e-5, 1), (0.002, 1), (0.0158, 8)])
def test_other_work_is_done_in_slices(seconds: float, parts: int) -> None:
    cut = slices(seconds)
    assert len(cut) == parts and sum(cut) == pytest.approx(seconds)


def test_rows_from_local_processes() -> None:
    rows = list(speedes.rows(2, others_ms=(0, 2), long_ms=3, short_ms=1, steps=4, repeat=2))
    assert [(row["how"], row["other_ms"], row["round"]) for row in rows] == [
        (how, other, number) for number in (0, 1) for other in (0, 2) for how in speedes.STEP
    ]
    for row in rows:
        # Sleeps last as long as asked at least: no barrier was passed too early.
        assert row["step_ms"] >= row["predicted_ms"] - 0.01
        assert 0 <= row["waiting_percent"] <= 100
    table = speedes.summary(rows)
    assert [(row["other_ms"], row["how"]) for row in table] == [
        (other, how) for other in (0, 2) for how in speedes.STEP
    ]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"engines": 0}, "cannot run on 0 engines"),
        ({"steps": 0}, "steps 0"),
        ({"others_ms": ()}, "others_ms"),
        ({"others_ms": (-1.0,)}, "0 or more"),
        ({"long_ms": 1, "short_ms": 2}, "short_ms 2 is 0 or more and at most long_ms 1"),
        ({"repeat": 0}, "repeat 0"),
    ],
)
def test_bad_arguments_start_nothing(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        next(speedes.rows(**wrong))


def test_activities_of_engines_are_drawn_in_their_colours() -> None:
    spans = [Span(0, "work", 1.0, 1.2), Span(0, "waiting", 1.2, 1.3), Span(1, "work", 1.0, 1.3)]
    found = colours(gantt({"one": spans, "other": [*spans, Span(1, "other work", 1.3, 1.5)]}))
    assert {rgb(colour) for colour in ACTIVITIES.values()} <= found


def test_messages_are_drawn_in_their_senders_colours() -> None:
    flights = [Flight(0, 1.0, 2, 1.2), Flight(2, 1.3, 1, 1.4), Flight(1, 1.5, 1, 1.5)]
    found = colours(space_time(flights, {0: 1.8, 1: 1.9, 2: 1.8}))
    assert {rgb("#0072B2"), rgb("#D55E00"), rgb("#009E73"), (0, 0, 0)} <= found
    assert colours(space_time([], {0: 1.0}))  # a cycle without messages


def test_the_plot() -> None:
    rows = [
        {"how": how, "engines": 2, "other_ms": x, "round": 0, "step_ms": 3.0 + x,
         "predicted_ms": 3.0, "waiting_percent": 20.0}
        for how in speedes.STEP for x in (0.0, 1.0)
    ]  # fmt: skip
    assert {rgb("#0072B2"), rgb("#D55E00")} <= colours(speedes.plot(rows))


def test_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plot = tmp_path / "plot.png"
    assert main(["speedes", "--engines", "2", "--quick", "--plot", str(plot)]) == 0
    assert "predicted_ms" in capsys.readouterr().out and plot.exists()
