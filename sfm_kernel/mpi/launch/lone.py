"""A process that no launcher has started (MPI: a singleton) and that calls MPI_Comm_spawn.

It has started this launcher for that, and holds the other end of a pair of sockets. The library
(native/mpi/src/starting.rs) looks for this module to find a Python that has the launcher.
"""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable

from sfm_kernel.mpi.launch.child import Child
from sfm_kernel.mpi.launch.reports import Report
from sfm_kernel.mpi.launch.worlds import World


class Singleton(Child):
    """That process as the launcher sees it: the only rank of the first world.

    Args:
        world: its world.
        reports: the descriptor of the socket.
        heard: called with this and each report.
        ended: called when it has ended.
    """

    def __init__(
        self,
        world: World,
        reports: int,
        selector: selectors.BaseSelector,
        heard: Callable[[Child, Report], None],
        ended: Callable[[Child], None],
    ) -> None:
        self.ready = self.joined = True
        self._ended = ended
        self.socket = socket.socket(fileno=reports)
        self.pid = _peer(self.socket)
        self._attend(world, selector, heard)
        self.answer({"ready": True})

    def signal(self, number: int) -> None:
        """It is not the launcher's to end; if it waits for the launcher, it goes on."""
        self.release()

    def has_left_processes(self) -> bool:
        """Nothing that it has started is the launcher's."""
        return False

    def reap(self) -> bool:
        """Only the socket shows its end."""
        return False

    def _hear(self) -> bool:
        heard = super()._hear()
        if self.status is None and self.socket.fileno() < 0:
            self.status = 0
            self._ended(self)
        return heard

    def close(self) -> None:
        """Close the socket; the process may live on."""
        self.status = 0
        super().close()


def _peer(end: socket.socket) -> int:
    return int.from_bytes(end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 4), "little")
