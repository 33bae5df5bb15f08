"""Messages between the members of a communicator that no user sees.

They are for collectives that ``collectives.Group`` does not have, and for making communicators.
Each kind has its own tag; messages with one tag between two members keep their order.
"""

from __future__ import annotations

from typing import Any

from sfm_kernel.mpi.engine.communicator import CommState


def send_hidden(state: CommState, value: Any, dest: int, tag: Any) -> None:
    """Send an object or an array to a rank (of the remote group, if there is one). Never waits."""
    state.hidden.send(dest=state.peers[dest], tag=tag, value=value)


def recv_hidden(state: CommState, source: int, tag: Any) -> Any:
    """What ``send_hidden`` has sent from there; blocks until it has come."""
    with state.process.engine.attended():
        return state.hidden.recv(src=state.peers[source], tag=tag).value
