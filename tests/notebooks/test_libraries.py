"""The notebooks of what runs on messages: simulations, MPI, C; and of programs that hang."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from tests.notebooks.reading import demo, has_curves, is_shown, kind, pictures, text

pytestmark = pytest.mark.timeout(900)


def test_first_steps(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    notebook, _ = demo("00-first-steps", 0, tmp_path, capfd)
    assert text(notebook, "I am {rank} of").count(" of 3") == 3
    assert "good morning [1, 2, 3] from 0" in text(notebook, "m = recv()")
    assert "1 says: twice 10 is 20\n2 says: twice 20 is 40" in text(notebook, "question=10")
    wrong, right = "print(recv(src=other).text)\nsend(", "send(dest=other, text=f'greetings from"
    assert "Deadlock: 0 → 1 → 0" in text(notebook, wrong)
    assert text(notebook, right + " {rank}')\nprint").count("greetings from") == 2
    for name in ("ring", "swap"):
        assert f"{name}: not solved yet: " in text(notebook, f"%sfm check {name}")


def test_speedes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    notebook, printed = demo("06-speedes", 3, tmp_path, capfd)
    assert "node 3 of 4" in text(notebook, "comm = start_up(sfm)\nprint")
    received = text(notebook, "comm.multicast(Destination([1, 3])")
    assert received.count("(0, 7, b'to all')") == 4
    assert received.count("(0, 8, b'to 1 and 3')") == 2
    assert "SimTime(2.5, 7, 0, 0, 0)\n6" in text(notebook, "earliest = comm.global_min(")
    for source in ("show(gantt(", "show(space_time("):
        (picture,) = pictures(notebook, source)
        assert picture.width > 800 and len(picture.convert("RGB").getcolors(1 << 24)) > 50
    has_curves(notebook, "with live(StepTime(")
    is_shown(notebook, "table.pivot(index='other_ms'", printed)
    assert "nothing has changed" in text(notebook, "except Exception as error")


def test_mpi(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    notebook, _ = demo("07-mpi", 4, tmp_path, capfd)
    assert text(notebook, "Hello, I am").count(" of 4") == 4
    assert "['home of the list', 1, 2, 3]" in text(notebook, "home of the list")
    assert re.search(r"'n': 1000000, 'error': 8\.\d+e-14", text(notebook, "def middles"))
    product = text(notebook, "def master")
    assert (
        "960 rows at a time, right: True" in product and "\n40 rows at a time, right: T" in product
    )
    assert "right: True" in text(notebook, "Fetch_and_op")
    for source in ("live(Latency(", "live(Error(", "runs = recv(", "runs |= recv("):
        (picture,) = pictures(notebook, source)
        assert picture.width > 500 and len(picture.convert("RGB").getcolors(1 << 24)) > 100
    buffered, hung = (text(notebook, f"%sfm run -n 4{rest}") for rest in
                      (" exchange.py", " --timeout 3 exchange.py"))  # fmt: skip
    assert buffered.count("greetings from") == 4
    # On a busy machine not every rank has begun after three seconds.
    waits = "in <module>: comm.send(f'greetings from {comm.rank}', dest=partner)"
    assert "Deadlock: " in hung and 2 <= hung.count(waits) == hung.count(" was in ")
    assert text(notebook, "--timeout 60 exchange.py 0").count("once more") == 4


def test_hangs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    notebook, printed = demo("08-why-does-it-hang", 0, tmp_path, capfd)
    # Each of these ends as it must, and says why; what a student mends goes on.
    wrong = {
        "print(recv(src=other).text)\nsend(": "Deadlock: A → B → A",
        "tag=3, text='good morning'": "nearly fits: tag is 3, not 2",
        "send(dest='A', result=42)": "A message that would fit C's receive lies in A's inbox",
        "def is_over(left)": "left is 0, which <is_over> does not accept",
        "request.number ** 0.5": "A has received 3 of 3 messages that would have fitted",
        "second = recv(tag='result', src='C')": "The only message that would have fitted was",
        "sfm.buffering = 0\nsend(": "it waits for 'B' to receive it (buffering=0)",
        "comm.Ssend(mine": "A is in comm.Ssend(dest=1, tag=0, count=3) and waits for B",
        "range(2 if sfm.name == 'B' else 3)": "B is idle and does not make that call",
        "for task in range(6)": "C waits for recv(src='A')",
        "rank - 1 % size": "Nobody is named -1; the ranks are 0 to 2",
        "if sfm.name == 'C':\n    plan": "Deadlock: A → C → A",
    }
    for source, said in wrong.items():
        found = text(notebook, source)
        assert said in found and "DeadlockDetected" in found, source
    failed = [cell for cell in notebook.cells if "error" in map(kind, cell.get("outputs", ()))]
    assert len(failed) == len(wrong)
    whys = [
        text(nbformat.v4.new_notebook(cells=[cell]), "%sfm why")
        for cell in notebook.cells
        if cell.source.endswith("%sfm why")
    ]
    for why, said in zip(
        whys,
        [
            "Deadlock: A → C → B → A",
            "No deadlock yet: you could still give A a cell",
            "No deadlock: B still sleeps",
        ],
        strict=True,
    ):
        assert said in why
    for source, printed_then in {
        "print(colour, recv": "blue red",
        "left <= 0": "over; skipped: 2 1",
        "results[m.src] = m.value": "{'C': 2, 'B': 1}",
        "comm.Sendrecv": "[12 12 12]",
        "print(answer)": "42",
    }.items():
        assert printed_then in text(notebook, source), source
    drawn = [
        output.data["image/svg+xml"]
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if "image/svg+xml" in output.get("data", {})
    ]
    assert len(drawn) == 4 and all("<svg" in picture for picture in drawn)
    is_shown(notebook, "timeline(sfm).to_dataframe()", printed)


def test_c(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    notebook, printed = demo("09-c", 5, tmp_path, capfd)
    hello = text(notebook, "Hello, I am")
    assert all(f"[{rank}] Hello, I am {rank} of 4" in hello for rank in range(4))
    pi = text(notebook, "--stdin")
    errors = [float(error) for error in re.findall(r"Error is (\d\.\d+)", pi)]
    assert len(errors) == 3 and errors[0] > 1e-3 > errors[1] > 1e-8 > errors[2]
    assert "sfm.c.mean, sfm.c.smooth" in text(notebook, "void smooth")
    assert "[0. 3. 3. 3. 0.] 1.8" in text(notebook, "sfm.c.smooth(x, len(x))")
    called = text(notebook, "1000 * rank")
    assert "499.5" in called and "1499.5" in called
    bounds = text(notebook, "i <= 4")
    assert "line 11" in bounds and "index 4 is out of bounds" in bounds
    small = text(notebook, "--asan")
    assert "line 12: " in small and "64 bytes outside of what malloc has given" in small
    waiting = text(notebook, "MPI_Ssend")
    assert "line 11" in waiting and "CellFailed" in waiting
    assert "5 numbers, mean 4, says 0" in text(notebook, "sfm_join")
    for source in (
        "in_c.messages",
        "in_c.matrices",
        "in_c.farm(workers=workers",
        "with live(Farm(",
    ):
        (picture,) = pictures(notebook, source)
        assert picture.width > 500 and len(picture.convert("RGB").getcolors(1 << 24)) > 100
    for source in ("unstack('bytes')", "in_c.loops", "'all_seconds')).round", "farms.round"):
        is_shown(notebook, source, printed)
