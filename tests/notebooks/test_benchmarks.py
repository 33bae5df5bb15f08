"""The notebooks that measure messages, arrays and collectives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sfm_kernel.collectives import ALGORITHMS
from tests.notebooks.reading import demo, has_curves, is_shown, pictures, text

pytestmark = pytest.mark.timeout(900)


def test_cpi(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    notebook, printed = demo("01-cpi", 2, tmp_path, capfd)
    assert "error is 8.3" in text(notebook, "m = recv(src=0)")
    (figure_5,) = pictures(notebook, "show(rectangles(")
    assert figure_5.width > 500
    has_curves(notebook, "with live(Error(")
    for source in (".pivot(", "columns].round(2)"):
        is_shown(notebook, source, printed)


def test_ping_pong(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    notebook, printed = demo("02-ping-pong", 2, tmp_path, capfd)
    assert re.search(r"one way: median \d+\.\d µs", text(notebook, "seconds.append("))
    for source in ("with live(latency, bandwidth", "with live(Latency(nbytes)"):
        has_curves(notebook, source)
    for source in ("'times faster'", "row.paper_2007_mbit_s"):
        is_shown(notebook, source, printed)
    then_and_now = text(notebook, "'times faster'")
    assert "97.0" in then_and_now and "984.0" in then_and_now  # SFM w/Q of the paper
    assert "SFM w/Q zmq" in then_and_now
    # A message by hand.
    assert "'n': 7, 'text': 'by hand'" in text(notebook, "queue.send(hello)")
    assert "53 46 50 b5" in text(notebook, "dissect(data)")
    answers = text(notebook, "answers.append(queue.recv())")
    assert {"H", "W", "A"} <= set(re.findall(r"^\d +(\w) ", answers, flags=re.MULTILINE))
    assert "array([0, 1, 2, 3])" in text(notebook, "print(came[88:])")
    assert "attribute 'bad' cannot be sent" in text(notebook, "bad=[1, 2]")


def test_dot(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    notebook, printed = demo("03-dot-product", 4, tmp_path, capfd)
    sums = re.findall(r"engine \d: (\S+)", text(notebook, "def pdot(x, y):\n    result"))
    assert len(sums) == 4 and len(set(sums)) == 1  # all engines have the same
    for name in ("flags", "linear", "binomial", "recursive doubling", "two-level"):
        assert re.search(rf"{name} +-?\d+\.\d+ +\d+\.\d µs", text(notebook, "REDUCTIONS[1:]"))
    assert text(notebook, "products, np.add").count("the angle is 90.") == 4
    assert re.search(r"7\d\d steps", text(notebook, "with live(Residual(760"))
    for source in ("with live(Residual(760", "spsolve(matrix(m)"):
        (picture,) = pictures(notebook, source)
        assert picture.width > 500 and len(picture.convert("RGB").getcolors(1 << 24)) > 100
    found = re.findall(r": +(\d\.\de-\d+)", text(notebook, "spsolve(matrix(m)"))
    from_scipy, from_exact = map(float, found)
    assert from_scipy < 1e-9 < from_exact < 1e-6
    for source in ("with live(*(DotTime(", "with live(residual, share"):
        has_curves(notebook, source)
    for source in (
        "values='us'", "values='share')", "'different'", "values=['ms'", "'share_max'",
        "'true_residual'",
    ):  # fmt: skip
        is_shown(notebook, source, printed)


def test_chunked(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    notebook, printed = demo("04-chunked-mpi", 1, tmp_path, capfd)
    by_hand = text(notebook, "send_in_chunks(array, chunk")
    assert len(re.findall(r"chunks of [ \d,]+ numbers: +[\d,]+ MB/s", by_hand)) == 4
    assert "[-1 -1 10 11 12 13 14 15 -1 -1]" in text(notebook, "list(range(100)), 10, 6")
    waiting = text(notebook, "sleep(0.5)")  # the window: three of ten chunks, and no more
    assert re.search(r"^1 +3 ", waiting, flags=re.MULTILINE) and "start=200" in waiting
    assert "Received(count=1000, src=0, tag='array')" in text(notebook, "buffer = np.zeros(1000)")
    has_curves(notebook, "with live(Throughput(")
    for source in ("values='mb_s'", "values='peak_kb'"):
        is_shown(notebook, source, printed)
    assert "never more than the window: True" in text(notebook, "table.bound_kb).max()")


def test_reductions(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    notebook, printed = demo("05-reduction-scaling", 5, tmp_path, capfd)
    # Four engines add up 10 + rank: by hand in two ways, then by every algorithm.
    for source in ("tag='mine'", "tag='up'"):
        assert text(notebook, source).count("46.0") == 4
    totals = text(notebook, "totals.items()")
    assert totals.count("[46. 46.]") == len(ALGORITHMS["allreduce"])
    for source in (
        "with live(*growth",
        "'shm'))",
        "'zmq'))",
        "with live(*panels",
        "Model(model,",
    ):
        has_curves(notebook, source)
    for source in (
        "values='us'", "growth(reductions.summary(measured))", "spent.set_index",
        "shared.set_index", "growth(reductions.summary(turns))",
        "Prices of the model", "seconds (model)",
    ):  # fmt: skip
        is_shown(notebook, source, printed)
    assert "messages over zmq" in text(notebook, "Prices of the model")
