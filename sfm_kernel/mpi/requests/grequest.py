"""Grequest: an operation that the program itself carries out and completes."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from sfm_kernel.mpi.base.constants import ERR_OTHER, ERR_REQUEST
from sfm_kernel.mpi.base.errors import Exception as MPIError
from sfm_kernel.mpi.base.errors import fail
from sfm_kernel.mpi.engine.operation import Operation
from sfm_kernel.mpi.engine.process import process
from sfm_kernel.mpi.requests.request import Request
from sfm_kernel.mpi.requests.state import RequestState
from sfm_kernel.mpi.requests.status import Status

Function = Callable[..., None]


class _Generalized(Operation):
    """An operation of the program: what it says is asked of its functions."""

    __slots__ = ("_arguments", "_cancel", "_free", "_query")

    def __init__(
        self,
        query: Function | None,
        free: Function | None,
        cancel: Function | None,
        arguments: tuple[tuple[Any, ...], dict[str, Any]],
    ) -> None:
        super().__init__(process().engine, "Wait for a generalized request")
        self._query, self._free, self._cancel = query, free, cancel
        self._arguments = arguments

    def ask(self) -> None:
        """Fill in what the status says."""
        if self._query is None:
            return
        status = Status()
        self._call(self._query, status)
        self.settle(status.source, status.tag, status.count)
        self.cancelled = status.cancelled and self._cancel is not None

    def cancel(self) -> None:
        if self._cancel is not None:
            self._call(self._cancel, self.done)

    def free(self) -> None:
        """Nobody refers to it any more."""
        if self._free is not None:
            self._call(self._free)

    def _call(self, function: Function, *arguments: Any) -> None:
        args, kwargs = self._arguments
        try:
            function(*arguments, *args, **kwargs)
        except MPIError as error:
            traceback.print_exc(file=sys.stderr)
            raise MPIError(int(error), error.Get_error_string()) from error
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            what = f"a function of a generalized request raised {error!r}"
            raise MPIError(ERR_OTHER, what) from error


class GeneralizedState(RequestState):
    """Asks when the operation has ended, and frees."""

    __slots__ = ()

    def ended(self, operation: Operation) -> None:
        assert isinstance(operation, _Generalized)
        operation.free()


class Grequest(Request):
    """A request that the program completes: ``Start`` makes it, ``Complete`` ends it."""

    __slots__ = ()

    def __new__(cls, request: Request | None = None) -> Self:
        if request is not None:
            state = getattr(request, "_state", None)
            if not isinstance(request, Request) or not isinstance(state, GeneralizedState | None):
                raise TypeError(f"Grequest() takes a generalized request or None, not {request!r}")
        return super().__new__(cls, request)

    @classmethod
    def Start(
        cls,
        query_fn: Function | None = None,
        free_fn: Function | None = None,
        cancel_fn: Function | None = None,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> Grequest:
        """A new one.

        Args:
            query_fn: called with the status, to fill it in, when the request is waited for.
            free_fn: called when the request has been waited for or freed.
            cancel_fn: called by ``Cancel`` with whether the request is complete.
            args, kwargs: for all three.
        """
        arguments = (
            () if args is None else tuple(args),
            {} if kwargs is None else dict(kwargs),
        )
        return cls._of(GeneralizedState(_Generalized(query_fn, free_fn, cancel_fn, arguments)))

    def Complete(self) -> None:
        """The operation has ended."""
        self.complete()

    def complete(self, obj: Any = None) -> None:
        """The operation has ended; ``obj`` is what ``wait`` gives."""
        operation = self._live.operation
        if not isinstance(operation, _Generalized):
            fail(ERR_REQUEST, "this is no generalized request")
        operation.result = obj
        operation.finish()

    def Free(self) -> None:
        operation = self._live.operation
        super().Free()
        if isinstance(operation, _Generalized):
            operation.free()

    def _end(self, status: Status | None) -> Any:
        operation = self._operation
        if isinstance(operation, _Generalized):
            operation.ask()
        return super()._end(status)
