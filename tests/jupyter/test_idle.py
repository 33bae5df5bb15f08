"""Unused engines end; a user of engines is not disturbed, and a returning user is informed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.jupyter.notebook import Notebook, descendants, notebook, runs, wait_for
from tests.jupyter.server import server

LONG = 4.0
"""Seconds: twice as long as engines may be idle in these tests."""


def ended(book: Notebook) -> None:
    """Wait until no process that this notebook has started runs any longer."""
    wait_for(lambda: not any(map(runs, descendants(book.pid))), "the engines end")


def alive(book: Notebook) -> bool:
    """Whether such a process runs."""
    return any(map(runs, descendants(book.pid)))


def test_they_end_and_the_next_cell_says_so(sfm_dir: Path) -> None:
    with notebook("%sfm start A B --idle 2s") as one:
        ended(one)
        shown = one.run("print('first')\n'next'").ok().text
        assert shown.startswith("first")
        assert "The engines A, B ended at" in shown and "after 2 seconds without use" in shown
        assert "`%sfm start A B --idle 2s` starts new ones" in shown
        assert "ended" not in one.run("'next'").ok().text, "once is enough"
        assert "no engines: `%sfm start 4`" in one.run("%sfm status").text
        assert "NameError" in one.run("send(dest='A')").error
        assert not [*sfm_dir.glob(".ended-*")], "nothing is left to be told"
        began = one.run("%sfm start A B --idle=2s").ok().text
        assert "2 engines: A (rank 0), B (rank 1)" in began
        assert "they end after 2 seconds without use" in began
        one.run("%%sfm\nprint(sfm.name)").ok()
        ended(one)
        again = one.run("%%sfm\nprint('here')")
        assert again.text.count("after 2 seconds without use") == 1
        assert "no engines. The engines A, B ended" in again.text
        assert "ended" not in one.run("%sfm start 1 --idle never").ok().text


def test_a_running_program_is_never_ended() -> None:
    with notebook("%sfm start A B --idle 2s") as one:
        one.run("%%sfm A --noblock --no-detect\nrecv(tag='never sent')").ok()
        time.sleep(LONG)  # blocked
        assert alive(one)
        one.run("%sfm restart A").ok()
        one.run(f"%%sfm B\nimport time; time.sleep({LONG})").ok()
        one.run(f"import time; time.sleep({LONG})").ok()  # a cell of the notebook's own
        one.run("%%sfm A\nprint('still there')").ok()
        left = "import threading, time\nthreading.Thread(target=time.sleep, args=(%s,)).start()"
        one.run(f"%%sfm A\n{left % LONG}").ok()
        time.sleep(LONG - 1)
        assert alive(one), "a thread of A goes on"
        view = "get_ipython().magics_manager.registry['SFMMagics']._home.client[:]"
        one.run(f"import time\nasked = {view}.apply_async(time.sleep, {LONG})").ok()
        time.sleep(LONG - 1)
        assert alive(one), "a function of ipyparallel's runs"
        ended(one)


def test_another_notebook_counts() -> None:
    with notebook() as one, notebook() as two:
        one.run("%sfm start A --idle 2s").ok()
        two.run("%sfm connect").ok()
        two.run(f"import time; time.sleep({LONG})").ok()
        two.run("%%sfm\nprint('still there')").ok()
        ended(one)
        assert "WorldGone" in two.run("%%sfm\nprint('gone')").error


def test_the_time_can_be_changed_while_they_run() -> None:
    with notebook("%sfm start A") as one:
        changed = one.run("%sfm start A --idle 2s").ok().text
        assert "already running" in changed
        ended(one)


def test_on_a_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTERHUB_USER", "ada")
    monkeypatch.setenv("SFM_MAX_IDLE", "2h")
    monkeypatch.setenv("SFM_MAX_ENGINES", "1")
    with notebook() as one:
        assert "this hub allows each user 1 engine: `%sfm start 1`" in one.run("%sfm start 2").error
        assert "they end after 30 minutes without use" in one.run("%sfm start 1").ok().text
        one.run("%sfm stop").ok()
        asked = one.run("%sfm start 1 --idle never").text
        assert "%sfm start --idle: this hub allows 2 hours at most" in asked
        assert "they end after 1 hour without use" in one.run("%sfm start 1 --idle 1h").ok().text


@pytest.mark.parametrize("words", ["--idle", "--idle soon", "--idle=", "2 --idle -3"])
def test_a_wrong_time_is_refused(words: str, shared: Notebook) -> None:
    assert "is no time: write 90s, 30m, 2h or never" in shared.run(f"%sfm start {words}").text
    assert "no engines" in shared.run("%sfm status").text


@pytest.fixture(scope="module")
def shared() -> Notebook:
    """A notebook without engines."""
    with notebook() as one:
        yield one  # type: ignore[misc]


def test_a_notebook_that_is_closed_meanwhile_leaves_nothing(sfm_dir: Path) -> None:
    with notebook("%sfm start A --idle 2s") as one:
        ended(one)
        wait_for(lambda: [*sfm_dir.glob(".ended-*")], "the panel can tell of it")
    assert not [*sfm_dir.glob(".ended-*")]


def test_engines_of_the_panel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SFM_IDLE", "3s")
    (tmp_path / "jupyter_server_config.py").write_text("c.SFM.max_engines = 2\n")
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path))
    with server(tmp_path) as one:
        status, answer = one.post("sfm/worlds", {"engines": 3})
        assert status == 500
        assert answer["message"] == "this machine allows each user 2 engines: `%sfm start 2`"
        with one.stream() as stream:
            stream.watch(None)
            world = one.done("sfm/worlds", {"names": ["A", "B"]})["world"]
            assert world in one.worlds()
            stream.until("error", lambda text: "The engines A, B ended at" in text)
        wait_for(lambda: not one.worlds(), "the panel shows no world")
        status, answer = one.post(f"sfm/worlds/{world}/restart", {"uids": None})
        assert status in (404, 409, 500) and "ended" in answer["message"]
        one.done("sfm/worlds", {"engines": 2})


def test_a_panel_that_starts_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "jupyter_server_config.py").write_text("c.SFMPanel.starts = False\n")
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path))
    with server(tmp_path) as one:
        status, answer = one.post("sfm/worlds", {"engines": 1})
        assert status == 403 and "`%sfm start 4`" in answer["message"]
