"""A finished run is kept, with its timeline, why it hung and what it printed, if that is wanted."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import Any

import pytest

from sfm_kernel import directory
from sfm_kernel.finished_runs import FinishedRuns
from tests.mpi.launching import launched, lines, mpi_worlds, run
from tests.observe.test_record import Reader
from tests.waiting import wait_until

COMM = "from mpi4py import MPI; import os, sys; comm = MPI.COMM_WORLD\n"
RING = "comm.send(comm.rank, (comm.rank + 1) % comm.size); comm.recv()\n"


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A user's folder; ten runs are kept in it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("SFM_RUNS", "10")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def kept(home: Path, count: int = 1) -> tuple[dict[str, Any], Reader]:
    """The newest run, after ``count`` have come, and its record."""
    runs = FinishedRuns()
    wait_until(lambda: len(runs.newest_first()) == count)
    newest = runs.newest_first()[0]
    return newest, Reader(home / "sfm-kernel/runs" / newest["id"] / "record.html")


def test_a_run_is_kept_by_its_program(home: Path) -> None:
    (home / "ring.py").write_text(
        f"{COMM}{RING}print('<b>', comm.rank); print('x', file=sys.stderr)"
    )
    done = run("-n", "3", "--label", "ring.py", "100")
    assert sorted(done.stdout.splitlines()) == [f"[{rank}] <b> {rank}" for rank in range(3)]
    about, page = kept(home)
    assert {**about, "id": "", "time": 0.0} == {
        "id": "", "program": "ring.py", "ranks": 3, "time": 0.0, "end": "done"
    }  # fmt: skip
    assert page.texts("h1") == ["ring.py on 3 ranks: done"]
    assert len(page.data["timeline"]["flights"]) >= 3
    assert "[2] <b> 2\n" in page.text and "[1] x\n" in page.text
    assert "comm.send(comm.rank, " in page.text
    assert not [world for world in Path(directory.root()).glob("kept-*") if world.exists()]


@pytest.mark.parametrize(
    ("words", "end"),
    [
        ("sys.exit(3)", "exit status 3"),
        ("1 / 0", "exit status 1"),
        ("os.kill(os.getpid(), 9)", "killed by SIGKILL"),
        ("comm.Abort(7)", "exit status 7"),
        ("comm.recv(tag=8)", "deadlock"),
    ],
)
def test_a_run_that_fails_is_kept_with_its_end(home: Path, words: str, end: str) -> None:
    (home / "bad.py").write_text(f"{COMM}{RING}if comm.rank: {words}\ncomm.recv(tag=9)\n")
    done = run("-n", "2", "--detect", "bad.py")
    assert done.returncode
    about, page = kept(home)
    assert about["end"] == end
    assert len(page.data["timeline"]["flights"]) >= 2
    assert done.stderr.splitlines()[-1] in page.text
    assert ("What had hung before" in page.text) == (end == "deadlock")


def test_a_run_that_is_stopped_is_kept(home: Path) -> None:
    (home / "loop.py").write_text(f"{COMM}{RING}print('in')\nwhile True: pass\n")
    with launched("-n", "2", "loop.py") as process:
        assert lines(process, 2) == ["in\n"] * 2
        directory.clean()  # which may only cost the record's timeline
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    about, page = kept(home)
    assert about["end"] == "stopped" and page.texts("h1") == ["loop.py on 2 ranks: stopped"]


def test_programs_in_c_modules_and_several_at_once(home: Path) -> None:
    (home / "a.c").write_text(
        "#include <mpi.h>\n#include <stdio.h>\nint main() { MPI_Init(0, 0);\n"
        'MPI_Barrier(MPI_COMM_WORLD); puts("here"); MPI_Finalize(); return 0; }\n'
    )
    (home / "b.py").write_text(f"{COMM}comm.barrier()\n")
    assert run("-n", "1", "a.c").returncode == 0
    about, page = kept(home)
    assert (about["program"], page.texts("h1")) == ("a.c", ["a.c on 1 rank: done"])
    assert "here\n" in page.text
    assert run("-n", "2", "a.c", ":", "-n", "1", "-m", "b").returncode == 0
    about, page = kept(home, 2)
    assert (about["program"], about["ranks"]) == ("a.c, b", 3)
    assert len(page.data["timeline"]["spans"]) >= 3


def test_of_much_output_the_end_is_kept(home: Path) -> None:
    (home / "much.py").write_text(f"{COMM}for nth in range(20_000): print('line', nth)\n")
    assert run("-n", "1", "much.py").returncode == 0
    _, page = kept(home)
    (output,) = [text for text in page.texts("pre") if "line 19999" in text]
    assert output.startswith("…") and "line 5\n" not in output and len(output) <= (1 << 16) + 1


def test_nothing_is_kept_without_mpi_or_the_wish(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "plain.py").write_text("print('plain')")
    (home / "ring.py").write_text(COMM + RING)
    assert run("-n", "2", "plain.py").returncode == 0
    monkeypatch.delenv("SFM_RUNS")
    assert run("-n", "2", "ring.py").returncode == 0
    monkeypatch.setenv("SFM_RUNS", "many")
    done = run("-n", "2", "ring.py")
    assert done.returncode == 0
    assert re.fullmatch(r"sfm: SFM_RUNS is .*, not 'many'; this one is not kept\n", done.stderr)
    assert not (home / "sfm-kernel/runs").exists()


def test_a_run_never_fails_because_it_cannot_be_kept(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "file").write_text("")
    (home / "ring.py").write_text(COMM + RING)
    for name in ("XDG_CACHE_HOME", "TMPDIR"):
        monkeypatch.setenv(name, str(home / "file"))
    done = run("-n", "2", "ring.py")
    assert (done.stderr, done.returncode) == ("", 0)
    assert mpi_worlds() == []
