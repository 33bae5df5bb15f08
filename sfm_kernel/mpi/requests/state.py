"""What stands behind a request."""

from __future__ import annotations

from collections.abc import Callable

from sfm_kernel.mpi.engine.operation import Operation


class RequestState:
    """One operation. A request whose operation was waited for is null.

    Attributes:
        operation: what is under way, or is done and was not waited for; None for a persistent
            request that is not started.
        keeps: the request stays when its operation was waited for: it can be started again.
    """

    __slots__ = ("__weakref__", "operation")

    keeps = False

    def __init__(self, operation: Operation | None) -> None:
        self.operation = operation

    def ended(self, operation: Operation) -> None:
        """It was waited for; for those who have something to do then."""


class Persistent(RequestState):
    """Started again and again.

    Args:
        begin: starts one round, and gives its operation.
    """

    __slots__ = ("begin",)

    keeps = True

    def __init__(self, begin: Callable[[], Operation]) -> None:
        super().__init__(None)
        self.begin = begin

    def ended(self, operation: Operation) -> None:
        self.operation = None
