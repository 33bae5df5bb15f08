"""The launcher in tests: ``python -m sfm_kernel.mpi`` as a process, and what it leaves."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil

from sfm_kernel import directory

LAUNCHER = [sys.executable, "-m", "sfm_kernel.mpi"]
PATIENCE = 100.0
"""Seconds; only what hangs needs them."""

RANK = "import os; rank = int(os.environ['SFM_MPI_RANK'])\n"
"""The start of a program that needs no MPI to know its rank."""


def run(*words: str, stdin: str = "", **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the launcher to its end; its output and exit status."""
    return subprocess.run(
        [*LAUNCHER, *words], input=stdin, text=True, capture_output=True, **options
    )


@contextmanager
def launched(*words: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A launcher that runs, with pipes for its stdin, stdout and stderr; killed at the end."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    pipes.update(options)
    with subprocess.Popen([*LAUNCHER, *words], text=True, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def lines(process: subprocess.Popen[str], count: int) -> list[str]:
    """The next lines of its stdout, sorted."""
    assert process.stdout is not None
    return sorted(process.stdout.readline() for _ in range(count))


def status(pid: int) -> str:
    """The status of a process by psutil; "gone" if there is no such process."""
    try:
        return str(psutil.Process(pid).status())
    except psutil.NoSuchProcess:
        return "gone"


def lives(pid: int) -> bool:
    """Whether a process has not ended; a zombie has."""
    return status(pid) not in ("gone", psutil.STATUS_ZOMBIE)


def mpi_worlds() -> list[str]:
    """The folders of launchers' worlds."""
    root = directory.root()
    return [name for name in os.listdir(root) if name.startswith("mpi-")]
