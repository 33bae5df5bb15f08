"""The folder of a user's worlds, also if another user has taken its name."""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sfm_kernel import WorldAccess, _native, directory
from sfm_kernel.directory import LocalDirectory
from tests.waiting import wait_until

OTHER = 4242
"""The number of a user who is not this one."""

LIBC = ctypes.CDLL(None, use_errno=True)
NEW_MOUNTS, BIND, PRIVATE, READ_ONLY = 0x20000, 0x1000, 0x44000, 0x1021
"""CLONE_NEWNS; MS_BIND; MS_PRIVATE of all mounts; a bound one becomes MS_RDONLY."""


def mount(source: Path, target: str, flags: int) -> None:
    if LIBC.mount(os.fsencode(source), os.fsencode(target), None, flags, None):
        raise OSError(ctypes.get_errno(), f"mount on {target}")


def is_back(mounts: int) -> bool:
    """Enter these mounts again; not while a thread that has just ended shares this one's folder."""
    with contextlib.suppress(OSError):
        _native.setns(mounts)
        return True
    return False


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Shared memory, and a home, for this test's thread alone."""
    if os.geteuid() != 0:
        pytest.skip("only root gives files to other users, and mounts folders")
    made, passwords = tmp_path / "shm", tmp_path / "passwd"
    made.mkdir()
    made.chmod(0o1777)
    passwords.write_text(f"root:x:0:0:root:{tmp_path / 'home'}:/bin/sh\n")
    monkeypatch.delenv("SFM_DIR")
    with open("/proc/thread-self/ns/mnt") as before:
        _native.unshare(NEW_MOUNTS)
        try:
            mount(Path("none"), "/", PRIVATE)
            mount(made, "/dev/shm", BIND)
            mount(passwords, "/etc/passwd", BIND)
            yield Path("/dev/shm")
        finally:
            wait_until(lambda: is_back(before.fileno()))


@pytest.fixture
def home(shared: Path, tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def usual(shared: Path) -> Path:
    return shared / f"sfm-{os.geteuid()}"


def take(path: Path) -> None:
    """Give a path to another user."""
    os.chown(path, OTHER, OTHER, follow_symlinks=False)


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        ("file", "Not a directory"),
        ("file/folder", "Not a directory"),
        ("long" * 1250, "File name too long"),
        ("/".join(["folders"] * 600), "File name too long"),
        ("/proc/nothing", "No such file or directory"),
    ],
)
def test_a_folder_that_cannot_be(
    chosen: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SFM_DIR", str(tmp_path / chosen))
    wanted = rf"^SFM_DIR=.* cannot hold your worlds: {why}\. "
    with pytest.raises(WorldAccess, match=wanted) as said:
        LocalDirectory("w")
    assert "Set SFM_DIR to a folder of your own" in str(said.value) and len(str(said.value)) < 400


def records(home: Path) -> list[Path]:
    return list(home.glob(".local/state/sfm-kernel/*"))


def test_nothing_is_recorded_without_need(home: Path, usual: Path) -> None:
    with LocalDirectory("w") as opened:
        assert opened.folder == str(usual / "w")
    assert directory.clean() == [str(usual / "w")] and directory.worlds() == []
    assert records(home) == []


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_a_name_that_another_user_has_taken(
    shared: Path, home: Path, usual: Path, kind: str
) -> None:
    match kind:
        case "folder":
            usual.mkdir()
        case "file":
            usual.touch()
        case "link":
            usual.symlink_to(shared)
    take(usual)
    assert directory.clean() == directory.worlds() == []
    with LocalDirectory("w") as opened, LocalDirectory("w", create=False) as other:
        assert opened.folder == other.folder
        root = Path(opened.folder).parent
        assert root.parent == shared and root.name.startswith(f"{usual.name}-")
        assert stat.S_IMODE(root.stat().st_mode) == 0o700
    (record,) = records(home)
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert directory.clean() == [str(root / "w")]
    # It stays that way when the other one has gone: processes may be there.
    usual.rmdir() if kind == "folder" else usual.unlink()
    assert directory.root() == str(root)
    assert records(home) == [record]


def test_processes_that_start_at_once_agree(usual: Path) -> None:
    usual.mkdir()
    take(usual)
    with ThreadPoolExecutor(8) as pool:
        assert len({*pool.map(lambda _: directory.root(), range(50))}) == 1


def test_a_name_that_is_taken_in_between(usual: Path) -> None:
    taken = 0

    def take_it() -> None:
        LIBC.setfsuid(OTHER)  # of this thread
        ready.wait()
        with contextlib.suppress(FileExistsError):
            usual.mkdir()

    for _ in range(30):
        ready = threading.Barrier(2)
        other = threading.Thread(target=take_it)
        other.start()
        ready.wait()
        with LocalDirectory("w") as opened:
            root = Path(opened.folder).parent
        other.join()
        assert (root == usual) == (usual.stat().st_uid == 0)
        taken += root != usual
        directory.clean()
        usual.rmdir()
    print(f"taken {taken} times of 30")


def test_a_record_that_others_could_have_written_is_ignored(
    home: Path, usual: Path, tmp_path: Path
) -> None:
    usual.mkdir()
    take(usual)
    good = directory.root()
    (file,) = records(home)
    for content in ("", "/etc", f"{usual}-x", good + "/..", good.replace("shm", "elsewhere")):
        file.write_text(content)
        assert directory.root() not in (content, good)
    good = directory.root()
    file.chmod(0o644)
    assert directory.root() != good
    good = directory.root()
    Path(good).mkdir(exist_ok=True)
    take(Path(good))
    assert directory.root() != good, "that name was taken, too"
    (tmp_path / "else").write_text(good)
    file.unlink()
    file.symlink_to(tmp_path / "else")
    assert directory.root() != good
    assert not file.is_symlink()


def test_a_home_that_cannot_record_it(
    home: Path, usual: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual.mkdir()
    take(usual)
    home.touch()
    with pytest.raises(WorldAccess, match=r"belongs to another user.*Set SFM_DIR"):
        LocalDirectory("w")
    monkeypatch.setenv("SFM_DIR", str(tmp_path / "own"))
    LocalDirectory("w").close()


@pytest.mark.usefixtures("shared")
def test_without_shared_memory_they_are_among_temporary_files() -> None:
    assert directory.root() == f"/dev/shm/sfm-{os.geteuid()}"
    mount(Path("none"), "/dev/shm", READ_ONLY)
    assert directory.root() == os.path.join(tempfile.gettempdir(), f"sfm-{os.geteuid()}")
