"""The notebooks run whole, show what they promise, and are stored clean."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from base64 import b64decode
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from PIL import Image

from sfm_kernel.bench.demo import run_demo

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
    for output in outputs(notebook, source):
        parts.append(output.get("text", "") + output.get("data", {}).get("text/plain", ""))
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
    assert run_demo(FOLDER, tmp_path / "demo") == 0
    printed = capfd.readouterr().out
    check_cpi(nbformat.read(tmp_path / "demo/01-cpi.ipynb", as_version=4), printed)
    check_ping_pong(nbformat.read(tmp_path / "demo/02-ping-pong.ipynb", as_version=4), printed)
    for name in ("01-cpi", "02-ping-pong"):
        for number in (1, 2):
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
    assert "SFM w/Q zmq" in then_and_now


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


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_clean(path: Path) -> None:
    verified = subprocess.run(
        [sys.executable, "-m", "nbstripout", "--verify", str(path)], capture_output=True, text=True
    )
    assert verified.returncode == 0, f"nbstripout {path}\n{verified.stdout}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_ends_by_stopping_its_engines(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code[-1].source == "%sfm stop"
    assert notebook.cells[0].source.startswith("# ")
    assert all(cell.source.strip() for cell in notebook.cells)
