"""What is kept of finished runs: the last ones, for their user only."""

from __future__ import annotations

import multiprocessing
import os
import stat
import tempfile
from pathlib import Path

import pytest

from sfm_kernel import finished_runs
from sfm_kernel.finished_runs import FinishedRuns, keep, wanted


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of the runs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "sfm-kernel/runs"


def end(program: str, most: int = 3) -> None:
    about = {"program": program, "ranks": 4, "time": 1.0, "end": "done"}
    keep(about, lambda path: Path(path).write_text(f"page of {program}"), most)


def programs(runs: FinishedRuns) -> list[str]:
    return [run["program"] for run in runs.newest_first()]


def test_the_last_ones_are_kept_the_newest_first(kept: Path) -> None:
    runs = FinishedRuns()
    assert programs(runs) == []
    for nth in range(5):
        end(f"{nth}.py")
        assert programs(runs) == [f"{one}.py" for one in range(nth, max(-1, nth - 3), -1)]
    newest = runs.newest_first()[0]
    assert newest == {"id": newest["id"], "program": "4.py", "ranks": 4, "time": 1.0, "end": "done"}
    assert runs.record(newest["id"]) == b"page of 4.py"
    assert len(os.listdir(kept)) == 3


def test_no_other_user_can_read_them(kept: Path) -> None:
    before = os.umask(0)
    try:
        end("a.py")
    finally:
        os.umask(before)
    for folder, _, files in os.walk(kept):
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        for file in files:
            assert stat.S_IMODE(os.stat(os.path.join(folder, file)).st_mode) == 0o600


def _end_often(name: str) -> None:
    for nth in range(10):
        end(f"{name}-{nth}.py")


def test_launchers_that_end_at_the_same_time(kept: Path) -> None:
    context = multiprocessing.get_context("fork")
    launchers = [context.Process(target=_end_often, args=(name,)) for name in "abcd"]
    for launcher in launchers:
        launcher.start()
    runs = FinishedRuns()
    while any(launcher.is_alive() for launcher in launchers):
        for run in runs.newest_first():  # complete whenever they are there
            assert run["program"].endswith(".py")
    for launcher in launchers:
        launcher.join()
        assert launcher.exitcode == 0
    assert len(os.listdir(kept)) == 3 == len(programs(runs))


def test_they_are_removed(kept: Path) -> None:
    runs = FinishedRuns()
    for name in ("a", "b", "c"):
        end(name)
    b = runs.newest_first()[1]["id"]
    runs.remove(b)
    assert programs(runs) == ["c", "a"]
    runs.remove(b)
    with pytest.raises(FileNotFoundError):
        runs.record(b)
    runs.remove()
    assert programs(runs) == [] and os.listdir(kept) == []


def test_only_runs_are_read_and_removed(kept: Path, tmp_path: Path) -> None:
    runs = FinishedRuns()
    end("a.py")
    (tmp_path / "record.html").write_text("secret")
    for name in ("..", "../..", "", ".", "runs", "/etc"):
        with pytest.raises(FileNotFoundError):
            runs.record(name)
        runs.remove(name)
    damaged = kept / f"{0:020d}-00000000"
    damaged.mkdir()
    (damaged / "run.json").write_text("[1")
    assert programs(runs) == ["a.py"]


def test_what_a_killed_launcher_has_begun_goes_with_time(kept: Path) -> None:
    end("a.py")
    for name, age in (("new-young", 0), ("new-old", 7200)):
        (kept / name).mkdir()
        when = (kept / name).stat().st_mtime - age
        os.utime(kept / name, (when, when))
    end("b.py")
    assert (kept / "new-young").exists() and not (kept / "new-old").exists()


def test_a_record_that_cannot_be_written_leaves_nothing(kept: Path) -> None:
    def fail(path: str) -> None:
        Path(path).write_text("a part")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        keep({}, fail, 3)
    assert os.listdir(kept) == []


def test_without_a_folder_nothing_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(file))
    monkeypatch.setattr(tempfile, "tempdir", str(file))
    with pytest.raises(OSError, match="no folder can be written"):
        end("a.py")
    runs = FinishedRuns()
    assert runs.newest_first() == []
    runs.remove()


@pytest.mark.parametrize("text", ["ten", "-1", "1001", "1.5", "²"])
def test_a_wrong_number_is_named(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(finished_runs.VARIABLE, text)
    with pytest.raises(ValueError, match=f"SFM_RUNS is the number .*, not {text!r}"):
        wanted()


def test_none_are_kept_unless_somebody_wants_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(finished_runs.VARIABLE, raising=False)
    assert wanted() == 0
    for text, number in (("", 0), ("0", 0), (" 7 ", 7)):
        monkeypatch.setenv(finished_runs.VARIABLE, text)
        assert wanted() == number
