"""Intercomm: communicators between two groups."""

from __future__ import annotations

from typing import Any

from sfm_kernel.collectives.meeting import meet, resolve
from sfm_kernel.mpi.base.constants import ERR_GROUP, ERR_RANK
from sfm_kernel.mpi.base.errhandler import Errhandler
from sfm_kernel.mpi.base.errors import fail, translated
from sfm_kernel.mpi.base.info import INFO_NULL, Info
from sfm_kernel.mpi.comm.comm import Comm, Intracomm
from sfm_kernel.mpi.comm.creation import agree
from sfm_kernel.mpi.comm.driver import Driver, Work, blocking
from sfm_kernel.mpi.comm.groups import Group
from sfm_kernel.mpi.comm.intercomm_creation import check_apart
from sfm_kernel.mpi.engine.communicator import CommState
from sfm_kernel.mpi.engine.process import process
from sfm_kernel.transport.base import Name


class Intercomm(Comm):
    """A communicator between two groups of processes.

    Messages go to the other group, the *remote* one, whose ranks are meant wherever a call takes a
    rank. In collectives with a root, that one gives ROOT, the others of its group PROC_NULL, and
    the processes of the other group the root's rank.
    """

    __slots__ = ()

    @classmethod
    def _fits(cls, state: CommState) -> bool:
        return state.remote is not None

    @classmethod
    def Create_from_groups(
        cls,
        local_group: Group,
        local_leader: int,
        remote_group: Group,
        remote_leader: int,
        stringtag: str = "org.mpi4py",
        info: Info = INFO_NULL,
        errhandler: Errhandler | None = None,
    ) -> Intercomm:
        """An intercommunicator of two groups. Blocks until all of their processes are here.

        Args:
            local_leader, remote_leader: ranks in these groups; who leads makes no difference.
            stringtag: tells calls with the same groups apart.
            info: hints for it.
            errhandler: its error handler.
        Raises:
            Exception: ERR_GROUP: this process is not in ``local_group``; ERR_RANK: there is no such
                leader; ERR_COMM: a process is in both groups.
        """
        here, local, remote = process(), local_group._live.names, remote_group._live.names
        if here.sfm.name not in local:
            text = f"{here.sfm.name!r} is not in local_group: only its members make the call"
            fail(ERR_GROUP, text)
        for names, leader in ((local, local_leader), (remote, remote_leader)):
            if not 0 <= leader < len(names):
                fail(ERR_RANK, f"{leader} is no rank of a group of {len(names)} processes")
        check_apart(local, remote)
        first, second = (local, remote) if _comes_first(local, remote) else (remote, local)
        purpose = f"mpi from groups {len(first)} {stringtag}"
        with translated():
            cid = meet(here.sfm, resolve(here.sfm, (*first, *second)), purpose)
        made = CommState(here, cid, local, remote)
        made.info = dict(info.items()) if info else {}
        if errhandler is not None:
            made.errhandler = errhandler._live
        return cls._of(made)

    def Get_remote_group(self) -> Group:
        """The processes of the other group."""
        return Group._of_names(_remote(self._live))

    @property
    def remote_group(self) -> Group:
        """The processes of the other group."""
        return self.Get_remote_group()

    def Get_remote_size(self) -> int:
        """How many processes the other group has."""
        return len(_remote(self._live))

    @property
    def remote_size(self) -> int:
        """How many processes the other group has."""
        return self.Get_remote_size()

    def Merge(self, high: bool = False) -> Intracomm:
        """An intracommunicator of both groups. Blocks until all processes have called it.

        Args:
            high: the ranks of the group that says true come after those of the other; alike on all
                of a group. Where both say the same, one group of the two comes first, which all
                processes take alike.
        """
        return Intracomm._of(blocking(self, _merged, bool(high)))


def _merged(state: CommState, high: bool) -> Work:
    def work(driver: Driver) -> CommState:
        cid, theirs = agree(driver), driver.allgather_objects(high)[0]
        remote = _remote(state)
        first = theirs if high != theirs else _comes_first(state.names, remote)
        names = (*state.names, *remote) if first else (*remote, *state.names)
        return CommState(state.process, f"{cid} merged", names)

    return work


def _remote(state: CommState) -> tuple[Name, ...]:
    assert state.remote is not None
    return state.remote


def _comes_first(one: tuple[Name, ...], other: tuple[Name, ...]) -> bool:
    """Which of two groups comes first, for both of them alike. Names are numbers or texts."""
    return _order(one[0]) < _order(other[0])


def _order(name: Name) -> tuple[bool, Any]:
    return (isinstance(name, str), name)
