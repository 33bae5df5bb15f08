"""A process that nothing has launched, and that asks for processes (MPI_Comm_spawn): it has started
this launcher for that, with one end of a pair of sockets.
"""

from __future__ import annotations

import os
import selectors
import socket
from collections.abc import Callable

from sfm_kernel.mpi.launch.child import Child
from sfm_kernel.mpi.launch.reports import Report
from sfm_kernel.mpi.launch.worlds import World


class Lone(Child):
    """That process, as the launcher sees it: the only rank of the first world.

    Args:
        world: its world.
        reports: the descriptor of the socket.
        heard: as a ``Child`` has it.
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
        self.world, self.place = world, world.place()
        self.prefix, self.program = b"", None
        self.ready = self.joined = True
        self.finished = False
        self.report, self.status, self.killed_by = None, None, ""
        self._selector, self._heard, self._ended = selector, heard, ended
        self._socket = socket.socket(fileno=reports)
        self._streams, self._input = [], None
        self.pid = _peer(self._socket)
        self._socket.setblocking(False)
        selector.register(self._socket, selectors.EVENT_READ, self._hear)
        self.answer({"ready": True})

    def signal(self, number: int) -> None:
        """It is not ours to end; should it wait for us, it goes on."""
        self.release()

    def has_left_processes(self) -> bool:
        """Whatever it has started is its own."""
        return False

    def reap(self) -> bool:
        """Its end is seen at the socket alone."""
        return False

    def _hear(self) -> bool:
        heard = super()._hear()
        if self.status is None and self._socket.fileno() < 0:
            self.status = 0
            self._ended(self)
        return heard

    def close(self) -> None:
        """It may live on, and finds out."""
        self.status = 0
        super().close()


def _peer(end: socket.socket) -> int:
    return int.from_bytes(end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 4), "little")


def part() -> None:
    """Be nobody's child: the process waits for its own, and not for this one."""
    if os.fork():
        os._exit(0)
