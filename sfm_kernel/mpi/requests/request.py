"""Request: waiting for what is under way, and testing it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

from sfm_kernel.mpi.base.constants import ERR_REQUEST, UNDEFINED
from sfm_kernel.mpi.base.errors import Exception as MPIError
from sfm_kernel.mpi.base.errors import fail, report, translated
from sfm_kernel.mpi.base.handle import Handle
from sfm_kernel.mpi.engine.operation import Operation
from sfm_kernel.mpi.requests.many import (
    active_of,
    await_all,
    filled,
    poll,
    test_all,
    test_any,
    test_some,
    wait_all,
    wait_any,
    wait_some,
)
from sfm_kernel.mpi.requests.state import RequestState
from sfm_kernel.mpi.requests.status import Status


class Request(Handle[RequestState]):
    """What a call that does not wait gives back: to wait for its end later, or to test for it.

    A request that was waited for is null, and waiting for a null one returns at once. The calls in
    lower case also give the object that a pickled receive has got.

    What went wrong in the operation is raised by the call that finds its end.
    """

    __slots__ = ()

    _null_error = ERR_REQUEST

    @classmethod
    def _for(cls, operation: Operation, call: str = "") -> Self:
        """A request for an operation, which this call of MPI has begun."""
        operation.text = call or operation.text
        return cls._of(RequestState(operation))

    # ---- one ----

    def Wait(self, status: Status | None = None) -> Literal[True]:
        """Wait until the operation has ended."""
        self._waited(status, "Wait")
        return True

    def Test(self, status: Status | None = None) -> bool:
        """Whether the operation has ended; if so, as ``Wait``."""
        return self._tested(status)[0]

    def Get_status(self, status: Status | None = None) -> bool:
        """Whether the operation has ended; the request stays as it is."""
        operation = self._operation
        if operation is not None:
            poll([operation], "Get_status")
            if not operation.done:
                return False
        if status is not None:
            status._set_from(operation)
        return True

    def wait(self, status: Status | None = None) -> Any:
        """Wait until the operation has ended; the object that it has received, if any."""
        return self._waited(status, "wait")

    def _waited(self, status: Status | None, call: str) -> Any:
        operation = self._operation
        if operation is not None and not operation.done:
            await_all([operation], call)
        return self._end(status)

    def test(self, status: Status | None = None) -> tuple[bool, Any | None]:
        """Whether the operation has ended, and then what ``wait`` gives."""
        return self._tested(status)

    def _tested(self, status: Status | None) -> tuple[bool, Any | None]:
        operation = self._operation
        if operation is not None and not operation.done:
            poll([operation], "Test")
            if not operation.done:
                return False, None
        return True, self._end(status)

    def get_status(self, status: Status | None = None) -> bool:
        """As ``Get_status``."""
        return self.Get_status(status)

    # ---- many ----

    @classmethod
    def Waitany(cls, requests: Sequence[Request], status: Status | None = None) -> int:
        """Wait until one has ended; its index, or UNDEFINED if all are null or not started."""
        return wait_any(requests, status, "Waitany")[0]

    @classmethod
    def Testany(cls, requests: Sequence[Request], status: Status | None = None) -> tuple[int, bool]:
        """The index of one that has ended (or UNDEFINED), and whether there is one."""
        index, flag, _ = test_any(requests, status)
        return index, flag

    @classmethod
    def Waitall(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> Literal[True]:
        """Wait until all have ended."""
        wait_all(requests, statuses, "Waitall")
        return True

    @classmethod
    def Testall(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> bool:
        """Whether all have ended; if not, none of them is changed."""
        return test_all(requests, statuses)[0]

    @classmethod
    def Waitsome(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> list[int] | None:
        """Wait until one or more have ended; their indices, or None if none is under way."""
        return wait_some(requests, statuses, "Waitsome")[0]

    @classmethod
    def Testsome(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> list[int] | None:
        """The indices of those that have ended, or None if none is under way."""
        return test_some(requests, statuses)[0]

    @classmethod
    def waitany(cls, requests: Sequence[Request], status: Status | None = None) -> tuple[int, Any]:
        """As ``Waitany``, and the object."""
        return wait_any(requests, status, "waitany")

    @classmethod
    def testany(
        cls, requests: Sequence[Request], status: Status | None = None
    ) -> tuple[int, bool, Any | None]:
        """As ``Testany``, and the object."""
        return test_any(requests, status)

    @classmethod
    def waitall(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> list[Any]:
        """As ``Waitall``; the objects."""
        return wait_all(requests, statuses, "waitall")

    @classmethod
    def testall(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> tuple[bool, list[Any] | None]:
        """As ``Testall``, and the objects."""
        return test_all(requests, statuses)

    @classmethod
    def waitsome(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> tuple[list[int] | None, list[Any] | None]:
        """As ``Waitsome``, and the objects."""
        return wait_some(requests, statuses, "waitsome")

    @classmethod
    def testsome(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> tuple[list[int] | None, list[Any] | None]:
        """As ``Testsome``, and the objects."""
        return test_some(requests, statuses)

    @classmethod
    def Get_status_any(
        cls, requests: Sequence[Request], status: Status | None = None
    ) -> tuple[int, bool]:
        """As ``Testany``; the requests stay as they are."""
        active = active_of(requests)
        poll(list(active.values()), "Get_status_any")
        for index, operation in active.items():
            if operation.done:
                if status is not None:
                    status._set_from(operation)
                return index, True
        if status is not None and not active:
            status._set_from(None)
        return UNDEFINED, not active

    @classmethod
    def Get_status_all(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> bool:
        """As ``Testall``; the requests stay as they are."""
        active = active_of(requests)
        poll(list(active.values()), "Get_status_all")
        if not all(operation.done for operation in active.values()):
            return False
        for index, status in filled(statuses, len(requests)):
            status._set_from(active.get(index))
        return True

    @classmethod
    def Get_status_some(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> list[int] | None:
        """As ``Testsome``; the requests stay as they are."""
        active = active_of(requests)
        if not active:
            return None
        poll(list(active.values()), "Get_status_some")
        ended = [index for index, operation in active.items() if operation.done]
        for place, status in filled(statuses, len(ended)):
            status._set_from(active[ended[place]])
        return ended

    get_status_any = Get_status_any
    get_status_all = Get_status_all
    get_status_some = Get_status_some

    # ---- giving up ----

    def Cancel(self) -> None:
        """Give a receive up that has not got its message; waiting then returns at once.

        A send is not cancelled: its message is on its way.
        """
        state = self._live
        if state.operation is not None:
            state.operation.cancel()

    cancel = Cancel

    def Free(self) -> None:
        """Let go of the request; what it stands for goes on to its end."""
        if self._state is None:
            fail(ERR_REQUEST, "this request is null or has been waited for")
        self._state = None

    # ---- within ----

    @property
    def _operation(self) -> Operation | None:
        state = self._state
        return None if state is None else state.operation

    def _end(self, status: Status | None) -> Any:
        """The operation has ended, or there is none."""
        state = self._state
        operation = None if state is None else state.operation
        if status is not None:
            status._set_from(operation)
        if state is None or operation is None:
            return None
        if not state.keeps:
            self._state = None
        state.ended(operation)
        if operation.failure is not None:
            raise_from(operation)
        return operation.result


REQUEST_NULL = Request._constant("REQUEST_NULL")


def raise_from(operation: Operation) -> None:
    """Raise what an operation has failed with, through its communicator's error handler."""
    failure, comm = operation.failure, operation.comm
    assert failure is not None
    if isinstance(failure, MPIError):
        report(failure, comm)
    with translated(comm):
        raise failure
