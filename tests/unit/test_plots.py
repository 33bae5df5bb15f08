"""Plots show the rows that they got; live ones end with a last frame and leave nothing behind."""

from __future__ import annotations

import io
import threading
from pathlib import Path
from typing import Any

import matplotlib.colors
import pytest
from matplotlib.axes import Axes
from PIL import Image

from sfm_kernel.plots import COLOURS, ORDERED, Error, Panel, Speedup, png, rectangles, still
from sfm_kernel.plots.live import Live

PNG = b"\x89PNG\r\n\x1a\n"
SECONDS = {1: [1.0, 1.2], 2: [0.5, 0.8], 4: [0.4, 0.25]}
ROWS = [
    {"n": n, "engines": engines, "kernel": kernel, "error": 1 / n**2, "seconds": elapsed}
    for kernel in ("python", "numpy")
    for n in (10, 1000)
    for engines, seconds in SECONDS.items()
    for elapsed in seconds
]


def axes_of(*panels: Panel) -> list[Axes]:
    return list(still(ROWS, *panels).axes)


def line_to(axes: Axes, label: str) -> list[tuple[float, float]]:
    """The line of the series with this label: both have the same colour, and the line joins."""
    (text,) = [text for text in axes.texts if text.get_text() == label]
    lines = [
        line
        for line in axes.lines
        if line.get_color() == text.get_color() and line.get_linestyle() == "-"
    ]
    return [tuple(point) for point in lines[0].get_xydata()]


def test_speedup_compares_the_fastest_times() -> None:
    (axes,) = axes_of(Speedup(4, by="n", only={"kernel": "python"}, cores=2))
    assert line_to(axes, "n = 10") == [(1, 1), (2, 2), (4, 4)]
    assert line_to(axes, "n = 10³") == [(1, 1), (2, 2), (4, 4)]
    dots = {tuple(point) for line in axes.lines for point in line.get_xydata()}
    assert (2, 1.25) in dots  # the slower of two measurements is shown as well
    assert {"ideal", "cores: 2"} <= {text.get_text() for text in axes.texts}


def test_error_is_logarithmic_with_the_line_it_follows() -> None:
    (axes,) = axes_of(Error([10, 1000], by="kernel"))
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert line_to(axes, "python") == [(10, 1e-2), (1000, 1e-6)]
    (ideal,) = [line for line in axes.lines if line.get_linestyle() == "--"]
    for n, error in ideal.get_xydata():
        assert error == pytest.approx(1 / (12 * n * n))


def test_only_leaves_other_rows_out() -> None:
    (axes,) = axes_of(Speedup(4, by="kernel", only={"n": 10, "kernel": "numpy"}))
    labels = {text.get_text() for text in axes.texts}
    assert "numpy" in labels and "python" not in labels


def test_series_have_different_colours_and_markers() -> None:
    (axes,) = axes_of(Error([10], by="kernel"))
    looks = {(line.get_color(), line.get_marker()) for line in axes.lines if line.get_alpha()}
    assert len({colour for colour, _ in looks}) == len({marker for _, marker in looks}) == 2


def test_labels_of_lines_that_end_together_stand_apart() -> None:
    figure = still(ROWS, Speedup(4, by="n"))
    figure.canvas.draw()
    labels = [text for text in figure.axes[0].texts if text.get_text().startswith("n = ")]
    first, second = (label.get_window_extent() for label in labels)
    assert not first.overlaps(second)


@pytest.mark.parametrize(
    ("n", "label"),
    [(7, "n = 7"), (999, "n = 999"), (1000, "n = 10³"), (4_800_000, "n = 4.8·10⁶"),
     (10**12, "n = 10¹²"), (1_234_567_891, "n = 1,234,567,891")],
)  # fmt: skip
def test_numbers_are_short(n: int, label: str) -> None:
    figure = still([{"n": n, "engines": 1, "seconds": 1.0}], Speedup(2))
    assert label in {text.get_text() for text in figure.axes[0].texts}


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_a_figure_is_saved_without_a_notebook(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"plot.{suffix}"
    still(ROWS, Error([10, 1000]), Speedup(4)).savefig(path)
    assert path.stat().st_size > 1000


def test_rectangles_have_the_colours_of_their_processes() -> None:
    figure = rectangles([range(1, 5, 2), range(2, 5, 2)])
    (axes,) = figure.axes
    colours = [matplotlib.colors.to_hex(bar.get_facecolor()) for bar in axes.patches]
    assert colours == [COLOURS[0].lower()] * 2 + [COLOURS[1].lower()] * 2
    assert sorted(round(bar.get_x(), 6) for bar in axes.patches) == [0, 0.25, 0.5, 0.75]
    assert sum(bar.get_width() * bar.get_height() for bar in axes.patches) == pytest.approx(
        3.146801
    )
    assert png(figure).startswith(PNG)


# --- live --------------------------------------------------------------------------------------


def colours(frame: bytes) -> set[Any]:
    image = Image.open(io.BytesIO(frame)).convert("RGB")
    return {colour for _, colour in image.getcolors(image.width * image.height) or ()}


def test_the_last_frame_shows_all_rows_and_nothing_runs_on() -> None:
    frames: list[bytes] = []
    with Live(Error([10, 1000]), Speedup(4), display=frames.append) as plot:
        for row in ROWS:
            plot.add(row)
    assert plot.rows == len(ROWS) and plot.frames == len(frames) >= 2
    assert all(frame.startswith(PNG) for frame in frames)
    second = tuple(round(255 * channel) for channel in matplotlib.colors.to_rgb(COLOURS[1]))
    assert second in colours(frames[-1]) and second not in colours(frames[0])
    assert "sfm-live-plot" not in {thread.name for thread in threading.enumerate()}
    plot.close()
    assert plot.frames == len(frames)


def test_frames_come_while_no_row_does() -> None:
    third = threading.Event()
    frames: list[bytes] = []

    def display(frame: bytes) -> None:
        frames.append(frame)
        if len(frames) == 3:
            third.set()

    with Live(Speedup(2), display=display):
        assert third.wait(30)


def test_the_last_frame_is_drawn_when_the_block_raises() -> None:
    frames: list[bytes] = []
    plot = Live(Speedup(2), display=frames.append)
    with pytest.raises(KeyError), plot:
        plot.add({"n": 10, "engines": 1})  # the other columns are missing
    assert plot.frames == len(frames) >= 2


def add_for_ever(plot: Live) -> None:
    with plot:
        while True:
            plot.add(ROWS[0])


def test_an_error_of_display_reaches_the_caller() -> None:
    calls = []

    def display(_: bytes) -> None:
        calls.append(1)
        if len(calls) > 1:
            raise OSError("the front end is gone")

    with pytest.raises(OSError, match="front end is gone"):
        add_for_ever(Live(Speedup(2), display=display))
    assert "sfm-live-plot" not in {thread.name for thread in threading.enumerate()}


def statuses(
    monkeypatch: pytest.MonkeyPatch, rows: int, of_round: int, **options: Any
) -> list[str]:
    """The line above a plot after each row, and at the end."""
    shown: list[str] = []

    def frame(canvas: object, status: str, last: bool) -> bytes:
        shown.append(status)
        return b""

    monkeypatch.setattr("sfm_kernel.plots.live._Canvas.frame", frame)
    monkeypatch.setattr(Live, "EAGER", -1.0)
    monkeypatch.setattr(Live, "LATEST", 1e9)
    with Live(Speedup(2), display=lambda png: None, **options) as plot:
        for nth in range(rows):
            plot.add({"n": 1, "engines": 1, "seconds": 1.0, "round": nth // of_round})
    return shown


def test_a_plot_says_how_much_is_left_once_it_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *during, last = statuses(monkeypatch, rows=6, of_round=3, rounds=2)
    assert first.startswith("0 rows, running for")
    assert [text.partition(",")[0] for text in during] == [
        "1 rows", "2 rows", "3 rows", "4 of 6 rows", "5 of 6 rows", "6 of 6 rows",
    ]  # fmt: skip
    assert "round 1 of 2" in during[0] and during[3].endswith("s left")
    assert during[5].endswith(", 0 s left") and last.startswith("6 rows in ")


def test_without_rounds_it_says_how_long_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    *during, last = statuses(monkeypatch, rows=4, of_round=2)
    assert all("rows, running for" in text for text in during) and "others" not in last


@pytest.mark.parametrize(
    ("share", "says"), [(0.37, "; others took 37% of the processors"), (0.1, "")]
)
def test_a_plot_that_a_busy_machine_has_disturbed_says_so(
    monkeypatch: pytest.MonkeyPatch, share: float, says: str
) -> None:
    *during, last = statuses(monkeypatch, rows=2, of_round=1, others=lambda: share)
    assert last.partition(" s")[2] == says and "others" not in " ".join(during)


def test_series_of_numbers_are_coloured_in_their_order() -> None:
    panel = Speedup(4)
    figure = still([{"n": n, "engines": 1, "seconds": 1.0} for n in (100, 10, 1000, 10000)], panel)
    colours = {text.get_text(): text.get_color() for text in figure.axes[0].texts}
    named = [colours[name] for name in ("n = 10", "n = 100", "n = 10³", "n = 10⁴")]
    assert named == sorted(named, key=ORDERED.index) and len(set(named)) == 4


def test_series_of_names_keep_the_colours_of_their_appearance() -> None:
    panel = Speedup(4, by="kernel")
    rows = [{"kernel": name, "engines": 1, "seconds": 1.0} for name in ("z", "a", "m")]
    texts = still(rows, panel).axes[0].texts
    colours = {text.get_text(): text.get_color() for text in texts}
    assert [colours[name] for name in ("z", "a", "m")] == list(COLOURS[:3])
