"""Processes that are started on this machine to serve one owner."""

from __future__ import annotations

from contextlib import ExitStack

from sfm_kernel.endpoint import Endpoint
from sfm_kernel.serving.owner import Attachment, Service
from sfm_kernel.serving.process import serve
from sfm_kernel.spawn.job import Job
from sfm_kernel.world import join


class LocalProcesses:
    """``n`` processes that serve this one. They end with ``close``, or with this process.

    Attributes:
        sfm: this process's endpoint in their world.
    """

    def __init__(self, n: int) -> None:
        if type(n) is not int or n < 1:
            raise ValueError(f"a number of processes is 1 or more, not {n!r}")
        with ExitStack() as stack:
            job = stack.enter_context(Job("own", n, serve))
            self.sfm: Endpoint = stack.enter_context(join(job.world, name="owner", guest=True))
            job.gather(self.sfm)
            held = Attachment(self.sfm, range(n), Service, "")  # they must outlive the first farm
            stack.callback(held.release)
            self._stack = stack.pop_all()

    def close(self) -> None:
        """End them. Harmless when repeated."""
        self._stack.close()
