"""Processes of ``sfm_kernel.run`` that are forks of one process, which has imported what they need.

A fresh Python spends most of a short test's time on imports. Folders whose tests are about what
processes say to each other use these; that ``run`` starts fresh ones is tested in
``unit/test_run.py``. What they do is the same, from ``launched.main`` on.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from multiprocessing.reduction import DupFd
from types import SimpleNamespace
from typing import Any

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["sfm_kernel.launched", "sfm_kernel.mpi.engines", "mpi4py"])


class _Fork:
    """What ``subprocess.Popen`` is for ``sfm_kernel.launch``."""

    def __init__(
        self, command: Sequence[str], *, stdin: int, pass_fds: tuple[int], start_new_session: bool
    ) -> None:
        assert "sfm_kernel.launched" in command and stdin == subprocess.PIPE
        read, write = os.pipe()
        given = [DupFd(fd) for fd in (read, 1, 2, *pass_fds)]
        self._process = _CONTEXT.Process(
            target=_become, args=(given, dict(os.environ), os.getcwd()), daemon=False
        )
        self.stdin = os.fdopen(write, "wb")
        try:
            self._process.start()
        finally:
            os.close(read)
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired("a fork", timeout or 0.0)
        return code

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()


def _become(given: Sequence[Any], environment: Mapping[str, str], folder: str) -> None:
    """Be what ``python -m sfm_kernel.launched`` is."""
    os.setsid()
    with contextlib.suppress(FileNotFoundError):
        os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    *streams, report = [one.detach() for one in given]
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
        os.close(fd)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from sfm_kernel import launched

    launched.main(report)


POPEN = SimpleNamespace(Popen=_Fork, PIPE=subprocess.PIPE, TimeoutExpired=subprocess.TimeoutExpired)
"""What ``sfm_kernel.launch`` takes for ``subprocess``."""
