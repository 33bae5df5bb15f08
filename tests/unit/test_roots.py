"""The folder of a user's worlds, also if another user has taken its name."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sfm_kernel import WorldAccess, directory
from sfm_kernel.directory import LocalDirectory, roots

Take = Callable[[Path], None]


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Shared memory, and a home, for this test alone."""
    made = tmp_path / "shm"
    made.mkdir()
    monkeypatch.delenv("SFM_DIR")
    monkeypatch.setattr(roots, "SHARED", str(made))
    monkeypatch.setattr(roots, "home", lambda: str(tmp_path / "home"))
    return made


@pytest.fixture
def usual(shared: Path) -> Path:
    return shared / f"sfm-{os.geteuid()}"


@pytest.fixture
def take(monkeypatch: pytest.MonkeyPatch) -> Take:
    """Give a path to another user, which only root can do."""
    taken: dict[str, os.stat_result] = {}
    lstat = os.lstat

    def as_given(path: str) -> os.stat_result:
        status = lstat(path)
        if taken.get(path) and taken[path].st_ino == status.st_ino:
            status = os.stat_result((*status[:4], os.geteuid() + 1, *status[5:]))
        return status

    def take(path: Path) -> None:
        taken[str(path)] = lstat(path)

    monkeypatch.setattr(os, "lstat", as_given)
    return take


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


def record(shared: Path) -> Path:
    return Path(roots._record(str(shared)))


def test_nothing_is_recorded_without_need(shared: Path, usual: Path) -> None:
    with LocalDirectory("w") as opened:
        assert opened.folder == str(usual / "w")
    assert directory.clean() == [str(usual / "w")] and directory.worlds() == []
    assert not record(shared).parent.exists()


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_a_name_that_another_user_has_taken(
    shared: Path, usual: Path, take: Take, kind: str
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
    assert stat.S_IMODE(record(shared).stat().st_mode) == 0o600
    assert directory.clean() == [str(root / "w")]
    # It stays that way when the other one has gone: processes may be there.
    usual.rmdir() if kind == "folder" else usual.unlink()
    assert directory.root() == str(root)
    assert list(record(shared).parent.iterdir()) == [record(shared)]


def test_processes_that_start_at_once_agree(usual: Path, take: Take) -> None:
    usual.mkdir()
    take(usual)
    with ThreadPoolExecutor(8) as pool:
        assert len({*pool.map(lambda _: directory.root(), range(50))}) == 1


def test_a_name_that_is_taken_in_between(
    usual: Path, take: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = os.mkdir

    def slow(path: str, mode: int = 0o777) -> None:
        if path == str(usual) and not usual.exists():
            mkdir(path)
            take(usual)
        mkdir(path, mode)

    monkeypatch.setattr(os, "mkdir", slow)
    with LocalDirectory("w") as opened:
        assert Path(opened.folder).parent.name.startswith(f"{usual.name}-")


def test_a_record_that_others_could_have_written_is_ignored(
    shared: Path, usual: Path, take: Take, tmp_path: Path
) -> None:
    usual.mkdir()
    take(usual)
    good = directory.root()
    file = record(shared)
    for content in ("", "/etc", f"{usual}-x", good + "/..", good.replace("shm", "elsewhere")):
        file.write_text(content)
        assert directory.root() not in (content, good)
    good = directory.root()
    file.chmod(0o644)
    assert directory.root() != good
    good = directory.root()
    take(Path(good)) if Path(good).exists() else os.mkdir(good)
    take(Path(good))
    assert directory.root() != good, "that name was taken, too"
    (tmp_path / "else").write_text(good)
    file.unlink()
    file.symlink_to(tmp_path / "else")
    assert directory.root() != good
    assert not file.is_symlink()


def test_a_home_that_cannot_record_it(
    usual: Path, take: Take, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual.mkdir()
    take(usual)
    monkeypatch.setattr(roots, "home", lambda: "/proc")
    with pytest.raises(WorldAccess, match=r"belongs to another user.*Set SFM_DIR"):
        LocalDirectory("w")
    monkeypatch.setenv("SFM_DIR", str(tmp_path / "own"))
    LocalDirectory("w").close()
