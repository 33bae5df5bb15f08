"""Processes of ``sfm_kernel.run`` that are forks of one process, which has imported what they need.

A fresh Python spends most of a short test's time on imports. Folders whose tests are about what
processes say to each other use these; that ``run`` starts fresh ones is tested in
``unit/test_run.py``. From ``worker.main`` on, both do the same.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Mapping, Sequence
from multiprocessing.reduction import DupFd
from typing import Any

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    # The worker, and the imports of the modules that have the functions of these tests.
    ["sfm_kernel.spawn.worker", "sfm_kernel.mpi.engines", "mpi4py", "pytest", "hypothesis",
     "tests.observe.harness", "tests.observe.pictures"]
)  # fmt: skip


class Fork:
    """A fork of the fork server, in place of the process that ``spawn.job.fresh`` starts."""

    def __init__(self, orders: int, report: int) -> None:
        given = [DupFd(fd) for fd in (orders, 1, 2, report)]
        arguments = given, dict(os.environ), os.getcwd()
        self._process = _CONTEXT.Process(target=_become, args=arguments, daemon=False)
        self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    returncode = property(poll)

    def send_signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)


def _become(given: Sequence[Any], environment: Mapping[str, str], folder: str) -> None:
    """Run as ``python -m sfm_kernel.spawn.worker`` does."""
    os.setsid()
    with contextlib.suppress(FileNotFoundError):
        os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    *streams, report = [fd.detach() for fd in given]
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
        os.close(fd)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from sfm_kernel.spawn import worker

    worker.main(report)
