"""Unused engines end; a user of engines is not disturbed, and a returning user is informed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.jupyter.notebook import Notebook, descendants, notebook, runs, wait_for
from tests.jupyter.server import server

CELLS: list[str] = []
LONG = 4.0
"""Seconds: twice as long as engines may be idle in these tests."""


def alive(book: Notebook) -> bool:
    """Whether a process runs that this notebook has started."""
    return any(map(runs, descendants(book.pid)))


def ended(book: Notebook) -> None:
    """Wait until no such process runs."""
    wait_for(lambda: not alive(book), "the engines end")


def test_they_end_and_the_next_cell_says_so(sfm_dir: Path) -> None:
    with notebook("%sfm start A B --idle 2s") as book:
        ended(book)
        shown = book.text("print('first')\n'next'")
        assert shown.startswith("first")
        assert "The engines A, B ended at" in shown and "after 2 seconds without use" in shown
        assert "`%sfm start A B --idle 2s` starts new ones" in shown
        assert "ended" not in book.text("'next'"), "once is enough"
        assert "no engines: `%sfm start 4`" in book.run("%sfm status").text
        assert "NameError" in book.run("send(dest='A')").error
        assert not [*sfm_dir.glob(".ended-*")], "nothing is left to be told"
        began = book.text("%sfm start A B --idle=2s")
        assert "2 engines: A (rank 0), B (rank 1)" in began
        assert "they end after 2 seconds without use" in began
        book.run("%%sfm\nprint(sfm.name)").ok()
        ended(book)
        again = book.run("%%sfm\nprint('here')")
        assert again.text.count("after 2 seconds without use") == 1
        assert "no engines. The engines A, B ended" in again.text
        assert "ended" not in book.text("%sfm start 1 --idle never")


def test_a_running_program_is_never_ended() -> None:
    with notebook("%sfm start A B --idle 2s") as book:
        book.run("%%sfm A --noblock --no-detect\nrecv(tag='never sent')").ok()
        time.sleep(LONG)  # blocked
        assert alive(book)
        book.run("%sfm restart A").ok()
        book.run(f"%%sfm B\nimport time; time.sleep({LONG})").ok()
        book.run(f"import time; time.sleep({LONG})").ok()  # a cell of the notebook's own
        book.run("%%sfm A\nprint('still there')").ok()
        left = "import threading, time\nthreading.Thread(target=time.sleep, args=(%s,)).start()"
        book.run(f"%%sfm A\n{left % LONG}").ok()
        time.sleep(LONG - 1)
        assert alive(book), "a thread of A goes on"
        view = "get_ipython().magics_manager.registry['SFMMagics']._home.client[:]"
        book.run(f"import time\nasked = {view}.apply_async(time.sleep, {LONG})").ok()
        time.sleep(LONG - 1)
        assert alive(book), "a function of ipyparallel's runs"
        ended(book)


def test_another_notebook_counts() -> None:
    with notebook("%sfm start A") as first, notebook("%sfm connect") as second:
        busy = second.send(f"import time; print('busy'); time.sleep({LONG})")
        second.wait(busy, lambda cell: "busy" in cell.text)
        first.run("%sfm start A --idle 2s").ok()
        second.wait(busy)
        second.run("%%sfm\nprint('still there')").ok()
        ended(first)
        assert "WorldGone" in second.run("%%sfm\nprint('gone')").error


def test_the_time_can_be_changed_while_they_run() -> None:
    with notebook("%sfm start A") as book:
        changed = book.text("%sfm start A --idle 2s")
        assert "already running" in changed
        ended(book)


def test_on_a_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTERHUB_USER", "ada")
    monkeypatch.setenv("SFM_MAX_IDLE", "2h")
    monkeypatch.setenv("SFM_MAX_ENGINES", "1")
    with notebook() as book:
        assert (
            "this hub allows each user 1 engine: `%sfm start 1`" in book.run("%sfm start 2").error
        )
        assert "they end after 30 minutes without use" in book.text("%sfm start 1")
        book.run("%sfm stop").ok()
        asked = book.run("%sfm start 1 --idle never").text
        assert "%sfm start --idle: this hub allows 2 hours at most" in asked
        assert "they end after 1 hour without use" in book.text("%sfm start 1 --idle 1h")


@pytest.mark.parametrize("words", ["--idle", "--idle soon", "--idle=", "2 --idle -3"])
def test_a_wrong_time_is_refused(words: str, book: Notebook) -> None:
    assert "is no time: write 90s, 30m, 2h or never" in book.run(f"%sfm start {words}").text
    assert "no engines" in book.run("%sfm status").text


def test_a_notebook_that_is_closed_meanwhile_leaves_nothing(sfm_dir: Path) -> None:
    with notebook("%sfm start A --idle 2s") as book:
        ended(book)
        wait_for(lambda: [*sfm_dir.glob(".ended-*")], "the panel can tell of it")
    assert not [*sfm_dir.glob(".ended-*")]


def test_engines_of_the_panel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SFM_IDLE", "3s")
    (tmp_path / "jupyter_server_config.py").write_text("c.SFM.max_engines = 2\n")
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path))
    with server(tmp_path) as panel:
        status, answer = panel.post("sfm/worlds", {"engines": 3})
        assert status == 500
        assert answer["message"] == "this machine allows each user 2 engines: `%sfm start 2`"
        with panel.stream() as stream:
            stream.watch(None)
            world = panel.done("sfm/worlds", {"names": ["A", "B"]})["world"]
            assert world in panel.worlds()
            stream.until("error", lambda text: "The engines A, B ended at" in text)
        wait_for(lambda: not panel.worlds(), "the panel shows no world")
        status, answer = panel.post(f"sfm/worlds/{world}/restart", {"uids": None})
        assert status in (404, 409, 500) and "ended" in answer["message"]
        panel.done("sfm/worlds", {"engines": 2})


def test_a_panel_that_starts_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "jupyter_server_config.py").write_text("c.SFMPanel.starts = False\n")
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path))
    with server(tmp_path) as panel:
        status, answer = panel.post("sfm/worlds", {"engines": 1})
        assert status == 403 and "`%sfm start 4`" in answer["message"]
