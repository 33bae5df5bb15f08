"""Comm and Intracomm, put together; COMM_NULL, COMM_SELF and COMM_WORLD."""

from __future__ import annotations

from functools import cached_property
from typing import Self

from sfm_kernel.mpi.base.buffered import HasBuffer
from sfm_kernel.mpi.base.constants import ERR_COMM
from sfm_kernel.mpi.base.errhandler import HasErrhandler
from sfm_kernel.mpi.base.errors import fail
from sfm_kernel.mpi.base.handle import Handle
from sfm_kernel.mpi.base.keyvals import HasAttributes
from sfm_kernel.mpi.base.not_offered import DynamicProcesses, FaultTolerance
from sfm_kernel.mpi.comm.collectives import (
    BufferCollectives,
    NonBlockingCollectives,
    ObjectCollectives,
    PersistentCollectives,
    Scans,
)
from sfm_kernel.mpi.comm.creation import Creation, CreationFromGroups
from sfm_kernel.mpi.comm.intercomm_creation import IntercommCreation
from sfm_kernel.mpi.comm.management import Management
from sfm_kernel.mpi.comm.repeated import RepeatedPointToPoint
from sfm_kernel.mpi.comm.topology_creation import TopologyCreation
from sfm_kernel.mpi.engine.communicator import CommState
from sfm_kernel.mpi.engine.process import process, watch


class Comm(
    Management,
    Creation,
    RepeatedPointToPoint,
    ObjectCollectives,
    BufferCollectives,
    NonBlockingCollectives,
    PersistentCollectives,
    HasAttributes,
    HasBuffer,
    HasErrhandler,
    FaultTolerance,
    Handle[CommState],
):
    """Communicator: processes that send to each other, apart from all other communicators.

    Its members are known by their *ranks*. A handle without a communicator equals COMM_NULL, and
    most calls on it raise.
    """

    _null_error = ERR_COMM

    def __new__(cls, comm: Comm | None = None) -> Self:
        made = super().__new__(cls, comm)
        state = made._state
        if state is not None and not cls._fits(state):
            raise TypeError(f"this communicator cannot become a {cls.__name__}: {comm!r}")
        return made

    @classmethod
    def _fits(cls, state: CommState) -> bool:
        """Whether handles of this class may stand for it."""
        return True

    @classmethod
    def _wrap(cls, state: CommState | None) -> Handle[CommState]:
        return class_of(state)._of(state)

    @cached_property
    def _state(self) -> CommState | None:  # type: ignore[override]  # is looked up on two of them
        """The communicator. COMM_WORLD and COMM_SELF look theirs up when they are used first: that
        is when a process joins its world, and in a notebook it may be in another one later."""
        return process().world if self is COMM_WORLD else process().self

    @property
    def _live(self) -> CommState:
        """The state.

        Raises:
            Exception: ERR_COMM: it is null, or was freed through another handle.
        """
        state = self._state
        if state is None:
            return super()._live  # which raises
        if state.freed:
            fail(ERR_COMM, "this communicator was freed: use one that exists")
        return state


class Intracomm(
    Comm, CreationFromGroups, TopologyCreation, IntercommCreation, DynamicProcesses, Scans
):
    """Communicator of the processes of one group."""

    __slots__ = ()

    @classmethod
    def _fits(cls, state: CommState) -> bool:
        return state.remote is None


def class_of(state: CommState | None) -> type[Comm]:
    """The class that tells most of a communicator."""
    from sfm_kernel.mpi.comm.intercomm import Intercomm
    from sfm_kernel.mpi.comm.topology_comms import Cartcomm, Distgraphcomm, Graphcomm

    if state is None:
        return Comm
    if state.remote is not None:
        return Intercomm
    fitting = (cls for cls in (Cartcomm, Graphcomm, Distgraphcomm) if cls._fits(state))
    return next(fitting, Intracomm)


def _look_up() -> None:
    for comm in (COMM_SELF, COMM_WORLD):
        comm.__dict__.pop("_state", None)


COMM_NULL = Comm._constant("COMM_NULL")
COMM_SELF = Intracomm._constant("COMM_SELF")
COMM_WORLD = Intracomm._constant("COMM_WORLD")
_look_up()
watch(_look_up)
