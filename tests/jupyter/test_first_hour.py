"""What everybody meets in the first hour: an end without a reason, a call with the wrong word."""

from __future__ import annotations

import pytest

from tests.jupyter.notebook import Notebook, notebook

pytestmark = pytest.mark.keeps("one notebook with three engines for the whole module")

CELLS = ["%sfm start 3"]


def number(book: Notebook) -> int:
    """The number of the last cell."""
    return int(book.text("print(len(In) - 1)")) - 1


def test_an_engine_that_crashes_says_in_which_line(book: Notebook) -> None:
    code = "import ctypes\ndef read():\n    ctypes.string_at(0)\nread()"
    error = book.run(f"%%sfm 1\n{code}").error
    how = f"was killed by SIGSEGV in cell {number(book)}, line 4"
    again = "`%sfm restart 1` starts it again"
    assert error == f"CellFailed: on 1: EngineError: it {how}; {again}"
    assert f"1 {how}." in book.text("%sfm why")
    assert how in book.text("%sfm status")
    book.run("%sfm restart 1").ok()
    assert how not in book.text("%sfm why")


@pytest.mark.parametrize(
    ("code", "how"),
    [
        ("os._exit(3)", "ended with exit status 3"),
        ("os.kill(os.getpid(), 9)", "was killed by SIGKILL, from outside: most likely for want of"),
        ("os.abort()", "was killed by SIGABRT in cell"),
    ],
)
def test_other_ends_have_their_reasons(book: Notebook, code: str, how: str) -> None:
    assert f"on 2: EngineError: it {how}" in book.run(f"%%sfm 2\nimport os\n{code}").error
    book.run("%sfm restart 2").ok()


def test_who_waited_for_an_engine_that_ended_stands_below_it(book: Notebook) -> None:
    code = "if rank == 1:\n    import os; os._exit(3)\nrecv(src=1)"
    cell = book.run(f"%%sfm\n{code}")
    ended = "EngineError: it ended with exit status 3; `%sfm restart 1` starts it again"
    text = cell.text.splitlines()
    below = text[text.index(ended) + 1 :]
    waited = f" waited for 1: recv(src=1) in cell {number(book)}, line 4"
    names = [line.removesuffix(waited) for line in below]
    assert names in (["0, 2"], ["0", "2"], ["2", "0"]), "two lines if one hears it a second later"
    assert cell.error.endswith("; 0, 2 waited for it") and "PeerLost" not in cell.shown
    book.run("%sfm restart 1").ok()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("recv(0)", "recv(0) waits 0 s: recv(src=0) receives from 0"),
        ("exit()", "SystemExit: it ends this cell, not the engine: `%sfm restart 0` begins anew"),
        ("import sys\nsys.exit(4)", "SystemExit: 4: it ends this cell, not the engine"),
        ("input()", "input() waits for a keyboard, and an engine has none: ask in the notebook"),
        ("breakpoint()", "breakpoint() opens a debugger at a keyboard, and an engine has none"),
        ("from sfm_kernel import send", "send is no name of sfm_kernel: cells know it after"),
        ("known_here", "Only the notebook has known_here: `%%sfm --local` runs the cell"),
    ],
)
def test_a_sentence_says_what_to_do_instead(book: Notebook, code: str, said: str) -> None:
    book.run("known_here = 1").ok()
    cell = book.run(f"%%sfm 0\n{code}")
    assert said in cell.shown and "sfm_kernel/" not in cell.shown
    assert "0" in book.text("%%sfm 0\nprint(rank)"), "the engine lives"


def test_the_values_of_an_error_are_looked_at_on_its_engine(book: Notebook) -> None:
    book.run("%sfm restart 2").ok()
    assert "no cell on 2 has raised an error" in book.run("%sfm debug 2").text
    code = "def f(a):\n    b = [a]\n    return 1 / a\nx = 7\nf(rank - 2)"
    book.run(f"%%sfm 2\n{code}")
    cell = number(book)
    assert book.text("%sfm debug 2 p b") == "[0]\n"
    assert f"> cell {cell}(6)<module>()" in book.text("%sfm debug 2 up")
    assert book.text("%sfm debug 2 p x") == "7\n"
    assert f"cell {cell}(4)f()" in book.text("%sfm debug 2 where")
    assert "the cell has ended" in book.text("%sfm debug 2 continue")
    assert "needs a keyboard" in book.text("%sfm debug 2 interact")
    message = book.send("%sfm debug 2", asks=True)
    for line in ("p x", "nonsense here", "q"):
        book.answer(line)
    text = book.wait(message).text
    assert "7\n" in text and "SyntaxError" in text
    assert "runs one command" in book.run("%sfm debug 2").text, "without a keyboard"
    assert book.text("%%sfm 2\nprint(f(1))").endswith("1.0\n")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%sfm debug", "takes an engine"),
        ("%sfm debug 7", "takes one engine, not '7': 0, 1, 2"),
        ("%sfm debug 0,1", "takes one engine"),
    ],
)
def test_debug_takes_one_engine(book: Notebook, line: str, said: str) -> None:
    assert said in book.run(line).text


def test_a_limit_of_time_with_a_template_is_no_sender(book: Notebook) -> None:
    assert "receives from" not in book.run("%%sfm 0\nrecv(0, tag=1)").error
    assert "receives from" not in book.run("%%sfm 0\nrecv(0.0)").error


def test_the_nearest_command_is_the_one_that_begins_so(book: Notebook) -> None:
    assert "did you mean `%sfm status`" in book.run("%sfm stat").text


def test_grouped_outputs(book: Notebook) -> None:
    text = book.text("%%sfm --group-outputs engine\nprint('a', rank)\nprint('b', rank)")
    assert "[stdout:1] \na 1\nb 1\n" in text
    assert "leave out --stream" in book.run("%%sfm --group-outputs engine --stream\n1").text


def test_autopx_leaves_sfm_in_the_notebook(book: Notebook) -> None:
    book.run("import sfm_kernel.jupyter\nsfm_kernel.jupyter.client()[:].activate()").ok()
    book.run("%autopx").ok()
    try:
        book.run("sent = rank + 40")
        assert "home" in book.text("%sfm status")
        assert "[stdout:1] 41" in book.text("%%sfm\nprint(sent)")
    finally:
        book.run("%autopx").ok()
    assert "NameError" in book.run("sent").error


def test_an_error_in_run_is_shown_with_the_cell_and_without_our_frames() -> None:
    code = "import sfm_kernel\ndef f(sfm):\n    return 1 / sfm.rank\nsfm_kernel.run(f, n=2)"
    with notebook() as book:
        shown = book.run(code).shown
        assert "  cell 1, line 3, in f\n    return 1 / sfm.rank\nZeroDivisionError" in shown
        assert "sfm_kernel/" not in shown and ".py" not in shown


def test_before_engines_run_a_sentence_says_so() -> None:
    with notebook() as book:
        assert "send is known once engines run: `%sfm start 4` first" in book.run("send()").text
        assert "begin the cell with `%%sfm`" in book.run("rank").text
        assert "sfm:" not in book.run("other").text
