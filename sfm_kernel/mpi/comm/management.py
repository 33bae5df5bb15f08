"""What a communicator is: its processes, name, hints, kind; and its end."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NoReturn

from sfm_kernel.mpi.base.constants import (
    CONGRUENT,
    ERR_COMM,
    ERR_INFO,
    IDENT,
    MAX_OBJECT_NAME,
    SIMILAR,
    UNDEFINED,
    UNEQUAL,
)
from sfm_kernel.mpi.base.errors import fail
from sfm_kernel.mpi.base.handle import Handle
from sfm_kernel.mpi.base.info import Info
from sfm_kernel.mpi.base.keyvals import HasAttributes
from sfm_kernel.mpi.comm.driver import blocking
from sfm_kernel.mpi.comm.groups import Group
from sfm_kernel.mpi.comm.plans import barrier
from sfm_kernel.mpi.engine.communicator import CommState
from sfm_kernel.mpi.engine.process import WORLD, current
from sfm_kernel.transport.base import Name

if TYPE_CHECKING:
    from sfm_kernel.mpi.comm.comm import Comm
    from sfm_kernel.mpi.comm.intercomm import Intercomm


class Management(HasAttributes, Handle[CommState]):
    """What a communicator is, and its end. Nothing here blocks but Disconnect."""

    __slots__ = ()

    # ---- who ----

    def Get_size(self) -> int:
        """How many processes it has; of an intercommunicator, the local group."""
        return self._live.size

    @property
    def size(self) -> int:
        """How many processes it has; of an intercommunicator, the local group."""
        return self._live.size

    def Get_rank(self) -> int:
        """This process's rank: 0 … size - 1."""
        return self._live.rank

    @property
    def rank(self) -> int:
        """This process's rank: 0 … size - 1."""
        return self._live.rank

    def Get_group(self) -> Group:
        """Its processes; of an intercommunicator, the local ones."""
        return Group._of_names(self._live.names)

    @property
    def group(self) -> Group:
        """Its processes; of an intercommunicator, the local ones."""
        return self.Get_group()

    def Compare(self, comm: Comm) -> int:
        """How two communicators differ.

        Returns:
            IDENT: they are the same; CONGRUENT: the same processes in the same order; SIMILAR: in
            another order; UNEQUAL: other processes, or another kind.
        """
        mine, other = self._live, comm._live
        if mine is other:
            return IDENT
        if (mine.remote is None) != (other.remote is None):
            return UNEQUAL
        groups = [(mine.names, other.names), (mine.remote or (), other.remote or ())]
        if all(one == another for one, another in groups):
            return CONGRUENT
        alike = all(set(one) == set(another) for one, another in groups)
        return SIMILAR if alike else UNEQUAL

    # ---- what kind ----

    def Is_inter(self) -> bool:
        """Whether it connects two groups."""
        return self._live.remote is not None

    @property
    def is_inter(self) -> bool:
        """Whether it connects two groups."""
        return self.Is_inter()

    def Is_intra(self) -> bool:
        """Whether it has one group."""
        return not self.Is_inter()

    @property
    def is_intra(self) -> bool:
        """Whether it has one group."""
        return self.Is_intra()

    def Get_topology(self) -> int:
        """CART, GRAPH or DIST_GRAPH; UNDEFINED if nobody is anybody's neighbour."""
        topology = self._live.topology
        return UNDEFINED if topology is None else topology.kind

    @property
    def topology(self) -> int:
        """CART, GRAPH or DIST_GRAPH; UNDEFINED if nobody is anybody's neighbour."""
        return self.Get_topology()

    @property
    def is_topo(self) -> bool:
        """Whether it says who is whose neighbour."""
        return self.Get_topology() != UNDEFINED

    @classmethod
    def Get_parent(cls) -> Intercomm:
        """The communicator with the processes that started this one: null, for none did."""
        from sfm_kernel.mpi.comm.intercomm import Intercomm

        return Intercomm._of(None)

    # ---- name and hints ----

    def Get_name(self) -> str:
        """Its name, for people; empty if it was given none."""
        return "MPI_COMM_NULL" if self._state is None else self._live.name

    def Set_name(self, name: str) -> None:
        """Name it, on this process. What is longer than MAX_OBJECT_NAME - 1 is cut off."""
        self._live.name = str(name)[: MAX_OBJECT_NAME - 1]

    @property
    def name(self) -> str:
        """Its name, for people; empty if it was given none."""
        return self.Get_name()

    @name.setter
    def name(self, value: str) -> None:
        self.Set_name(value)

    def Set_info(self, info: Info) -> None:
        """Give hints; others that were given before stay. They are kept, and change nothing."""
        state = self._live
        if not info:
            fail(ERR_INFO, "INFO_NULL holds no hints: give an Info from Info.Create()", self)
        state.info = {**(state.info or {}), **dict(info.items())}

    def Get_info(self) -> Info:
        """The hints that were given, as an Info of their own."""
        return Info.Create(self._live.info or {})

    @property
    def info(self) -> Info:
        """The hints that were given, as an Info of their own."""
        return self.Get_info()

    @info.setter
    def info(self, value: Info) -> None:
        self.Set_info(value)

    # ---- the end ----

    def Free(self) -> None:
        """Give the communicator up, and make this handle null. All members call it.

        What was sent is still received by receives that were begun before. Does not wait for the
        others.
        Raises:
            Exception: ERR_COMM: it is COMM_WORLD or COMM_SELF, which last.
        """
        state = self._live
        self._refuse_lasting("freed")
        self._delete_attributes()
        state.free()
        self._state = None

    def Disconnect(self) -> None:
        """As ``Free``; blocks until all members have come here."""
        self._live  # noqa: B018 - raises where the handle is null
        self._refuse_lasting("disconnected")
        blocking(self, barrier)
        self.Free()

    def Abort(self, errorcode: int = 0) -> NoReturn:
        """End the whole job, with this exit status; nothing more of the program is run.

        In a notebook's engine, and in a process of ``sfm_kernel.run``, which are not the program's
        to end, it raises SystemExit: that ends the cell, or the run, and not the engine.
        """
        from sfm_kernel.mpi.launch.rank import abort

        here = current()
        if here is not None and not here.own:
            raise SystemExit(errorcode)
        if here is not None and WORLD not in os.environ:  # alone, and nobody else clears up
            here.sfm.close()
        abort(errorcode)

    def _refuse_lasting(self, what: str) -> None:
        if self._is_predefined:
            fail(ERR_COMM, f"{self.Get_name()} lasts as long as MPI: it cannot be {what}", self)


def shares_memory(state: CommState) -> list[bool]:
    """For each rank, whether this process and that one share memory."""
    sfm = state.process.sfm
    near: dict[Name, bool] = {one.name: sfm.shares_memory_with(one) for one in sfm.members()}
    return [near.get(name, False) for name in state.names]
