"""The notebooks run whole, show what they promise, and are stored clean."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from PIL import Image

from sfm_kernel.bench.demo import run_demo
from sfm_kernel.collectives import ALGORITHMS

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
CELL_SECONDS = 100

pytestmark = pytest.mark.timeout(900)


def outputs(notebook: Any, source: str) -> list[Any]:
    """The outputs of the only code cell that contains ``source``."""
    (cell,) = [
        cell for cell in notebook.cells if cell.cell_type == "code" and source in cell.source
    ]
    return list(cell.outputs)


def text(notebook: Any, source: str) -> str:
    """All text of these outputs, without labels of engines and colours."""
    parts = []
    stream = None
    for output in outputs(notebook, source):
        if stream is not None and output.get("name") == stream:
            parts[-1] += output["text"]  # a message may end anywhere: in the middle of a line
        else:
            parts.append(output.get("text", "") + output.get("data", {}).get("text/plain", ""))
        stream = output.get("name")
        parts.extend(output.get("traceback", ()))
    return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(parts))


def pictures(notebook: Any, source: str) -> list[Image.Image]:
    return [
        Image.open(io.BytesIO(b64decode(output.data["image/png"])))
        for output in outputs(notebook, source)
        if "image/png" in output.get("data", {})
    ]


def test_welcome() -> None:
    notebook = nbformat.read(FOLDER / "00-welcome.ipynb", as_version=4)
    folder = {"metadata": {"path": str(FOLDER)}}
    NotebookClient(notebook, timeout=CELL_SECONDS, resources=folder).execute()

    # Example 1 of the paper, with src and dest as they are.
    assert (
        "Message: {'dest': 'B', 'src': 'A', 'mytag': 42, "
        "'input': [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}\nA\n[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n42\n"
    ) in text(notebook, "m = recv(mytag=42)")
    for source, printed in {
        "print(recv().word)": "one\ntwo\nthree",
        "recv(src='home').text": "a word from the notebook\na word from A",
        "protocol='input', last=True).data": "[4, 5, 6]\n[1, 2, 3]\nstarted",
        "lambda tag: tag > 10": "23\n42\n7",
        "recv(0.5, tag='never sent')": "RecvTimeout: ",
        "recv_nb(tag='to myself')": "'tag': 'to myself'}\nWouldBlock: ",
        "peek(tag='look')": "True True False\nFalse",
        "callback.unregister()": "['rain', 'wind', 'sun']",
        "print('B goes on')": "B goes on",
        "print(len(recv(src='A').data)": "10000000 1",
        "print('B has', b)": "B has [100.   1.   2.   3.   4.]",
        "print('A has', a)": "A has [-1. -1. -1. -1. -1.]",
        "usual, sfm.buffering = ": "send took ",
        "send(dest='C'": "UnknownName: no process is named 'C'",
        "send(text='to whom?')": "AddressError",
        "log=open('/dev/null')": "EncodeError: attribute 'log' cannot be sent",
        "%sfm status": "home",
    }.items():
        assert printed in text(notebook, source), source
    assert re.search(r"^B +2 ", text(notebook, "%sfm queues"), flags=re.MULTILINE)
    (answer,) = [cell for cell in notebook.cells if cell.source == "recv(src='A')"]
    assert "'result': 42" in answer.outputs[0].data["text/plain"]
    # Only what fails on purpose has failed.
    failed = [cell for cell in notebook.cells if "error" in map(kind, cell.get("outputs", ()))]
    assert all("raises-exception" in cell.metadata.tags for cell in failed) and len(failed) == 3


def kind(output: Any) -> str:
    return str(output.output_type)


def test_the_demo(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """All notebooks but the first, as `make demo` runs them: what they show, and their pictures."""
    assert run_demo(FOLDER, tmp_path / "demo") == 0
    printed = capfd.readouterr().out
    checks: dict[str, tuple[Callable[[Any, str], None], int]] = {
        "01-cpi": (check_cpi, 2),
        "02-ping-pong": (check_ping_pong, 2),
        "03-dot-product": (check_dot, 4),
        "04-chunked-mpi": (check_chunked, 1),
        "05-reduction-scaling": (check_reductions, 5),
        "06-speedes": (check_speedes, 3),
        "07-mpi": (check_mpi, 2),
        "08-why-does-it-hang": (check_hangs, 0),
        "09-c": (check_c, 5),
        "10-sites": (check_sites, 5),
    }
    assert set(checks) == {path.stem for path in NOTEBOOKS} - {"00-welcome"}
    for name, (check, pictures_of) in checks.items():
        check(nbformat.read(tmp_path / f"demo/{name}.ipynb", as_version=4), printed)
        for number in range(1, pictures_of + 1):
            assert (tmp_path / f"demo/{name}-{number}.png").read_bytes().startswith(b"\x89PNG")


def check_cpi(notebook: Any, printed: str) -> None:
    assert "error is 8.3" in text(notebook, "m = recv(src=0)")
    (figure_5,) = pictures(notebook, "show(rectangles(")
    assert figure_5.width > 500
    has_curves(notebook, "with live(Error(")
    for source in (".pivot(", "columns].round(2)"):
        is_shown(notebook, source, printed)


def check_ping_pong(notebook: Any, printed: str) -> None:
    assert re.search(r"one way: median \d+\.\d µs", text(notebook, "seconds.append("))
    for source in ("with live(latency, bandwidth)", "with live(Latency(nbytes)"):
        has_curves(notebook, source)
    for source in ("'times faster'", "row.paper_2007_mbit_s"):
        is_shown(notebook, source, printed)
    then_and_now = text(notebook, "'times faster'")
    assert "97.0" in then_and_now and "984.0" in then_and_now  # SFM w/Q of the paper
    assert "SFM w/Q tcp" in then_and_now


def check_dot(notebook: Any, printed: str) -> None:
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
    for source in ("with live(*(DotTime(", "with live(residual, share)"):
        has_curves(notebook, source)
    for source in (
        "values='us'", "values='share')", "'different'", "values=['ms'", "'share_max'",
        "'true_residual'",
    ):  # fmt: skip
        is_shown(notebook, source, printed)


def check_chunked(notebook: Any, printed: str) -> None:
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


def check_reductions(notebook: Any, printed: str) -> None:
    # Four engines add up 10 + rank: by hand in two ways, then by every algorithm.
    for source in ("tag='mine'", "tag='up'"):
        assert text(notebook, source).count("46.0") == 4
    totals = text(notebook, "totals.items()")
    assert totals.count("[46. 46.]") == len(ALGORITHMS["allreduce"])
    for source in (
        "with live(*growth)",
        "'shm'))",
        "'tcp'))",
        "with live(*panels)",
        "Model(model,",
    ):
        has_curves(notebook, source)
    for source in (
        "values='us'", "growth(reductions.summary(measured))", "spent.set_index",
        "shared.set_index", "growth(reductions.summary(turns))",
        "Prices of the model", "seconds (model)",
    ):  # fmt: skip
        is_shown(notebook, source, printed)
    assert "messages over tcp" in text(notebook, "Prices of the model")


def check_speedes(notebook: Any, printed: str) -> None:
    assert "node 3 of 4" in text(notebook, "comm = start_up(sfm)")
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


def check_mpi(notebook: Any, printed: str) -> None:
    assert text(notebook, "Hello, I am").count(" of 4") == 4
    assert "['home of the list', 1, 2, 3]" in text(notebook, "home of the list")
    assert re.search(r"'n': 1000000, 'error': 8\.\d+e-14", text(notebook, "def middles"))
    product = text(notebook, "def master")
    assert (
        "960 rows at a time, right: True" in product and "\n40 rows at a time, right: T" in product
    )
    for source in ("with live(Error(", "rows_over_time({"):
        (picture,) = pictures(notebook, source)
        assert picture.width > 500 and len(picture.convert("RGB").getcolors(1 << 24)) > 100
    buffered, hung = (text(notebook, f"%sfm run -n 4{rest}") for rest in
                      (" exchange.py", " --timeout 3 exchange.py"))  # fmt: skip
    assert buffered.count("greetings from") == 4
    assert hung.count("in <module>: comm.send(f'greetings from {comm.rank}', dest=partner)") == 4
    assert text(notebook, "--timeout 60 exchange.py 0").count("once more") == 4


def check_hangs(notebook: Any, printed: str) -> None:
    # Each of these ends as it must, and says why; what a student mends goes on.
    wrong = {
        "print(recv(src=other).text)\nsend(": "Deadlock: A → B → A",
        "tag=3, text='good morning'": "nearly fits: tag is 3, not 2",
        "send(dest='A', result=42)": "A message that would fit C's receive lies in A's inbox",
        "def is_over(left)": "left is 0, which <is_over> does not accept",
        "request.number ** 0.5": "A has received all 3 messages that would have fitted",
        "second = recv(tag='result', src='C')": "The only message that would have fitted was",
        "sfm.buffering = 0\nsend(": "it waits for 'B' to receive it (buffering=0)",
        "comm.Ssend(mine": "A is in Ssend and waits for B",
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
    assert len(drawn) == 4 and all("<svg" in one for one in drawn)
    is_shown(notebook, "timeline(sfm).to_dataframe()", printed)


def check_c(notebook: Any, printed: str) -> None:
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
    waiting = text(notebook, "MPI_Ssend")
    assert "line 11" in waiting and "CellFailed" in waiting
    assert "5 numbers, mean 4, says 0" in text(notebook, "sfm_join")
    for source in (
        "in_c.messages",
        "in_c.matrices",
        "workers=workers, repeat=1",
        "with live(Farm(",
    ):
        (picture,) = pictures(notebook, source)
        assert picture.width > 500 and len(picture.convert("RGB").getcolors(1 << 24)) > 100
    for source in ("unstack('bytes')", "in_c.loops", "'all_seconds')).round", "farms.round"):
        is_shown(notebook, source, printed)


def check_sites(notebook: Any, printed: str) -> None:
    routes = text(notebook, "sharing import routes")
    for one in (r"a2 +A +1 +shm", r"a3 +A +2 +tcp", r"b1 +B +1 +gateway"):
        assert re.search(one, routes)
    failed = text(notebook, "failing import killed")
    assert re.search(r"lost +0\n", failed) and re.search(r"doubled +0\n", failed)
    for source in ("AfterSilence(0.02", "['start']", "['pairs 2']", "['requests']", "nas.iter"):
        (picture,) = pictures(notebook, source)
        assert picture.width > 500 and len(picture.convert("RGB").getcolors(1 << 24)) > 100
        assert re.search(r"Not disturbed\.|Disturbed, since", text(notebook, source))
    for source in (
        "import routes", "'more, µs'", "sites.counted(", ".groupby(", "import killed",
        "PATTERNS.items()", "nas.counts(",
    ):  # fmt: skip
        (shown,) = (
            one.data for one in outputs(notebook, source) if "text/html" in one.get("data", {})
        )
        assert 'class="dataframe"' in shown["text/html"] and shown["text/plain"] in printed
    asked = text(notebook, "route_kind(other)")
    assert "a2: shm, " in asked and "b1: gateway, " in asked and "b2: gateway, " in asked
    assert re.search(r"\bb2 +3 +B ", text(notebook, "%sfm status"))
    seen = text(notebook, "%sfm sites")
    assert "A → B" in seen and "B-1" in seen and "emulated" in seen


def has_curves(notebook: Any, source: str) -> None:
    """The plot that was live is one picture in the end, and more than empty pairs of axes."""
    (plot,) = pictures(notebook, source)
    assert plot.width > 800 and len(plot.convert("RGB").getcolors(1 << 24)) > 100


def is_shown(notebook: Any, source: str, printed: str) -> None:
    """The table that this cell displays is what the demo has printed."""
    (result,) = outputs(notebook, source)
    assert 'class="dataframe"' in result.data["text/html"]
    assert result.data["text/plain"] in printed


def test_the_demo_says_where_it_found_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_demo(tmp_path, tmp_path / "demo") == 2
    assert str(tmp_path) in capsys.readouterr().err


def test_a_notebook_that_fails_fails_the_demo(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 / 0")])
    nbformat.write(broken, tmp_path / "07-broken.ipynb")
    assert run_demo(tmp_path, tmp_path / "demo") == 1
    assert "ZeroDivisionError" in capsys.readouterr().err
    written = nbformat.read(tmp_path / "demo/07-broken.ipynb", as_version=4)
    assert written.cells[0].outputs[0].ename == "ZeroDivisionError"


def test_stored_clean() -> None:
    command = [sys.executable, "-m", "nbstripout", "--verify", *map(str, NOTEBOOKS)]
    verified = subprocess.run(command, capture_output=True, text=True)
    assert verified.returncode == 0, f"nbstripout FILE cleans it\n{verified.stdout}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_ends_by_stopping_its_engines(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if any("%sfm start" in cell.source for cell in code):
        assert code[-1].source == "%sfm stop"
    assert notebook.cells[0].source.startswith("# ")
    assert all(cell.source.strip() for cell in notebook.cells)
