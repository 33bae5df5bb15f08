"""The directory of a world on one machine: a table in a file, no server."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from sfm_kernel import _native
from sfm_kernel._native import JoinRequest, Member
from sfm_kernel.transport.base import Changes
from sfm_kernel.transport.closing import Closing
from sfm_kernel.transport.keys import KeyPair


class LocalDirectory(_native.LocalDirectory, Closing):
    """The directory of a world on this machine. See ``transport.base.Directory`` for the contract.

    Cost: opening 0.1 ms, ``join`` and ``leave`` 0.2–1.5 ms, ``members`` 0.1 ms, ``alive`` 10 µs.
    """

    client = None

    @cached_property
    def pair(self) -> KeyPair:
        return KeyPair.fresh()

    def join(self, **request: Any) -> Member:
        """Register; see ``Directory.join``. Also removes the files of dead processes."""
        public = self.pair.public.hex() if request["address"] else ""
        return self._join(JoinRequest(**request, public=public))

    def watch(self, changed: Callable[[Changes], None]) -> None:
        """Do nothing: there are no gateways, and members read the table themselves."""
