"""The names that people know worlds by."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from sfm_kernel.jupyter.titles import SESSION, ancestors, names_of, notebook_of, program_of


@pytest.mark.parametrize(
    ("notebooks", "names"),
    [
        (("a.ipynb", "b.ipynb"), ["a.ipynb", "b.ipynb"]),
        (("a.ipynb", "a.ipynb"), ["c0", "c1"]),  # two of the name
        (("my first.ipynb", "-n.ipynb"), ["c0", "c1"]),  # no word of a line
        (("", ""), ["c0", "c1"]),
    ],
)
def test_a_cluster_is_called_by_its_notebook(notebooks: tuple[str, ...], names: list[str]) -> None:
    clusters = {f"c{nth}": notebook for nth, notebook in enumerate(notebooks)}
    assert list(names_of(clusters).values()) == names


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process of no program, which a kernel of a notebook could have started."""
    words = [sys.executable, "-c", "print(flush=True); input()"]
    environment = os.environ | {SESSION: "lessons/one.ipynb"}
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_of_a_process(sleeper: subprocess.Popen[bytes]) -> None:
    assert notebook_of(sleeper.pid) == "one.ipynb"
    assert program_of(sleeper.pid) == ""
    assert list(ancestors(sleeper.pid))[:2] == [sleeper.pid, os.getpid()]


def test_of_no_process() -> None:
    for pid in (None, 0, 2**22 + 1):
        assert notebook_of(pid) == program_of(pid) == ""
