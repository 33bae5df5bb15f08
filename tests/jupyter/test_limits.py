"""An administrator's limits, as a notebook meets them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.jupyter.notebook import Notebook, descendants, notebook, runs, wait_for

LIMIT = "LimitReached: this machine allows each user 4 engines"


@pytest.fixture
def spawned_with(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Set a spawner's environment for all notebooks that are opened from now on."""

    def say(**said: str) -> None:
        for name, text in said.items():
            monkeypatch.setenv(name, text)

    return say


def refused(book: Notebook, cell: str) -> str:
    """The error of a cell that a limit ends."""
    return book.run(cell).error


def test_engines_of_all_notebooks_are_counted_together(spawned_with: Any) -> None:
    spawned_with(SFM_MAX_ENGINES="4")
    with notebook() as first, notebook() as second:
        assert refused(first, "%sfm start 9") == f"{LIMIT}: `%sfm start 4`"
        assert "no engines" in first.run("%sfm status").text, "nothing was started"
        first.run("%sfm start 3").ok()
        runs_there = "and 3 are running in another notebook or from the panel"
        assert refused(second, "%sfm start A B") == (
            f"{LIMIT}, {runs_there}: ask for 1 at most, or stop those"
        )
        second.run("%sfm start A").ok()
        assert refused(second, "%sfm scale 2") == (
            f"{LIMIT}, {runs_there}: ask for 1 at most, or stop those"
        )
        second.run("%%sfm\nprint('goes on')").ok()
        assert "and 1 is running in" in refused(first, "%sfm scale 4")
        first.run("%sfm restart 2").ok()
        first.run("%sfm stop").ok()
        second.run("%sfm scale 4").ok()
        assert refused(first, "%sfm start") == (
            f"{LIMIT}, and 4 are running in another notebook or from the panel: stop those first, "
            "with `%sfm stop` or in the panel"
        )


@pytest.mark.fault
def test_the_killed_give_their_places_back(spawned_with: Any) -> None:
    spawned_with(SFM_MAX_ENGINES="2")
    with notebook("%sfm start 2") as first, notebook() as second:
        started = descendants(first.pid)
        first.kill()
        wait_for(lambda: not any(map(runs, started)), "the engines end with their notebook")
        second.run("%sfm start 2").ok()
        second.run("%%sfm 1\nimport os, signal; os.kill(os.getpid(), signal.SIGKILL)")
        second.run("%sfm restart 1").ok()


def test_two_simultaneous_starts_never_get_the_same_last_engine(spawned_with: Any) -> None:
    spawned_with(SFM_MAX_ENGINES="5")
    with notebook() as first, notebook() as second, notebook() as third:
        books = (first, second, third)
        sent = [book.send("%sfm start 2") for book in books]
        errors = [book.wait(message).error for book, message in zip(books, sent, strict=True)]
        assert sorted(map(bool, errors)) == [False, False, True], errors
        assert "and 4 are running in another notebook" in "".join(errors)


def test_stop_ends_the_wait_for_another_notebook(spawned_with: Any, sfm_dir: Path) -> None:
    spawned_with(SFM_MAX_ENGINES="5")
    hold = f"import fcntl, os; lock = os.open({str(sfm_dir)!r}, os.O_RDONLY)"
    hold += "\nfcntl.flock(lock, fcntl.LOCK_EX)"
    with notebook(hold) as first, notebook("%load_ext sfm_kernel") as second:
        waits = second.send("print('waits')\n%sfm start 2")
        second.wait(waits, lambda cell: "waits" in cell.text)
        second.interrupt()
        assert second.wait(waits).error.startswith("KeyboardInterrupt")
        first.run("os.close(lock)").ok()
        second.run("%sfm start 2").ok()


def test_a_configuration_file_is_as_good(tmp_path: Path, spawned_with: Any) -> None:
    profile = tmp_path / "profile_default"
    profile.mkdir()
    (profile / "ipython_kernel_config.py").write_text(
        "c.SFM.max_engines = 3\nc.SFM.idle = '2h'\nc.SFM.threads = 2\n"
    )
    spawned_with(IPYTHONDIR=str(tmp_path))
    with notebook() as book:
        assert refused(book, "%sfm start 4").endswith("allows each user 3 engines: `%sfm start 3`")
        assert "they end after 2 hours without use" in book.text("%sfm start 1")
        shown = book.text("%%sfm\nimport os; print(os.environ['OMP_NUM_THREADS'])")
        assert shown.strip().endswith("2")
        assert "Current: 3" in book.text("%config SFM")
        book.run("%config SFM.max_engines = 1").ok()
        assert "allows each user 1 engine" in refused(book, "%sfm scale 2")


def test_a_setting_that_makes_no_sense_is_told_when_it_matters(spawned_with: Any) -> None:
    spawned_with(SFM_IDLE="tomorrow")
    with notebook() as book:
        assert refused(book, "%sfm start 2") == (
            "BadSetting: SFM_IDLE=tomorrow in the environment: 'tomorrow' is no time: write 90s, "
            "30m, 2h or never"
        )
        book.run("1 + 1").ok()


def test_memory_of_an_engine(spawned_with: Any) -> None:
    spawned_with(SFM_MEMORY_LIMIT="400M")
    with notebook("%sfm start A B") as book:
        much = book.run("%%sfm A\nimport numpy\nkept = numpy.ones(10 ** 8)")
        assert much.error.startswith("CellFailed: on A: MemoryError")
        assert "This engine may use 400 MB of memory, and uses" in much.shown
        assert "or `%sfm restart A`" in much.shown
        book.run("%%sfm A\nkept = numpy.ones(10 ** 7)").ok()
        little = book.run("%%sfm B\nkept = []\nwhile True: kept.append('x' * 1000)")
        assert "This engine may use 400 MB" in little.shown
        book.run("%%sfm B\ndel kept\nsend(dest='A', x=1)").ok()
        book.run("%%sfm A\nassert recv().x == 1").ok()


def test_an_inbox_does_not_take_all_of_it(spawned_with: Any) -> None:
    """Seven engines send to an engine that does not receive: they wait, and it survives."""
    spawned_with(SFM_MEMORY_LIMIT="256M")
    with notebook("%sfm start 8") as book:
        sends = book.send(
            "%%sfm 1: --no-detect\nfor n in range(40_000): send(dest=0, n=n, text='x' * 1000)"
        )
        rests = "[row for row in %s if row['state'] == 'blocked in send']"
        count = "len(" + rests % "snapshot(sfm.folder)['processes']" + ")"
        wait = f"from sfm_kernel.observe.snapshot import snapshot\nwhile {count} < 7: pass"
        with notebook() as observer:
            cluster = "%sfm connect"
            observer.run(cluster).ok()
            observer.run(wait).ok()
            observer.run("%%sfm 0\nfor _ in range(7 * 40_000): recv()\nprint('all')").ok()
        book.wait(sends)
