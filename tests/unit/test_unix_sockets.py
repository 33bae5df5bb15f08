"""The paths of Unix sockets, and the removal of sockets."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from sfm_kernel.directory import clean
from sfm_kernel.directory.unix import LONGEST, can_listen, make_sockets, remove_sockets


def test_a_path_may_have_so_many_bytes_and_no_more(sfm_dir: Path) -> None:
    longest = str(sfm_dir / "x")
    longest += "x" * (LONGEST - len(longest))
    assert can_listen(longest) and not os.path.exists(longest)
    assert not can_listen(longest + "x")
    assert not can_listen(longest[:-1] + "\N{GREEK SMALL LETTER ALPHA}"), "of two bytes"


def test_a_folder_that_others_enter_is_none(tmp_path: Path) -> None:
    for mode, can in ((0o700, True), (0o710, False), (0o755, False)):
        tmp_path.chmod(mode)
        assert can_listen(str(tmp_path / "s")) is can
    assert not can_listen(str(tmp_path / "nowhere" / "s"))
    assert not can_listen("/proc/s"), "no file system for sockets"


def test_nothing_is_made_if_no_socket_can_be(
    sfm_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFM_DIR", str(sfm_dir / ("long" * 25)))
    assert make_sockets("sfm-1") is None
    assert os.listdir(os.environ["SFM_DIR"]) == []
    os.rmdir(os.environ["SFM_DIR"])


def test_clean_removes_sockets_of_the_dead_alone(sfm_dir: Path) -> None:
    begins = {name: make_sockets(name) for name in ("sfm-dead", "sfm-alive", "sfm-starting")}
    assert begins["sfm-dead"] == str(sfm_dir / ".sfm-dead" / "s")
    with socket.socket(socket.AF_UNIX) as dead, socket.socket(socket.AF_UNIX) as alive:
        dead.bind(f"{begins['sfm-dead']}:1")
        dead.close()
        alive.bind(f"{begins['sfm-alive']}:1")
        alive.listen()
        assert clean() == [str(sfm_dir / ".sfm-dead")]
    for name in begins:
        remove_sockets(name)
        remove_sockets(name)
    assert not [*sfm_dir.glob(".sfm-*")]
