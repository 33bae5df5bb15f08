"""A process that no launcher has started (MPI: a singleton) and that calls MPI_Comm_spawn.

It has started this launcher for that purpose, and holds the other end of a pair of sockets. The
library (native/mpi/src/starting.rs) searches for this module to find a Python with the launcher.
"""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable

from sfm_kernel.mpi.launch.child import Child
from sfm_kernel.mpi.launch.reports import Report
from sfm_kernel.mpi.launch.worlds import World


class Singleton(Child):
    """The singleton as the launcher sees it: the only rank of the first world.

    Args:
        world: the first world.
        reports: the descriptor of the socket.
        received: called with this object and each report.
        ended: called when the process has ended.
    """

    def __init__(
        self,
        world: World,
        reports: int,
        selector: selectors.BaseSelector,
        received: Callable[[Child, Report], None],
        ended: Callable[[Child], None],
    ) -> None:
        self.ready = self.joined = True
        self._ended = ended
        self.socket = socket.socket(fileno=reports)
        credentials = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 4)
        self.pid = int.from_bytes(credentials, "little")
        self._attend(world, selector, received)
        self.answer({"ready": True})

    def signal(self, number: int) -> None:
        """Release it if it waits for the launcher, which must not end it."""
        self.release()

    def has_left_processes(self) -> bool:
        """False: its children do not belong to the launcher."""
        return False

    def reap(self) -> bool:
        """False: only the socket shows its end."""
        return False

    def _receive(self) -> bool:
        received = super()._receive()
        if self.status is None and self.socket.fileno() < 0:
            self.status = 0
            self._ended(self)
        return received

    def close(self) -> None:
        """Close the socket; the process may live on."""
        self.status = 0
        super().close()
