"""Processes of one's own that serve, where there is no world of others."""

from __future__ import annotations

import contextlib
import os
import secrets

import cloudpickle

from sfm_kernel.endpoint import Endpoint
from sfm_kernel.errors import WorldError
from sfm_kernel.launch import GO, Crew, remove
from sfm_kernel.serving.owner import Attachment, Service
from sfm_kernel.serving.process import serve
from sfm_kernel.world import join


class OwnProcesses:
    """``n`` processes of this machine that serve; they end with ``close``, or with this process.

    Attributes:
        sfm: this process's endpoint in their world.
    """

    def __init__(self, n: int) -> None:
        if type(n) is not int or n < 1:
            raise ValueError(f"a number of processes is 1 or more, not {n!r}")
        self._world = f"own-{os.getpid()}-{secrets.token_hex(4)}"
        self._crew = Crew()
        self._hold: Attachment | None = None
        self.sfm: Endpoint = join(self._world, name="owner", guest=True)
        try:
            for rank in range(n):
                self._crew.start(self._world, rank, n, None, cloudpickle.dumps((serve, (), {})))
            self._crew.say(GO)
            there = False
            while not there:
                with contextlib.suppress(TimeoutError):
                    self.sfm.wait_for(*range(n), timeout=0.5)
                    there = True
                if not there and self._crew.ended():
                    raise WorldError("a process ended before it could serve; stderr says why")
            self._hold = Attachment(self.sfm, range(n), Service, "")  # or they end with the first
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End them. Harmless when repeated."""
        if self._hold is not None:
            self._hold.release()
        self._crew.stop()
        self.sfm.close()
        remove(self._world)
