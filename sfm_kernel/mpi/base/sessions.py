"""Session: a use of MPI by one part of a program, which names sets of processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from sfm_kernel.mpi.base.buffered import Attached, HasBuffer, sessions
from sfm_kernel.mpi.base.constants import ERR_ARG, ERR_SESSION
from sfm_kernel.mpi.base.errhandler import Errhandler, ErrhandlerState, HasErrhandler
from sfm_kernel.mpi.base.errors import fail
from sfm_kernel.mpi.base.handle import Handle
from sfm_kernel.mpi.base.info import INFO_NULL, Info

if TYPE_CHECKING:
    from sfm_kernel.mpi.comm.groups import Group

WORLD, SELF = "mpi://WORLD", "mpi://SELF"
"""The sets of processes: all of the job, and this one alone."""


class SessionState:
    """What the handles of a session share: its hints, error handler, and attached buffer."""

    def __init__(self, hints: dict[str, str], errhandler: ErrhandlerState | None) -> None:
        self.hints, self.errhandler = hints, errhandler
        self.attached: Attached | None = None
        sessions.add(self)


class Session(HasBuffer, HasErrhandler, Handle[SessionState]):
    """A use of MPI by one part of a program.

    It names sets of processes, of which groups and then communicators can be made, without
    COMM_WORLD.
    """

    __slots__ = ()
    _null_error = ERR_SESSION
    _free_call = "Finalize"

    @classmethod
    def Init(cls, info: Info = INFO_NULL, errhandler: Errhandler | None = None) -> Self:
        """A new session, with these hints, which change nothing."""
        handler = None if errhandler is None else errhandler._live
        return cls._of(SessionState(dict(info.items()), handler))

    def Finalize(self) -> None:
        """End the session. Blocks until the messages in its attached buffer were received."""
        if self._live.attached is not None:
            self.Detach_buffer()
        self._state = None

    def Get_num_psets(self, info: Info = INFO_NULL) -> int:
        """How many sets of processes there are."""
        return len(self._psets())

    def Get_nth_pset(self, n: int, info: Info = INFO_NULL) -> str:
        """The name of the set with this number, from 0."""
        names = self._psets()
        if not 0 <= n < len(names):
            fail(ERR_ARG, f"there is no set number {n}: the sets are {names}", self)
        return names[n]

    def Get_info(self) -> Info:
        """The hints of the session, as an Info of their own."""
        return Info.Create(self._live.hints)

    def Get_pset_info(self, pset_name: str) -> Info:
        """What is known of a set: its size, as "mpi_size"."""
        return Info.Create({"mpi_size": str(self.Create_group(pset_name).Get_size())})

    def Create_group(self, pset_name: str) -> Group:
        """The group of the processes of a set.

        Raises:
            Exception: ERR_ARG: there is no such set.
        """
        from sfm_kernel.mpi.comm.groups import Group  # it imports this package

        self._live  # noqa: B018  # raises where the session is null
        return Group.Create_from_session_pset(self, pset_name)

    def _psets(self) -> list[str]:
        self._live  # noqa: B018  # raises where the session is null
        return [WORLD, SELF]


SESSION_NULL = Session._constant("SESSION_NULL")
