"""%%sfm: where a cell runs, what it shows, how it fails and how it is interrupted."""

from __future__ import annotations

import pytest

from tests.jupyter.notebook import Notebook, wait_for, wait_until_blocked

pytestmark = pytest.mark.keeps("one notebook with two engines for the whole module")

CELLS = ["%sfm start A B"]


def test_every_engine_has_its_names(book: Notebook) -> None:
    shown = book.run("%%sfm\nprint(rank, size, sfm.name, send, recv, recv_nb, peek, regcb)").ok()
    assert "[stdout:A] 0 2 A <" in shown.text
    assert "[stdout:B] 1 2 B <" in shown.text


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("", "AB"),
        ("A", "A"),
        ("1", "B"),
        ("0,1", "AB"),
        ("A B", "AB"),
        ("1:", "B"),
        ("--targets B", "B"),
        ("-t all --no-stream", "AB"),
    ],
)
def test_a_cell_runs_where_it_is_told(book: Notebook, line: str, names: str) -> None:
    text = book.text(f"%%sfm {line}\nprint('ran')")
    assert [name for name in "AB" if f"[stdout:{name}]" in text] == list(names)
    assert text.count("ran") == len(names)


def test_the_first_example(book: Notebook) -> None:
    book.run("%%sfm A\nsend(dest='B', mytag=42, input=list(range(10)))").ok()
    shown = book.run("%%sfm B\nm = recv(mytag=42); print(m)\nprint(m.src, m.input, m.mytag)").ok()
    assert "Message: {" in shown.text
    assert "A [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] 42" in shown.text


def test_the_notebook_takes_part(book: Notebook) -> None:
    book.run("send(dest='A', question=6)").ok()
    book.run("%%sfm A\nm = recv(src='home'); send(dest=m.src, answer=7 * m.question)").ok()
    assert "42 None" in book.text("m = recv(src=0); print(m.answer, sfm.rank)")


def test_a_progress_bar_of_an_engine_is_one_of_the_notebook(book: Notebook) -> None:
    """The browser knows the widgets that this kernel has opened; without ipywidgets tqdm warns."""
    count = "import comm; print(len(comm.get_comm_manager().comms))"
    before = int(book.text(count))
    bar = "%%sfm A\nfrom tqdm.auto import tqdm\nfor step in tqdm(range(3)):\n    pass"
    shown = book.run(bar).ok()
    assert "0/3" in shown.text and "IProgress" not in shown.text
    assert int(book.text(count)) > before


def test_a_result_is_labelled_with_the_name(book: Notebook) -> None:
    text = book.text("%%sfm\nrank + 100")
    assert "Out[A:" in text and ": 100" in text
    assert "Out[B:" in text and ": 101" in text


def test_an_error_names_its_engine_once_and_the_others_go_on(book: Notebook) -> None:
    book.run("%%sfm\nkept = 'state'").ok()
    cell = book.run("%%sfm\nif rank == 0: 1 / 0\nprint('fine', rank)")
    assert cell.error == "CellFailed: on A: ZeroDivisionError: division by zero"
    assert cell.shown.count("----> 2 if rank == 0: 1 / 0") == 1
    assert "on A:\n" in cell.text
    assert "fine 1" in cell.text
    assert "magics.py" not in cell.shown
    assert book.text("%%sfm\nprint(kept)").count("state") == 2


def test_the_same_error_everywhere_is_one_sentence(book: Notebook) -> None:
    assert book.run("%%sfm\nnone").error.startswith("CellFailed: on A, B: NameError: ")


def test_without_streaming_errors_name_their_engine_too(book: Notebook) -> None:
    cell = book.run("%%sfm A --no-stream\n1 / 0")
    assert "on A:\n" in cell.shown and "ZeroDivisionError" in cell.shown


def test_top_level_await(book: Notebook) -> None:
    code = "%%sfm\nimport asyncio\nawait asyncio.sleep(0.01)\nprint('awaited')"
    assert book.text(code).count("awaited") == 2


def test_noblock_returns_and_out_keeps_the_result(book: Notebook) -> None:
    book.run("%%sfm A --noblock --out later\nprint(recv(go=1).src)\n7").ok()
    book.run("send(dest='A', go=1)").ok()
    shown = book.text("later.get(); later.display_outputs()")
    assert "[stdout:A]" in shown and "home" in shown and ": 7" in shown


def test_local_runs_in_the_notebook_as_well(book: Notebook) -> None:
    text = book.text("%%sfm A --local\nprint('I am', sfm.name)")
    assert "I am home" in text and "I am A" in text


def test_stop_ends_a_cell_that_runs_in_the_notebook_as_well(book: Notebook) -> None:
    message = book.send(
        "%%sfm A --local --no-detect\nif sfm.name == 'A': recv(never=1)\nprint('home is done')"
    )
    book.wait(message, lambda cell: "home is done" in cell.text)
    wait_until_blocked(1)
    book.interrupt()
    cell = book.wait(message)
    assert "A was in recv(never=1)" in cell.error
    message = book.send("%%sfm A --local --no-detect\nprint('in', sfm.name)\nrecv(never=1)")
    book.wait(message, lambda cell: "in home" in cell.text)
    wait_until_blocked(2)
    book.interrupt()
    cell = book.wait(message)
    assert "A was in recv(never=1)" in cell.error and "in A" in cell.text
    assert "on A: ZeroDivisionError" in book.run("%%sfm A --local\nrank and 1 / 0 or 1 / 0").error
    assert "alive" in book.text("%%sfm\nprint('alive')")


def test_outputs_come_while_the_cell_runs(book: Notebook) -> None:
    message = book.send("%%sfm A --no-detect\nprint('before')\nrecv(never=1)\nprint('after')")
    book.wait(message, lambda cell: "before" in cell.text)
    book.interrupt()
    assert "after" not in book.wait(message).text


def test_stop_ends_blocked_engines_and_tells_where_they_were(book: Notebook) -> None:
    message = book.send(
        "%%sfm --no-detect\nother = 'BA'[rank]; print('in')\nrecv(src=other, tag='never')"
    )
    book.wait(message, lambda cell: cell.text.count("in") >= 2)
    wait_until_blocked(2)
    book.interrupt()
    cell = book.wait(message)
    assert "A was in recv(src='B', tag='never')" in cell.error
    assert "B was in recv(src='A', tag='never')" in cell.error
    assert "magics.py" not in cell.shown
    assert "alive" in book.text("%%sfm\nprint('alive')")


def test_stop_does_not_lose_a_message(book: Notebook) -> None:
    book.run("send(dest='A', number=1)").ok()
    message = book.send("%%sfm A --no-detect\nprint('in')\nrecv(number=2)")
    book.wait(message, lambda cell: "in" in cell.text)
    wait_until_blocked(1)
    book.interrupt()
    book.wait(message)
    assert "got 1" in book.text("%%sfm A\nprint('got', recv(number=1).number)")


def test_status_and_queues_show_a_blocked_engine(book: Notebook) -> None:
    book.run("send(dest='A', text='<b>bold</b>')").ok()
    book.run("%%sfm A --noblock --out blocked\nrecv(go='<i>')").ok()
    # the engine needs a moment to get there
    wait_for(lambda: "recv(go='<i>')" in book.run("%sfm status").text, "A is blocked")
    status = book.run("%sfm status").ok()
    assert "blocked in recv" in status.text and "home" in status.text
    assert "recv(go=&#x27;&lt;i&gt;&#x27;)" in status.html
    wait_for(lambda: "<b>bold</b>" in book.run("%sfm queues").text, "the queue shows it")
    assert "&lt;b&gt;bold" in book.run("%sfm queues").html
    book.run("send(dest='A', go='<i>'); blocked.get()").ok()
    book.run("%%sfm A\nrecv(text='<b>bold</b>')").ok()


def test_reset_does_not_take_the_names_and_users_may(book: Notebook) -> None:
    book.run("%%sfm A\nget_ipython().reset()").ok()
    assert "0 2" in book.text("%%sfm A\nprint(rank, size)\nsize = 'mine'")
    assert "mine" in book.text("%%sfm A\nprint(size)\ndel size")
    assert "2" in book.text("%%sfm A\nprint(size)")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("%%sfm C\n1", "no engine is called C. Known: A, B"),
        ("%%sfm {A}\n1", "no engine is called {A}"),
        ("%%sfm --nonsense\n1", "%%sfm: unrecognized arguments: --nonsense"),
        ("%sfm strat 4", "did you mean `%sfm start`? Known: start, connect"),
        ("%sfm start 0", "a number from 1 to"),
        ("%sfm start 'A", "No closing quotation"),
        ("%sfm start A B C", "nothing started. already running: 2 engines: A (rank 0), B (rank 1)"),
        ("%sfm connect", "already connected: 2 engines"),
        ("%sfm run", "%sfm run: no program"),
        ("%sfm run -n 0 prog.py", "a number from 1 to"),
        ("%sfm run no.py", "there is no file 'no.py'. For example: %sfm run -n 4 prog.py"),
    ],
)
def test_errors_are_one_line(book: Notebook, code: str, words: str) -> None:
    cell = book.run(code)
    assert words in cell.text
    assert len(cell.shown.strip().splitlines()) == 1


def test_starting_the_same_again_changes_nothing(book: Notebook) -> None:
    assert "already running: 2 engines" in book.text("%sfm start A B")


def test_help_shows_an_example(book: Notebook) -> None:
    for code in ("%sfm", "%sfm help"):
        text = book.text(code)
        assert "send(dest=" in text and "%%sfm A" in text


def test_clean_leaves_the_living(book: Notebook) -> None:
    book.run("%sfm clean").ok()
    assert "alive" in book.text("%%sfm\nprint('alive')")


def test_early_output_is_shown_once(book: Notebook) -> None:
    slow = "from sfm_kernel.jupyter import cell; import time\nfast = cell._View.execute\n"
    slow += "cell._View.execute = lambda *args, **kwargs: "
    slow += "(fast(*args, **kwargs), time.sleep(0.3))[0]"
    book.run(slow).ok()
    shown = book.text("%%sfm\nprint('text', rank)\ndisplay('rich')\nrank + 100")
    for once in ("text 0", "text 1", ": 100", ": 101"):
        assert shown.count(once) == 1, shown
    assert shown.count("rich") == 2
    assert book.run("%%sfm A\n1 / 0").shown.count("----> 2 1 / 0") == 1
    book.run("cell._View.execute = fast").ok()


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("send(dest='Z', x=1)", "no process is named 'Z'"),
        ("send(dest='B', x=lambda: 0)", "attribute 'x' cannot be sent"),
        ("recv(0.01, tag=1)", "no message matched recv(tag=1) within 0.01 s"),
    ],
)
@pytest.mark.parametrize("magic", ["%%sfm A\n", ""], ids=["engine", "notebook"])
def test_errors_of_ours_show_the_user_s_line_and_what_they_say(
    book: Notebook, magic: str, cell: str, said: str
) -> None:
    shown = book.run(f"{magic}def mine():\n    {cell}\nmine()").shown
    line = 2 + bool(magic)
    assert said in shown
    assert f"----> {line}     {cell}" in shown and f"----> {line + 1} mine()" in shown
    assert "messaging.py" not in shown and "direct cause" not in shown, shown


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%sfm '", "a quotation mark has no partner"),
        ("%sfm 4", "did you mean `%sfm start 4`?"),
        ("%sfm WHY", "did you mean `%sfm why`?"),
        ("%sfm timeline /nowhere/run.json", "cannot be written (No such file or directory)"),
        ("%sfm run /proc/self/fdinfo", "the folder /proc/self/fdinfo has no __main__.py"),
        ("sfm.buffering = 'x'", "buffering is a number of bytes, 0 or more, not 'x'"),
    ],
)
def test_wrong_lines_are_told_in_a_sentence(book: Notebook, line: str, said: str) -> None:
    shown = book.run(line).shown
    assert said in shown and ("Traceback" not in shown or not line.startswith("%")), shown
