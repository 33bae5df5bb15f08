"""Removing the files of dead processes, and never those of living ones."""

from __future__ import annotations

import fcntl
import os
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import sfm_kernel
from sfm_kernel import directory
from sfm_kernel.directory import LocalDirectory
from tests.unit.processes import Process, killed
from tests.waiting import wait_until


@pytest.mark.parametrize("how", [directory.worlds, lambda: sfm_kernel.join("other").close()])
def test_a_world_goes_with_its_last_process(how: Callable[[], object], own_root: Path) -> None:
    """At the next join, or when an observer asks what there is."""
    dead = killed("w")
    ended, owned = killed("run-4194304-ab"), killed(f"run-{os.getpid()}-ab")
    with LocalDirectory("open") as opened:
        assert dead.exists()
        how()
        assert not dead.exists() and not ended.exists()
        assert owned.exists(), "its owner looks at how they ended"
        assert opened.members() == []


def test_the_key_goes_first_and_the_mark_of_a_world_last(own_root: Path) -> None:
    dead = killed("w")
    stuck = dead / f"{secrets.token_hex(16)}.ring"
    stuck.mkdir()  # which is not removed as a file is
    directory.worlds()
    assert not (dead / "key").exists() and (dead / "lock").exists()
    stuck.rmdir()
    assert directory.clean() == [str(dead)]


def test_clean_removes_the_dead_and_only_them(own_root: Path) -> None:
    killed("dead")
    with LocalDirectory("mixed") as mixed:
        living, gone, unlisted = (Process(mixed.folder) for _ in range(3))
        living.join(mixed, name="A")
        gone.join(mixed, name="B")
        left = {gone.segment, unlisted.segment, f"{mixed.folder}/{living.uid}-{gone.uid}.ring"}
        kept = f"{mixed.folder}/{gone.uid}-{living.uid}.ring"
        for path in (*left, kept):
            Path(path).touch()
        gone.die()
        unlisted.die()
        assert set(directory.clean()) == {*left, str(own_root / "dead")}
        assert directory.worlds() == ["mixed"]
        assert [member.name for member in mixed.members()] == ["A"]
        assert Path(kept).exists() and mixed.alive(mixed.members()[0])
        assert directory.clean() == []
        assert not directory.remove_world("mixed")  # a process lives in it
        living.leave()
    assert directory.worlds() == []
    assert directory.remove_world("mixed")
    assert directory.remove_world("mixed")  # harmless
    assert list(own_root.iterdir()) == []


def test_a_world_that_is_left_while_it_is_cleaned(own_root: Path) -> None:
    last = LocalDirectory("w")
    process = Process(last.folder)
    member = process.join(last)
    process.leave()
    last.leave(member)

    def users() -> int:
        opened = Path("/proc/self/fd").iterdir()
        return [os.path.realpath(fd) for fd in opened].count(last.folder)

    with open(Path(last.folder, "lock")) as held, ThreadPoolExecutor(1) as cleaner:
        fcntl.flock(held, fcntl.LOCK_EX)  # the cleaner comes as far as this
        removing = cleaner.submit(directory.remove_world, "w")
        wait_until(lambda: users() == 2)
        last.close()
        assert Path(last.folder).exists(), "the cleaner has it open"
        fcntl.flock(held, fcntl.LOCK_UN)
        assert removing.result()
    assert list(own_root.iterdir()) == []


def test_clean_leaves_unfinished_files_to_who_is_making_them(own_root: Path) -> None:
    with LocalDirectory("w") as opened:
        living, uid = Process(opened.folder), secrets.token_hex(16)
        living.join(opened)
        young = Path(opened.folder, f"{uid}.new")
        ring = Path(opened.folder, f"{living.uid}-{uid}.new")
        abandoned = Path(opened.folder, f"{uid}-{living.uid}.new")
        for file in (young, ring, abandoned):
            file.touch()
        assert directory.clean() == [str(abandoned)]
        os.utime(young, (0, 0))
        assert directory.clean() == [str(young)]
        living.die()
        assert str(ring) in directory.clean()


def test_clean_touches_no_other_folders(own_root: Path) -> None:
    for name in ("photos", "w"):
        (own_root / name).mkdir(0o700, parents=True)
        (own_root / name / "precious").touch()
    own_root.chmod(0o700)
    LocalDirectory("w").close()
    directory.clean()
    assert (own_root / "photos" / "precious").exists()
    assert (own_root / "w" / "precious").exists()


def test_clean_where_nothing_ever_was(own_root: Path) -> None:
    assert directory.clean() == [] == directory.worlds()
    assert directory.remove_world("w")


def test_a_world_that_is_open_is_not_removed(own_root: Path) -> None:
    with LocalDirectory("w") as opened:
        assert directory.clean() == []
        assert opened.members() == []
    assert directory.clean() == [str(own_root / "w")]


def test_joining_while_others_clean(own_root: Path) -> None:
    end = threading.Event()

    def clean() -> None:
        while not end.is_set():
            directory.clean()

    cleaner = threading.Thread(target=clean)
    cleaner.start()
    try:
        for _ in range(100):
            with LocalDirectory("w") as opened:
                process = Process(opened.folder)
                member = process.join(opened)
                assert opened.members() == [member]
                assert opened.alive(member)
                process.leave()
    finally:
        end.set()
        cleaner.join()
