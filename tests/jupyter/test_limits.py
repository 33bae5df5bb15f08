"""An administrator's limits, as a notebook meets them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.jupyter.notebook import Notebook, descendants, notebook, runs, wait_for

LIMIT = "LimitReached: this machine allows each user 4 engines"


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Set a spawner's environment for all notebooks that are opened from now on."""

    def say(**said: str) -> None:
        for name, text in said.items():
            monkeypatch.setenv(name, text)

    return say


def refused(book: Notebook, cell: str) -> str:
    """The error of a cell that a limit ends."""
    return book.run(cell).error


def test_engines_of_all_notebooks_are_counted_together(told: Any) -> None:
    told(SFM_MAX_ENGINES="4")
    with notebook() as one, notebook() as two:
        assert refused(one, "%sfm start 9") == f"{LIMIT}: `%sfm start 4`"
        assert "no engines" in one.run("%sfm status").text, "nothing was started"
        one.run("%sfm start 3").ok()
        runs_there = "and 3 are running in another notebook or from the panel"
        assert refused(two, "%sfm start A B") == (
            f"{LIMIT}, {runs_there}: ask for 1 at most, or stop those"
        )
        two.run("%sfm start A").ok()
        assert refused(two, "%sfm scale 2") == (
            f"{LIMIT}, {runs_there}: ask for 1 at most, or stop those"
        )
        two.run("%%sfm\nprint('goes on')").ok()
        assert "and 1 is running in" in refused(one, "%sfm scale 4")
        one.run("%sfm restart 2").ok()
        one.run("%sfm stop").ok()
        two.run("%sfm scale 4").ok()
        assert refused(one, "%sfm start") == (
            f"{LIMIT}, and 4 are running in another notebook or from the panel: stop those first, "
            "with `%sfm stop` or in the panel"
        )


@pytest.mark.fault
def test_the_killed_give_their_places_back(told: Any) -> None:
    told(SFM_MAX_ENGINES="2")
    with notebook("%sfm start 2") as one, notebook() as two:
        started = descendants(one.pid)
        one.kill()
        wait_for(lambda: not any(map(runs, started)), "the engines end with their notebook")
        two.run("%sfm start 2").ok()
        two.run("%%sfm 1\nimport os, signal; os.kill(os.getpid(), signal.SIGKILL)")
        two.run("%sfm restart 1").ok()


def test_two_simultaneous_starts_never_get_the_same_last_engine(told: Any) -> None:
    told(SFM_MAX_ENGINES="5")
    with notebook() as one, notebook() as two, notebook() as three:
        books = (one, two, three)
        sent = [book.send("%sfm start 2") for book in books]
        errors = [book.wait(message).error for book, message in zip(books, sent, strict=True)]
        assert sorted(map(bool, errors)) == [False, False, True], errors
        assert "and 4 are running in another notebook" in "".join(errors)


def test_stop_ends_the_wait_for_another_notebook(told: Any, sfm_dir: Path) -> None:
    told(SFM_MAX_ENGINES="5")
    hold = f"import fcntl, os; lock = os.open({str(sfm_dir)!r}, os.O_RDONLY)"
    hold += "\nfcntl.flock(lock, fcntl.LOCK_EX)"
    with notebook(hold) as one, notebook("%load_ext sfm_kernel") as two:
        waits = two.send("print('waits')\n%sfm start 2")
        two.wait(waits, lambda cell: "waits" in cell.text)
        two.interrupt()
        assert two.wait(waits).error.startswith("KeyboardInterrupt")
        one.run("os.close(lock)").ok()
        two.run("%sfm start 2").ok()


def test_a_configuration_file_is_as_good(tmp_path: Path, told: Any) -> None:
    profile = tmp_path / "profile_default"
    profile.mkdir()
    (profile / "ipython_kernel_config.py").write_text(
        "c.SFM.max_engines = 3\nc.SFM.idle = '2h'\nc.SFM.threads = 2\n"
    )
    told(IPYTHONDIR=str(tmp_path))
    with notebook() as one:
        assert refused(one, "%sfm start 4").endswith("allows each user 3 engines: `%sfm start 3`")
        assert "they end after 2 hours without use" in one.run("%sfm start 1").ok().text
        told_there = one.run("%%sfm\nimport os; print(os.environ['OMP_NUM_THREADS'])").ok().text
        assert told_there.strip().endswith("2")
        assert "Current: 3" in one.run("%config SFM").ok().text
        one.run("%config SFM.max_engines = 1").ok()
        assert "allows each user 1 engine" in refused(one, "%sfm scale 2")


def test_a_setting_that_makes_no_sense_is_told_when_it_matters(told: Any) -> None:
    told(SFM_IDLE="tomorrow")
    with notebook() as one:
        assert refused(one, "%sfm start 2") == (
            "BadSetting: SFM_IDLE=tomorrow in the environment: 'tomorrow' is no time: write 90s, "
            "30m, 2h or never"
        )
        one.run("1 + 1").ok()


def test_memory_of_an_engine(told: Any) -> None:
    told(SFM_MEMORY_LIMIT="400M")
    with notebook("%sfm start A B") as one:
        much = one.run("%%sfm A\nimport numpy\nkept = numpy.ones(10 ** 8)")
        assert much.error.startswith("CellFailed: on A: MemoryError")
        assert "This engine may use 400 MB of memory, and uses" in much.shown
        assert "or `%sfm restart A`" in much.shown
        one.run("%%sfm A\nkept = numpy.ones(10 ** 7)").ok()
        little = one.run("%%sfm B\nkept = []\nwhile True: kept.append('x' * 1000)")
        assert "This engine may use 400 MB" in little.shown
        one.run("%%sfm B\ndel kept\nsend(dest='A', x=1)").ok()
        one.run("%%sfm A\nassert recv().x == 1").ok()


def test_an_inbox_does_not_take_all_of_it(told: Any) -> None:
    """Seven engines send to an engine that does not receive: they wait, and it survives."""
    told(SFM_MEMORY_LIMIT="256M")
    with notebook("%sfm start 8") as one:
        sends = one.send(
            "%%sfm 1: --no-detect\nfor n in range(40_000): send(dest=0, n=n, text='x' * 1000)"
        )
        rests = "[row for row in %s if row['state'] == 'blocked in send']"
        count = "len(" + rests % "snapshot(sfm.folder)['processes']" + ")"
        wait = f"from sfm_kernel.observe.snapshot import snapshot\nwhile {count} < 7: pass"
        with notebook() as two:
            cluster = "%sfm connect"
            two.run(cluster).ok()
            two.run(wait).ok()
            two.run("%%sfm 0\nfor _ in range(7 * 40_000): recv()\nprint('all')").ok()
        one.wait(sends)
