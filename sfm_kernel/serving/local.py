"""Processes that serve, started here because there is no world of others."""

from __future__ import annotations

import contextlib

import cloudpickle

from sfm_kernel.endpoint import Endpoint
from sfm_kernel.errors import WorldError
from sfm_kernel.serving.owner import Attachment, Service
from sfm_kernel.serving.process import serve
from sfm_kernel.spawn.job import Job
from sfm_kernel.spawn.report import GO
from sfm_kernel.world import join


class LocalProcesses:
    """``n`` processes of this machine that serve; they end with ``close``, or with this process.

    Attributes:
        sfm: this process's endpoint in their world.
    """

    def __init__(self, n: int) -> None:
        if type(n) is not int or n < 1:
            raise ValueError(f"a number of processes is 1 or more, not {n!r}")
        self._job = Job("own", n, cloudpickle.dumps((serve, (), {})))
        self._hold: Attachment | None = None
        self.sfm: Endpoint = join(self._job.world, name="owner", guest=True)
        try:
            self._job.start()
            self._job.order(GO)
            while not self._are_there(n):
                if self._job.ended():
                    raise WorldError("a process ended before it could serve; stderr says why")
            self._hold = Attachment(self.sfm, range(n), Service, "")  # or they end with the first
        except BaseException:
            self.close()
            raise

    def _are_there(self, n: int) -> bool:
        with contextlib.suppress(TimeoutError):
            self.sfm.wait_for(*range(n), timeout=0.5)
            return True
        return False

    def close(self) -> None:
        """End them. Harmless when repeated."""
        if self._hold is not None:
            self._hold.release()
        self.sfm.close()
        self._job.stop()
