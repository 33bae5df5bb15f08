"""Operations: what requests wait for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from sfm_kernel.mpi.base.constants import ANY_SOURCE, ANY_TAG
from sfm_kernel.transport.base import Name

if TYPE_CHECKING:
    from sfm_kernel.mpi.comm.worker import Worker
    from sfm_kernel.mpi.engine.progress import Engine


class Operation:
    """Something under way, which is done once.

    Attributes:
        done: whether it has ended; nothing below changes afterwards.
        failure: what it ended with, raised by whoever waits for it.
        source, tag, count, cancelled: what the status says; count in bytes, or a function that
            finds it out.
        result: what ``wait`` gives: the object of a pickled receive.
        text: the call of MPI that has begun it, for observers.
        comm: the communicator whose error handler is asked, if any.
        sends: whoever waits for it waits until others have received.
        helper: the thread that carries it out, if one does.
    """

    sends: ClassVar[bool] = False

    __slots__ = (
        "cancelled",
        "comm",
        "count",
        "done",
        "engine",
        "failure",
        "helper",
        "result",
        "source",
        "tag",
        "text",
    )

    def __init__(self, engine: Engine | None = None, text: str = "", comm: Any = None) -> None:
        self.engine, self.text, self.comm = engine, text, comm
        self.done = self.cancelled = False
        self.failure: BaseException | None = None
        self.source, self.tag = ANY_SOURCE, ANY_TAG
        self.count: int | Callable[[], int] = 0
        self.result: Any = None
        self.helper: Worker | None = None

    def finish(self, failure: BaseException | None = None) -> None:
        """It has ended. From any thread; wakes who waits for it."""
        self.failure = failure
        self.done = True
        if self.engine is not None:
            self.engine.wake()

    def peers(self) -> Iterable[Name]:
        """Without whom it can never be done."""
        return ()

    def wanted(self) -> tuple[dict[str, Any], int]:
        """For observers: which message it waits for, and in which space; 0 if for none."""
        return {}, 0

    def cancel(self) -> None:
        """Give it up, if nothing has happened yet."""

    def lost(self, failure: BaseException) -> None:
        """One of its peers has died."""
        self.finish(failure)

    def settle(self, source: int, tag: int, count: int | Callable[[], int]) -> None:
        """What the status will say."""
        self.source, self.tag, self.count = source, tag, count


def waited_for(call: str, operations: Iterable[Operation]) -> str:
    """What observers are told of a call that waits for these: "Waitall (Isend, Irecv)"."""
    begun = dict.fromkeys(one.text for one in operations if one.text and not one.done)
    return f"{call} ({', '.join(begun)})" if begun else call


def finished(source: int = ANY_SOURCE, tag: int = ANY_TAG, count: int = 0) -> Operation:
    """An operation that is done."""
    operation = Operation()
    operation.settle(source, tag, count)
    operation.done = True
    return operation
