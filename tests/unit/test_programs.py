"""The line that runs a program of the file browser."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from sfm_kernel.jupyter.server.clusters import BadProgram, command


@pytest.fixture
def root(tmp_path: Path) -> Path:
    top = tmp_path / "shown"
    (top / "my programs").mkdir(parents=True)
    (top / "my programs\x1b[6n").mkdir()
    names = ["ring.c", "my programs/it's $HOME.py", "-n.c", "^C\x03ring.c"]
    names += ["ring.c\rtouch there\r.c", "my programs\x1b[6n/ring.c"]
    for name in names:
        (top / name).write_text("")
    (tmp_path / "secret.py").write_text("")
    return top


def words(root: Path, path: str, arguments: str = "", ranks: int = 4) -> list[str]:
    wanted = {"path": path, "ranks": ranks, "arguments": arguments}
    return shlex.split(command(str(root), wanted))


def test_names_mean_themselves_and_arguments_what_a_shell_makes_of_them(root: Path) -> None:
    start = [sys.executable, "-P", "-m", "sfm_kernel.mpi", "-n", "4"]
    assert words(root, "ring.c") == [*start, "ring.c"]
    assert words(root, "my programs/it's $HOME.py") == [*start, "it's $HOME.py"]
    assert words(root, "-n.c", "1 'a b' ") == [*start, "./-n.c", "1", "a b"]
    assert words(root, "my programs") == [*start, "my programs"]


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"path": "ring.c", "ranks": "4", "arguments": ""},
        {"path": "ring.c", "ranks": True, "arguments": ""},
        {"path": "ring.c", "ranks": 0, "arguments": ""},
        {"path": "ring.c", "ranks": 513, "arguments": ""},
        {"path": "ring.c", "ranks": 4, "arguments": "1\nrm -rf"},
        {"path": "ring.c", "ranks": 4, "arguments": "1\rrm"},
        {"path": "nothing.c", "ranks": 4, "arguments": ""},
        {"path": "", "ranks": 4, "arguments": ""},
        {"path": "^C\x03ring.c", "ranks": 4, "arguments": ""},
        {"path": "ring.c\rtouch there\r.c", "ranks": 4, "arguments": ""},
        {"path": "my programs\x1b[6n/ring.c", "ranks": 4, "arguments": ""},
        {"path": "\0", "ranks": 4, "arguments": ""},
        {"path": "../secret.py", "ranks": 4, "arguments": ""},
        {"path": "my programs/../../secret.py", "ranks": 4, "arguments": ""},
    ],
)
def test_a_program_that_cannot_be_run_is_refused(root: Path, wanted: dict[str, Any]) -> None:
    with pytest.raises(BadProgram):
        command(str(root), wanted)
