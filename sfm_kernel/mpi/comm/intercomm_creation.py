"""How intercommunicators are made of two communicators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfm_kernel.mpi.base.constants import ERR_COMM, ERR_RANK
from sfm_kernel.mpi.base.errors import fail
from sfm_kernel.mpi.base.handle import Handle
from sfm_kernel.mpi.base.scalars import scalar
from sfm_kernel.mpi.comm.driver import Driver, Work, blocking, state_of
from sfm_kernel.mpi.engine.communicator import CommState
from sfm_kernel.mpi.engine.hidden import recv_hidden, send_hidden

if TYPE_CHECKING:
    from sfm_kernel.mpi.comm.comm import Comm
    from sfm_kernel.mpi.comm.intercomm import Intercomm


class IntercommCreation(Handle[CommState]):
    """Making an intercommunicator of two communicators; for ``Intracomm``."""

    __slots__ = ()

    def Create_intercomm(
        self, local_leader: int, peer_comm: Comm, remote_leader: int, tag: int = 0
    ) -> Intercomm:
        """An intercommunicator of the processes here, and those of another communicator.

        All processes of both make the call; it blocks until they have. Its two leaders talk in
        ``peer_comm``, to which both belong.

        Args:
            local_leader: the leader's rank here.
            peer_comm, remote_leader: where the leaders talk, and the other one's rank there; looked
                at on the leader only.
            tag: tells calls apart whose leaders talk in the same ``peer_comm`` at the same time.
        Raises:
            Exception: ERR_RANK: there is no such leader; ERR_COMM: a process is in both groups, or
                the leader's ``peer_comm`` is null.
        """
        from sfm_kernel.mpi.comm.intercomm import Intercomm

        made = blocking(self, _between, local_leader, peer_comm, remote_leader, tag)
        return Intercomm._of(made)


def _between(
    state: CommState, local_leader: int, peer_comm: Comm, remote_leader: int, tag: int
) -> Work:
    leader = scalar(local_leader)
    if not 0 <= leader < state.size:
        text = f"local_leader is a rank of this communicator, 0 to {state.size - 1}, not {leader}"
        fail(ERR_RANK, text, state)

    def exchange() -> tuple[Any, str]:
        """The other group's names, and a fresh name for the communicator; on the leader."""
        peers, other = state_of(peer_comm), scalar(remote_leader)
        if not 0 <= other < len(peers.peers):
            text = f"remote_leader is a rank of peer_comm, 0 to {len(peers.peers) - 1}, not {other}"
            fail(ERR_RANK, text, state)
        own = (state.names, state.fresh_id())
        label = f"create intercomm {scalar(tag)}"
        send_hidden(peers, own, other, label)
        theirs = recv_hidden(peers, other, label)
        return theirs[0], common_name(own[1], theirs[1])

    def work(driver: Driver) -> CommState:
        found: Any = None
        if state.rank == leader:
            try:
                found = exchange()
            except BaseException as failure:
                # The others wait for the leader, and shall not for ever.
                driver.group.bcast(f"{type(failure).__name__}: {failure}", leader)
                raise
        found = driver.group.bcast(found, leader)
        if isinstance(found, str):
            text = f"the leader, rank {leader}, could not reach the other group's: {found}"
            fail(ERR_COMM, text, state)
        theirs, cid = found
        check_apart(state.names, theirs, state)
        return CommState(state.process, cid, state.names, theirs)

    return work


def common_name(own: str, other: str) -> str:
    """A name that the members of two groups make alike of one name from each."""
    return "-".join(sorted((own, other)))


def check_apart(local: Any, remote: Any, handle: Any = None) -> None:
    """Raise ERR_COMM if a process is in both groups."""
    both = [name for name in local if name in remote]
    if both:
        text = f"{both} would be in both groups of the intercommunicator: make them of others"
        fail(ERR_COMM, text, handle)
