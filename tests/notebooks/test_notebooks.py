"""The notebooks run whole, show what they promise, and are stored clean."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.notebooks.reading import FOLDER, kind, text
from tools.demo import run_demo

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
CELL_SECONDS = 100

pytestmark = pytest.mark.timeout(900)


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


def test_each_other_notebook_has_a_test() -> None:
    run = re.compile(r'demo\("([^"]+)"')
    files = Path(__file__).parent.glob("test_*.py")
    tested = {name for file in files for name in run.findall(file.read_text())}
    assert tested == {path.stem for path in NOTEBOOKS} - {"00-welcome"}


def test_the_demo_says_where_it_found_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_demo(tmp_path, tmp_path / "demo") == 2
    assert str(tmp_path) in capsys.readouterr().err
    assert run_demo(FOLDER, tmp_path / "demo", only=["01-cpi", "01-cpu"]) == 2
    assert "01-cpu.ipynb" in capsys.readouterr().err


def test_the_demo_goes_on_after_a_notebook_that_fails(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plot = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    for name, code in {
        "01-raises": "before = 1\n1 / 0",
        "02-dies": "import os\nos._exit(1)",
        "03-works": f"%matplotlib inline\n{plot}",
    }.items():
        cells = [nbformat.v4.new_markdown_cell(f"# Of <{name}>"), nbformat.v4.new_code_cell(code)]
        nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / f"{name}.ipynb")
    written = tmp_path / "demo"
    assert run_demo(tmp_path, written) == 1
    printed = capfd.readouterr()
    began, *lines = [line for line in printed.out.splitlines() if line.strip()]
    assert began.startswith("demo: runs 3 notebooks; ") and "8 minutes on 2 cores" in began
    ended = [line.split() for line in lines if ".ipynb" in line]
    assert [(" ".join(words[:4]), words[-1]) for words in ended] == [
        ("1 of 3 01-raises.ipynb", "failed"),
        ("2 of 3 02-dies.ipynb", "failed"),
        ("3 of 3 03-works.ipynb", "passed"),
    ]
    assert "ZeroDivisionError: division by zero (in the cell that begins with 'before = 1'" in (
        printed.err
    )
    assert "without encryption" not in printed.err
    raised = nbformat.read(written / "01-raises.ipynb", as_version=4)
    assert raised.cells[1].outputs[0].ename == "ZeroDivisionError"
    assert f"1 of 3 passed; all on one page: file://{written}/index.html" in printed.out
    page = (written / "index.html").read_text()
    assert "1 of 3 notebooks passed" in page and "Of &lt;01-raises&gt;" in page
    assert "failed: DeadKernelError" in page and "usable_cores" in page
    links = set(re.findall(r'(?:href|src)="([^"]+)"', page))
    assert {"01-raises.html", "02-dies.ipynb", "03-works.html", "03-works-1.png"} <= links
    assert all((written / link).is_file() for link in links)


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
