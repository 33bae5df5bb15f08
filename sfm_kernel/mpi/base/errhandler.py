"""Error handlers: what happens, before it is raised, with an error of MPI.

Every error raises ``MPI.Exception``. A communicator, session, window or file has a handler that is
told of its errors first: by default that is ERRORS_RETURN, which does nothing. A function of the
program is called with the communicator (…) and the code; then the error is raised as well, so that
no call that has failed looks like one that has not. ERRORS_ARE_FATAL ends all processes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from sfm_kernel.mpi.base.constants import ERR_ERRHANDLER
from sfm_kernel.mpi.base.errors import Exception as MPIError
from sfm_kernel.mpi.base.errors import fail
from sfm_kernel.mpi.base.handle import Handle
from sfm_kernel.mpi.base.options import option

MOST = 32
"""How many handlers of one kind may exist at a time; mpi4py's limit, which programs rely on."""

ErrhandlerFunction = Callable[[Any, int], None]


class ErrhandlerState:
    """What an error is given to.

    Args:
        function: called with a handle of ``kind`` and the code.
        kind: Comm, Session, Win or File; None fits all.
    """

    def __init__(self, function: ErrhandlerFunction, kind: type[Handle[Any]] | None = None) -> None:
        self.function, self.kind = function, kind

    def _handle(self, handle: Any, error: MPIError) -> None:
        """Tell it of an error of a handle, or of the state of one."""
        if self.kind is not None and not isinstance(handle, Handle):
            handle = self.kind._wrap(handle)
        self.function(handle, int(error))


class Errhandler(Handle[ErrhandlerState]):
    """Error handler."""

    __slots__ = ()
    _null_error = ERR_ERRHANDLER

    def Free(self) -> None:
        """Make this handle null. What uses the handler goes on using it."""
        state = self._live
        _created.discard(state)
        if self._named()[0] is not self:
            self._state = None


def _ignore(handle: Any, code: int) -> None:
    return None


class _Aborting(ErrhandlerState):
    """Ends all processes."""

    def __init__(self) -> None:
        super().__init__(_ignore)

    def _handle(self, handle: Any, error: MPIError) -> None:
        from sfm_kernel.mpi import MPI  # it imports this module

        sys.stderr.write(f"MPI: aborting, as the error handler demands: {error}\n")
        comm = handle if isinstance(handle, MPI.Comm) else MPI.COMM_WORLD
        comm.Abort(int(error))


_created: WeakSet[ErrhandlerState] = WeakSet()

ERRHANDLER_NULL = Errhandler._constant("ERRHANDLER_NULL")
ERRORS_RETURN = Errhandler._constant("ERRORS_RETURN", ErrhandlerState(_ignore))
ERRORS_ABORT = Errhandler._constant("ERRORS_ABORT", _Aborting())
ERRORS_ARE_FATAL = Errhandler._constant("ERRORS_ARE_FATAL", _Aborting())

_BY_OPTION = {"abort": ERRORS_ABORT, "fatal": ERRORS_ARE_FATAL, "default": ERRORS_ARE_FATAL}
"""``mpi4py.rc.errors``: "exception" is ERRORS_RETURN."""


def default() -> ErrhandlerState:
    """The handler of what was given none."""
    return _BY_OPTION.get(option("errors"), ERRORS_RETURN)._live


class HasErrhandler:
    """Part of the handles whose state has an ``errhandler``: None, or what was set."""

    __slots__ = ()

    @classmethod
    def Create_errhandler(cls, errhandler_fn: Callable[[Any, int], None]) -> Errhandler:
        """A handler that calls a function with the handle (communicator, …) and the error's code.

        Raises:
            RuntimeError: 32 of them exist: free one.
        """
        kind: type[Handle[Any]] = cls._kind  # type: ignore[attr-defined]
        if sum(one.kind is kind for one in _created) >= MOST:
            raise RuntimeError(
                f"{MOST} error handlers of {kind.__name__} exist: free those that are not needed "
                f"(Errhandler.Free)"
            )
        state = ErrhandlerState(errhandler_fn, kind)
        _created.add(state)
        return Errhandler._of(state)

    def Get_errhandler(self) -> Errhandler:
        """A new handle of the handler that is set."""
        state: Any = self._live  # type: ignore[attr-defined]
        return Errhandler._of(state.errhandler or default())

    def Set_errhandler(self, errhandler: Errhandler) -> None:
        """Let errors be given to this handler from now on."""
        state: Any = self._live  # type: ignore[attr-defined]
        if not isinstance(errhandler, Errhandler):
            raise TypeError(f"an error handler is an Errhandler, not {errhandler!r}")
        new = errhandler._state
        if new is None or new.kind not in (None, self._kind):  # type: ignore[attr-defined]
            kind = self._kind.__name__  # type: ignore[attr-defined]
            fail(
                ERR_ERRHANDLER,
                f"this is no error handler of a {kind}: give ERRORS_RETURN, or one that "
                f"{kind}.Create_errhandler has made",
                self,
            )
        state.errhandler = new

    def Call_errhandler(self, errorcode: int) -> None:
        """Give a code to the handler that is set. Nothing is raised."""
        state: Any = self._live  # type: ignore[attr-defined]
        (state.errhandler or default())._handle(self, MPIError(errorcode))
