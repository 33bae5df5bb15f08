"""The directory of one machine: members, deaths, removal of files, and private folders."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sfm_kernel import directory
from sfm_kernel.directory import LocalDirectory, Member
from sfm_kernel.errors import BadName, EndpointClosed, NameInUse, WorldAccess, WorldGone
from sfm_kernel.transport.base import Directory
from tests.unit.processes import Process, child, kill


@pytest.fixture
def local(world: str) -> Iterator[LocalDirectory]:
    with LocalDirectory(world) as opened:
        yield opened


MakeProcess = Callable[[], Process]


@pytest.fixture
def process(local: LocalDirectory) -> Iterator[MakeProcess]:
    """Makes processes of the test's world."""
    made: list[Process] = []

    def make() -> Process:
        made.append(Process(local.folder))
        return made[-1]

    yield make
    for joined in made:
        joined.leave()


# ---- the folder ------------------------------------------------------------------------------


def test_join_find_leave(local: LocalDirectory, process: MakeProcess) -> None:
    assert isinstance(local, Directory)
    earlier, later = process(), process()
    first, second = earlier.join(local, name="A"), later.join(local, info={"x": 1})
    with LocalDirectory(local.world, create=False) as other:
        assert other.members() == [first, second]
        assert other.members()[1].info == {"x": 1}
        assert other.alive(first) and other.alive(second)
        local.leave(first)
        local.leave(first)
        assert other.members() == [second]
        assert not other.alive(first)  # though its segment is still locked
    later.die()
    assert not local.alive(second)
    assert local.members() == [second]


@pytest.mark.parametrize("later", ["left first", "left last", "only observed"])
def test_a_world_that_all_have_left_is_removed_by_the_last_that_closes_it(
    own_root: Path, later: str
) -> None:
    first, last = LocalDirectory("w"), LocalDirectory("w")
    observing = LocalDirectory("w", create=False)
    processes = [Process(first.folder) for _ in range(2)]
    members = [process.join(first) for process in processes]
    for process, view, member in zip(processes, (first, last), members, strict=True):
        process.leave()
        view.leave(member)
    remaining = {"left first": first, "left last": last, "only observed": observing}
    held = remaining.pop(later)
    for opened in remaining.values():
        opened.close()
    assert Path(held.folder).exists()
    held.close()
    assert list(own_root.iterdir()) == []
    held.close()  # harmless


def test_a_world_that_nobody_has_joined_yet_stays(own_root: Path) -> None:
    with LocalDirectory("w"):
        pass
    with LocalDirectory("w", create=False) as there:
        process = Process(there.folder)
        process.join(there)
        process.die()
    with LocalDirectory("w", create=False) as there:
        assert len(there.members()) == 1, "one can still see how it ended"


def test_the_dead_lose_their_rings_and_their_successor_their_segment(
    local: LocalDirectory, process: MakeProcess
) -> None:
    dead, living = process(), process()
    dead.join(local, name="A")
    living.join(local, name="B")
    to_dead = Path(local.folder, f"{living.uid}-{dead.uid}.ring")
    from_dead = Path(local.folder, f"{dead.uid}-{living.uid}.ring")
    for ring in (to_dead, from_dead):
        ring.touch()
    dead.die()
    process().join(local, guest=True)
    assert not to_dead.exists()
    assert from_dead.exists()  # the messages that it sent before can still be received
    assert Path(dead.segment).exists()  # observers show how it ended
    process().join(local, name="A")
    assert not Path(dead.segment).exists()
    from_dead.unlink()


def test_members_have_one_key_that_others_cannot_read(local: LocalDirectory) -> None:
    with LocalDirectory(local.world) as other:
        assert other.key == local.key and len(local.key) == 32
    for path, mode in ((local.folder, 0o700), (os.path.join(local.folder, "key"), 0o600)):
        assert stat.S_IMODE(os.stat(path).st_mode) == mode
    with LocalDirectory(local.world + "-2") as another:
        assert another.key != local.key


@pytest.mark.parametrize("name", ["", ".", "..", ".x", "a/b", "a b", "ä", "x" * 65, None])
def test_invalid_names_of_worlds_are_refused(name: Any) -> None:
    with pytest.raises(BadName):
        LocalDirectory(name)


def test_a_missing_world_is_refused(world: str) -> None:
    with pytest.raises(WorldGone, match=world):
        LocalDirectory(world, create=False)
    with pytest.raises(WorldGone, match=world):
        directory.open_directory(world, create=False)


def test_a_world_that_was_removed(world: str) -> None:
    with LocalDirectory(world) as opened:
        os.rename(opened.folder, opened.folder + "-moved")
        for call in (opened.members, lambda: Process(opened.folder + "-moved").join(opened)):
            with pytest.raises(WorldGone, match=world):
                call()
        member = Member("0" * 32, 0, 0, 0, 1, "here", "/nowhere", "")
        opened.leave(member)
        assert not opened.alive(member)
    for file in Path(opened.folder + "-moved").glob("*.seg"):
        file.unlink()


def test_a_closed_directory_says_so(world: str) -> None:
    local = LocalDirectory(world)
    local.close()
    local.close()
    with pytest.raises(EndpointClosed):
        local.members()


def test_a_root_that_others_may_enter(own_root: Path) -> None:
    own_root.mkdir(0o755)
    own_root.chmod(0o755)
    for call in (lambda: LocalDirectory("w"), directory.clean, directory.worlds):
        with pytest.raises(WorldAccess, match="chmod"):
            call()


def test_a_world_that_others_may_enter(own_root: Path) -> None:
    LocalDirectory("w").close()
    (own_root / "w").chmod(0o750)
    with pytest.raises(WorldAccess, match="chmod"):
        LocalDirectory("w")


def test_a_key_that_others_may_read(own_root: Path) -> None:
    LocalDirectory("w").close()
    (own_root / "w" / "key").chmod(0o644)
    with pytest.raises(WorldAccess, match="key"):
        LocalDirectory("w")


@pytest.mark.parametrize("linked", ["root", "w"])
def test_links_are_not_followed(own_root: Path, tmp_path: Path, linked: str) -> None:
    target = tmp_path / "elsewhere"
    target.mkdir(0o700)
    if linked == "w":
        own_root.mkdir(0o700)
    (own_root if linked == "root" else own_root / "w").symlink_to(target)
    with pytest.raises(WorldAccess, match="link"):
        LocalDirectory("w")
    assert list(target.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to other users")
def test_a_root_of_another_user_is_refused(own_root: Path) -> None:
    LocalDirectory("w").close()
    os.chown(own_root, 4242, 4242)
    with pytest.raises(WorldAccess, match="belongs to user 4242, not to you"):
        LocalDirectory("w")


# ---- at once, and killed ---------------------------------------------------------------------


def test_many_join_at_once(local: LocalDirectory) -> None:
    processes, total = 8, 32
    wait, go = os.pipe()
    kept: list[Process] = []

    def join() -> None:
        os.read(wait, 1)
        with LocalDirectory(local.world) as opened:
            for _ in range(total // processes):
                kept.append(Process(opened.folder))
                kept[-1].join(opened)

    with contextlib.ExitStack() as stack:
        for _ in range(processes):
            stack.enter_context(child(lambda: threading.Thread(target=join).start()))
        os.write(go, b"!" * processes)
        while len(members := local.members()) < total:
            time.sleep(0.001)  # for ever, if two got the same
        assert all(map(local.alive, members))
        for key in ("slot", "rank", "name"):
            assert sorted(getattr(member, key) for member in members) == list(range(total))
    os.close(wait)
    os.close(go)
    assert not any(map(local.alive, local.members()))
    directory.clean()


@pytest.mark.fault
def test_killed_at_any_moment(local: LocalDirectory, process: MakeProcess, effort: int) -> None:
    def begin_to_come_and_go() -> None:
        threading.Thread(target=come_and_go, daemon=True).start()

    def come_and_go() -> None:
        with LocalDirectory(local.world) as opened:
            while True:
                passing = Process(opened.folder)
                with contextlib.suppress(NameInUse):
                    opened.leave(passing.join(opened, name=secrets.choice(["A", "B", None])))
                passing.leave()

    for _ in range(20 * effort):
        with child(begin_to_come_and_go), child(begin_to_come_and_go):
            time.sleep(secrets.randbelow(20) / 1000)
        survivor = process()
        member = survivor.join(local, name="survivor")
        members = local.members()
        assert [found for found in members if local.alive(found)] == [member]
        for key in ("slot", "rank", "name"):
            assert len({getattr(found, key) for found in members}) == len(members)
        local.leave(member)
        survivor.leave()
    for file in Path(local.folder).glob("*.new"):
        os.utime(file, (0, 0))
    directory.clean()
    assert {*os.listdir(local.folder)} - {"members.json.new"} == {"key", "lock", "members.json"}


@pytest.mark.fault
def test_a_stopped_process_is_not_dead(local: LocalDirectory) -> None:
    kept: list[Process] = []

    def join() -> None:
        with LocalDirectory(local.world) as opened:
            kept.append(Process(opened.folder))
            kept[-1].join(opened, name="A")

    with child(join) as pid:
        (member,) = local.members()
        os.kill(pid, signal.SIGSTOP)
        os.waitpid(pid, os.WUNTRACED)
        assert local.alive(member)
        kill(pid)
        assert not local.alive(member)
