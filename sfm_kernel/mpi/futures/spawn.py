"""Worker processes on this machine, started for one executor."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager

from sfm_kernel.directory import remove_world
from sfm_kernel.endpoint import Endpoint
from sfm_kernel.errors import RecvTimeout
from sfm_kernel.mpi.engine.process import RANK, SIZE, WORLD
from sfm_kernel.mpi.futures.worker import MASTER, SPAWNED
from sfm_kernel.world import join

SERVER = "sfm_kernel.mpi.futures.server"

GRACE = 5.0
"""Seconds that workers have for ending by themselves when their work is done."""


@contextmanager
def spawned(size: int, python: str | None, arguments: Sequence[str]) -> Iterator[Endpoint]:
    """Workers in a world of their own, and an endpoint through which this process talks to them.

    At the end they have got ``GRACE`` seconds, and are then killed; nothing is left.

    Args:
        size: how many; their names are their ranks.
        python, arguments: the interpreter (this one if None), and options for it.
    Raises:
        BrokenExecutor: one has ended before it was ready.
    """
    world = f"futures-{os.getpid()}-{secrets.token_hex(4)}"
    given = [str(one) for one in arguments]
    command = [python or sys.executable, *_flags(), *given, "-m", SERVER, SPAWNED]
    kept = {key: text for key, text in os.environ.items() if not key.startswith("SFM_MPI_")}
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for rank in range(size):
            job = {WORLD: world, RANK: str(rank), SIZE: str(size)}
            processes.append(
                subprocess.Popen(
                    command,
                    env=kept | job,
                    stdin=subprocess.PIPE,  # its end tells them that this process has died
                    start_new_session=True,  # Ctrl-C is for this process
                )
            )
        with join(world, name=MASTER, guest=True) as sfm:
            _wait_for(sfm, processes)
            try:
                yield sfm
            finally:
                _wait_for_end(processes)
    finally:
        for process in processes:
            process.kill()
            with process:  # closes the pipe, and waits
                pass
        with contextlib.suppress(OSError):
            remove_world(world)


def _flags() -> list[str]:
    """The options with which this interpreter was started."""
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return flags


def _wait_for(sfm: Endpoint, processes: Sequence[subprocess.Popen[bytes]]) -> None:
    while True:
        for rank, process in enumerate(processes):
            if process.poll() is not None:
                how = _how_it_ended(process)
                raise BrokenExecutor(f"worker {rank} {how} before it was ready; see its output")
        with contextlib.suppress(RecvTimeout):
            return sfm.wait_for(*range(len(processes)), timeout=0.1)


def _how_it_ended(process: subprocess.Popen[bytes]) -> str:
    code = process.returncode
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit status {code}"


def _wait_for_end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    deadline = time.monotonic() + GRACE
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))
