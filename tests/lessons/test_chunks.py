"""The program of chunked transfers: what it measures, and what it makes of it.

No test here looks at how long anything took.
"""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from sfm_kernel.lessons import chunks
from sfm_kernel.lessons.chunks.plots import Memory, Throughput, size
from sfm_kernel.lessons.measure.rows import Row
from sfm_kernel.plots import still
from tests.lessons.engines import serving

pytestmark = pytest.mark.usefixtures("forked")  # their processes: tests.forks

SIZE = 16 << 20
NOISE = 1 << 20
"""Bytes: small objects of Python; and the kernel adds up what each processor has counted."""

SMALL: dict[str, Any] = {
    "sizes": (SIZE,), "chunks": (1 << 16, 1 << 18), "windows": (1, 4), "count": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def measured() -> list[Row]:
    """Two rounds between two local processes."""
    return list(chunks.rows(**SMALL, repeat=2))


def test_a_row_for_each_chunk_window_and_round(measured: list[Row]) -> None:
    configured = [(row["round"], row["chunk_bytes"], row["window"]) for row in measured]
    each = [(1 << 16, 1), (1 << 16, 4), (1 << 18, 1), (1 << 18, 4), (None, None)]
    assert configured == [(number, *configuration) for number in range(2) for configuration in each]
    for row in measured:
        assert row["seconds"] > 0 and row["bytes"] == SIZE
        assert row["mb_s"] == pytest.approx(16 / row["seconds"])
    assert [row["protocol"] for row in measured[:5]] == [
        "window 1", "window 4", "window 1", "window 4", "one send",
    ]  # fmt: skip


def test_the_receiver_never_needs_more_than_its_window(measured: list[Row]) -> None:
    """The promise of chunked transfers, by the kernel's own account of the process."""
    if measured[0]["peak_bytes"] is None:
        pytest.skip("this kernel does not tell a process's peak memory")
    for row in measured:
        assert row["peak_bytes"] <= row["bound_bytes"] + NOISE, row
    one_send = [row["peak_bytes"] for row in measured if row["window"] is None]
    assert min(one_send) >= 0.9 * SIZE, "one send needs memory for all: the measurement sees that"


def test_the_receivers_memory_does_not_grow_with_the_array() -> None:
    rows = list(
        chunks.rows(sizes=(SIZE, 2 * SIZE), chunks=(1 << 16,), windows=(2,), repeat=1, count=1)
    )
    peaks = {row["bytes"]: row["peak_bytes"] for row in rows if row["window"] == 2}
    if None in peaks.values():
        pytest.skip("this kernel does not tell a process's peak memory")
    assert max(peaks.values()) <= 2 * (1 << 16) + NOISE


def test_windows_that_the_array_does_not_fill_are_left_out() -> None:
    rows = chunks.rows(sizes=(1 << 18,), chunks=(1 << 16,), windows=(4, 8), repeat=1, count=1)
    assert [row["window"] for row in rows] == [4, None]


def test_summary_and_plot(measured: list[Row]) -> None:
    summary = chunks.summary(measured)
    assert len(summary) == 5
    first, last = summary[0], summary[-1]
    assert (first["protocol"], first["chunk_kb"], first["bound_kb"]) == ("window 1", 64, 64)
    assert (last["protocol"], last["chunk_kb"], last["bound_kb"]) == ("one send", None, 16384)
    throughput, memory = chunks.plot(measured).axes
    # One send is level, from the first chunk to the last.
    level = [line for line in throughput.lines if len(set(line.get_ydata())) == 1]
    assert [65536, 262144] in [list(line.get_xdata()) for line in level]
    dashed = [line for line in memory.lines if line.get_linestyle() == "--"]
    for line, window in zip(dashed, (1, 4), strict=True):
        assert all(y == x * window for x, y in line.get_xydata())


def test_a_kernel_that_does_not_report_memory_leaves_it_out(
    measured: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    blind = [row | {"peak_bytes": None} for row in measured]
    assert all(row["peak_kb"] is None for row in chunks.summary(blind))
    still(blind, Throughput((1 << 16, 1 << 18)), Memory((1 << 16, 1 << 18), (1, 4), SIZE))
    monkeypatch.setattr(chunks, "_status", lambda what: int("none"))
    assert chunks._reset_peak() is None
    monkeypatch.undo()
    with pytest.raises(ValueError, match="VmNothing"):
        chunks._status("VmNothing")


def test_sizes_as_words() -> None:
    assert [size(nbytes) for nbytes in (8, 1024, 4096, 1 << 20, 3 << 19)] == [
        "8 B", "1 kB", "4 kB", "1 MB", "1.5 MB",
    ]  # fmt: skip


def test_rows_from_the_engines_of_a_world(world: str) -> None:
    with serving(world, 2, chunks.serve) as home:
        rows = list(chunks.rows(home=home, **SMALL, repeat=1))
        assert len(rows) == 5 and not home.peek()


def test_rows_that_are_abandoned_let_the_engines_go(world: str) -> None:
    with serving(world, 2, chunks.serve) as home:
        rows = chunks.rows(home=home, **SMALL)
        assert next(rows)["window"] == 1
        rows.close()
        assert not home.peek()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"repeat": 0}, "repeat 0"),
        ({"count": 0}, "count 0"),
        ({"sizes": ()}, "a size is at least 8"),
        ({"sizes": (12,)}, "a multiple of it"),
        ({"chunks": (0,)}, "a chunk is at least 8"),
        ({"chunks": (-8,)}, "a chunk is at least 8"),
        ({"windows": (0, 1)}, "a window is at least 1"),
    ],
)
def test_bad_arguments_start_nothing(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        next(chunks.rows(**wrong))


def test_the_command_line() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repeat", type=int)
    chunks.add_arguments(parser)
    line = "--quick --repeat 1 --bytes 262144 --chunks 65536,131072 --windows 1,2"
    (part,) = chunks.plan(parser.parse_args(line.split()))
    rows = list(part.rows())
    assert [(row["chunk_bytes"], row["window"]) for row in rows] == [
        (65536, 1), (65536, 2), (131072, 1), (131072, 2), (None, None),
    ]  # fmt: skip
