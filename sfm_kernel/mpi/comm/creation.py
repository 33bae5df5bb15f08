"""Communicators that are made from others.

All members of the new communicator must know it by the same name, and none may take it for another
one, even after one of them was interrupted in the middle. So they agree on the name in a collective
call: it is a fresh one that the first of them gives.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

from sfm_kernel.collectives.meeting import meet, resolve
from sfm_kernel.mpi.base.constants import (
    COMM_TYPE_HW_GUIDED,
    COMM_TYPE_HW_UNGUIDED,
    COMM_TYPE_RESOURCE_GUIDED,
    COMM_TYPE_SHARED,
    ERR_ARG,
    ERR_GROUP,
    UNDEFINED,
)
from sfm_kernel.mpi.base.errhandler import Errhandler
from sfm_kernel.mpi.base.errors import Exception as MPIError
from sfm_kernel.mpi.base.errors import fail
from sfm_kernel.mpi.base.handle import Handle
from sfm_kernel.mpi.base.info import INFO_NULL, Info
from sfm_kernel.mpi.base.keyvals import HasAttributes
from sfm_kernel.mpi.base.scalars import scalar
from sfm_kernel.mpi.comm.driver import Driver, Work, blocking, started
from sfm_kernel.mpi.comm.groups import Group
from sfm_kernel.mpi.comm.intercomm_creation import common_name
from sfm_kernel.mpi.comm.management import shares_memory
from sfm_kernel.mpi.engine.communicator import CommState
from sfm_kernel.mpi.engine.process import process
from sfm_kernel.mpi.requests.request import Request
from sfm_kernel.transport.base import Name

if TYPE_CHECKING:
    from sfm_kernel.mpi.comm.comm import Intracomm

RESOURCE, SHARED_MEMORY = "mpi_hw_resource_type", "mpi_shared_memory"
"""The hint that tells Split_type by what to split, and its value for memory."""


class Creation(HasAttributes, Handle[CommState]):
    """Making communicators of all or some of a communicator's processes.

    All members make the call, in the same order as their other collective calls; it blocks until
    those have made it of whom the new communicator must know. The new one has the error handler
    ERRORS_RETURN, and no name; only Dup and its kind give it the attributes and the neighbours of
    the old one.
    """

    __slots__ = ()

    # ---- the same processes ----

    def Clone(self) -> Self:
        """The same processes, in a communicator whose messages are apart."""
        return self.Dup()

    def Dup(self, info: Info | None = None) -> Self:
        """The same processes, in a communicator whose messages are apart.

        Args:
            info: hints for the new one; those of the old one are not copied.
        """
        made: CommState = blocking(self, same, info)
        made.topology = self._live.topology
        try:
            self._copy_attributes(made)
        except MPIError:
            made.free()
            raise
        return self._alike(made)

    def Dup_with_info(self, info: Info) -> Self:
        """As ``Dup``."""
        return self.Dup(info)

    def Idup(self, info: Info | None = None) -> tuple[Self, Request]:
        """As ``Dup``, without waiting: the communicator is null until the request is complete."""
        comm = self._alike(None)
        copied = SimpleNamespace(attributes={})
        self._copy_attributes(copied)

        def dup(state: CommState) -> Work:
            work = same(state, info)

            def fill(driver: Driver) -> None:
                made = work(driver)
                made.topology, made.attributes = state.topology, copied.attributes
                comm._state = made

            return fill

        return comm, started(self, dup)

    def Idup_with_info(self, info: Info) -> tuple[Self, Request]:
        """As ``Idup``."""
        return self.Idup(info)

    # ---- some of them ----

    def Create(self, group: Group) -> Any:
        """A communicator of the processes of a group.

        Args:
            group: some of the members, the same on all of those; others may at the same time make
                one of a group of theirs. On an intercommunicator, some of the local ones.
        Returns:
            The null communicator on who is not in its group.
        Raises:
            Exception: ERR_GROUP: somebody in the group is no member, or has given another group.
        """
        return self._related(blocking(self, of_group, group._live.names))

    def Split(self, color: int = 0, key: int = 0) -> Any:
        """A communicator for each colour, of those who give it.

        Args:
            color: UNDEFINED to be in none.
            key: ranks follow the keys; where these are equal, the ranks here.
        Returns:
            The null communicator for UNDEFINED. (On an intercommunicator also where nobody of the
            other group gives this colour.)
        """
        return self._related(blocking(self, split, scalar(color), scalar(key)))

    def Split_type(self, split_type: int, key: int = 0, info: Info = INFO_NULL) -> Any:
        """A communicator for each machine, of the processes that share its memory.

        Args:
            split_type: COMM_TYPE_SHARED. COMM_TYPE_HW_GUIDED and COMM_TYPE_RESOURCE_GUIDED ask for
                what ``info`` names as "mpi_hw_resource_type", of which "mpi_shared_memory" is
                known; COMM_TYPE_HW_UNGUIDED, for parts that are smaller than the whole, and says
                in ``info`` what they share. UNDEFINED to be in none.
            key: as for ``Split``.
        Returns:
            The null communicator where there is no such part.
        """
        key = scalar(key)
        shared = blocking(self, _split_by_memory, scalar(split_type), key, info)
        if split_type == COMM_TYPE_HW_UNGUIDED and shared is not None and info:
            info.Set(RESOURCE, SHARED_MEMORY)
        return self._related(shared)

    # ---- handles ----

    def _alike(self, state: CommState | None) -> Self:
        """A handle of this handle's class."""
        cls = type(self)
        made = cls.__new__(cls)
        made._state = state
        return made

    def _related(self, state: CommState | None) -> Any:
        """A handle for a communicator that need not have this one's processes and neighbours."""
        from sfm_kernel.mpi.comm.comm import Comm, Intracomm
        from sfm_kernel.mpi.comm.intercomm import Intercomm

        for cls in (Intracomm, Intercomm):
            if isinstance(self, cls):
                return cls._of(state)
        return Comm._of(state)


class CreationFromGroups(Handle[CommState]):
    """Making communicators that only their own members know of."""

    __slots__ = ()

    def Create_group(self, group: Group, tag: int = 0) -> Intracomm:
        """A communicator of some members, without the others. Blocks until all of them are here.

        Args:
            tag: tells calls with the same group apart that are made at the same time, in threads.
        """
        from sfm_kernel.mpi.comm.comm import Intracomm

        state, names = self._live, group._live.names
        _check_members(state, names)
        if state.process.sfm.name not in names:
            return Intracomm._of(None)
        purpose = f"mpi {state.cid} create {scalar(tag)}"
        return Intracomm._of(blocking(self, _met, names, purpose))

    @classmethod
    def Create_from_group(
        cls,
        group: Group,
        stringtag: str = "org.mpi4py",
        info: Info = INFO_NULL,
        errhandler: Errhandler | None = None,
    ) -> Intracomm:
        """A communicator of a group's processes. Blocks until all of them are here.

        Args:
            stringtag: tells calls with the same group apart.
        Raises:
            Exception: ERR_GROUP: this process is not in the group.
        """
        from sfm_kernel.mpi.comm.comm import COMM_SELF, Intracomm

        names, own = group._live.names, process().sfm.name
        if not names:
            return Intracomm._of(None)
        if own not in names:
            fail(ERR_GROUP, f"{own!r} is not in the group: only its members make it")
        made: CommState = blocking(COMM_SELF, _met, names, f"mpi from group {stringtag}")
        made.info = _hints(info)
        if errhandler is not None:
            made.errhandler = errhandler._live
        return Intracomm._of(made)


def agree(driver: Driver) -> str:
    """A name for a new communicator of all members, equal on all of them."""
    fresh = driver.state.fresh_id() if driver.rank == 0 else None
    own: str = driver.group.bcast(fresh, 0)
    if driver.state.remote is None:
        return own
    return common_name(own, driver.allgather_objects(own)[0])


# ---- plans, see ``driver``: their works return the new state, or None ----


def same(state: CommState, info: Info | None = None) -> Work:
    """The same processes."""
    hints = _hints(info)

    def work(driver: Driver) -> CommState:
        made = CommState(state.process, agree(driver), state.names, state.remote)
        made.info = hints
        return made

    return work


def of_group(state: CommState, names: tuple[Name, ...]) -> Work:
    """Those of the local processes that are named, which all of them give alike."""
    _check_members(state, names)

    def work(driver: Driver) -> CommState | None:
        fresh, mark = state.fresh_id(), _mark(names)
        given = dict(zip(state.names, driver.group.allgather((fresh, mark)), strict=True))
        theirs = driver.allgather_objects((fresh, names)) if state.remote is not None else None
        for name in names:
            if given[name][1] != mark:
                fail(ERR_GROUP, f"{name!r} has given another group: all of a group give it", state)
        if state.process.sfm.name not in names:
            return None
        cid = given[names[0]][0]
        if theirs is None or state.remote is None:
            return CommState(state.process, cid, names)
        others = theirs[0][1]
        if not others:
            return None
        first = theirs[state.remote.index(others[0])]
        return CommState(state.process, common_name(cid, first[0]), names, others)

    return work


def split(state: CommState, color: int, key: int) -> Work:
    """Those that give the same colour, by their keys and ranks."""

    def work(driver: Driver) -> CommState | None:
        given = (color, key, state.fresh_id())
        mine = _chosen(driver.group.allgather(given), state.names, color)
        theirs = None
        if state.remote is not None:
            theirs = _chosen(driver.allgather_objects(given), state.remote, color)
        if color == UNDEFINED:
            return None
        if theirs is None:
            return CommState(state.process, mine[1], mine[0])
        if not theirs[0]:
            return None
        return CommState(state.process, common_name(mine[1], theirs[1]), mine[0], theirs[0])

    return work


def _split_by_memory(state: CommState, split_type: int, key: int, info: Info) -> Work:
    """Those that share memory, if that is what is asked for: their colour is the first's rank."""
    color = UNDEFINED
    if split_type != UNDEFINED:
        near = shares_memory(state)
        wanted = {
            COMM_TYPE_SHARED: True,
            COMM_TYPE_HW_GUIDED: bool(info) and info.Get(RESOURCE) == SHARED_MEMORY,
            COMM_TYPE_RESOURCE_GUIDED: bool(info) and info.Get(RESOURCE) == SHARED_MEMORY,
            COMM_TYPE_HW_UNGUIDED: not all(near),
        }
        if split_type not in wanted:
            fail(ERR_ARG, f"{split_type} is no kind of parts: give one of COMM_TYPE_…", state)
        if wanted[split_type]:
            color = near.index(True)
    return split(state, color, key)


def _met(state: CommState, names: tuple[Name, ...], purpose: str) -> Work:
    """Those who meet for this purpose: nobody else has to come."""
    here = state.process
    return lambda _: CommState(here, meet(here.sfm, resolve(here.sfm, names), purpose), names)


# ---- parts ----


def _chosen(
    given: Sequence[tuple[int, int, str]], names: Sequence[Name], color: int
) -> tuple[tuple[Name, ...], str]:
    """Who has given this colour, by key and rank; and the name that the first of them gives."""
    found = sorted((one[1], rank) for rank, one in enumerate(given) if one[0] == color)
    ranks = [rank for _, rank in found]
    return tuple(names[rank] for rank in ranks), given[ranks[0]][2] if ranks else ""


def _mark(names: tuple[Name, ...]) -> str:
    return hashlib.blake2b(repr(names).encode(), digest_size=8).hexdigest()


def _check_members(state: CommState, names: tuple[Name, ...]) -> None:
    for name in names:
        if name not in state.names:
            fail(ERR_GROUP, f"{name!r} is in the group and not in the communicator", state)


def _hints(info: Info | None) -> dict[str, str]:
    return dict(info.items()) if info else {}
