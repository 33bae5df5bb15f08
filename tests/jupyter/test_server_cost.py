"""The server does not read everything again, and misses nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import sfm_kernel
from sfm_kernel.jupyter.server import sampler
from sfm_kernel.jupyter.server.sampler import World
from sfm_kernel.observe import snapshot as take
from sfm_kernel.observe.snapshot import SETTLED_SECONDS, segments
from tests.jupyter.test_server_sampling import touch


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The sampler's clock, which a test sets."""
    clock = [0.0]
    monkeypatch.setattr("sfm_kernel.jupyter.server.sampler.time.monotonic", lambda: clock[0])
    return clock


def age(folder: Path, seconds: float) -> None:
    """Set the time of the folder's last change."""
    changed = time.time() - seconds
    os.utime(folder, (changed, changed))


@pytest.mark.parametrize("seconds", [0, 100 * SETTLED_SECONDS])
def test_joining_and_leaving_is_seen_at_once(tmp_path: Path, seconds: float) -> None:
    paths = [tmp_path / f"{uid:032x}.seg" for uid in range(50)]
    for path in paths:  # so fast that the file system's clock does not tell them apart
        path.touch()
        assert segments(str(tmp_path))[path.name[:32]] == str(path)
    age(tmp_path, seconds)
    for _ in range(2):
        found = segments(str(tmp_path))
        assert list(found.values()) == [str(path) for path in paths]
        found.clear()  # it is the caller's own
    for left, path in zip(range(49, -1, -1), paths, strict=True):
        path.unlink()
        assert len(segments(str(tmp_path))) == left
    tmp_path.rmdir()
    with pytest.raises(FileNotFoundError):
        segments(str(tmp_path))


def test_another_world_of_the_same_name(tmp_path: Path) -> None:
    folder = tmp_path / "world"
    for uid in range(2):
        folder.mkdir()
        path = folder / f"{uid:032x}.seg"
        path.touch()
        os.utime(folder, (1000.0, 1000.0))
        assert list(segments(str(folder))) == [f"{uid:032x}"]
        folder.rename(tmp_path / f"old{uid}")


def test_a_process_that_joins_an_old_world_is_in_the_next_snapshot(world: str) -> None:
    with sfm_kernel.join(world, "A") as a:
        age(Path(a.folder), 100)
        for _ in range(2):
            assert [process["name"] for process in take(a)["processes"]] == ["A"]
        with sfm_kernel.join(world, "B"):
            assert [process["name"] for process in take(a)["processes"]] == ["A", "B"]
        assert [process["name"] for process in take(a)["processes"] if process["alive"]] == ["A"]


def test_a_reading_for_somebody_else_will_do(world: str, now: list[float]) -> None:
    with sfm_kernel.join(world, "A") as sfm:
        snapshots = World(world, sfm.folder).snapshots
        before = snapshots.read(1.0)
        sfm.send(dest="A", n=1)
        now[0] += 0.5
        assert snapshots.read(1.0) is before
        assert snapshots.read() is not before


def test_traces_are_read_in_time(world: str, now: list[float]) -> None:
    with sfm_kernel.join(world, "A") as sfm:
        seen = World(world, sfm.folder)

        def news() -> int:
            """The reported number of messages that have arrived since the last call."""
            new, _ = seen.sample(follow=True, complete=False)
            return len([it for it in new["flights"] if it["received"]]) if new else 0

        touch(sfm)
        assert news() == 1
        touch(sfm)
        assert news() == 0
        now[0] += sampler.TRACE_PAUSE
        assert news() == 1 and news() == 0
        for _ in range(sampler.HASTE):
            touch(sfm)
        assert news() == sampler.HASTE
