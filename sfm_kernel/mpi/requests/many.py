"""Waiting for many requests, and testing them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sfm_kernel.mpi.base.constants import UNDEFINED
from sfm_kernel.mpi.base.errors import translated
from sfm_kernel.mpi.engine.operation import Operation, waited_for
from sfm_kernel.mpi.engine.progress import Engine
from sfm_kernel.mpi.requests.status import Status

if TYPE_CHECKING:
    from sfm_kernel.mpi.requests.request import Request

Statuses = list[Status] | None


def wait_any(requests: Sequence[Request], status: Status | None, call: str) -> tuple[int, Any]:
    """``Request.waitany``. ``call`` is what the program has written, here and below."""
    active = active_of(requests)
    if active and not any(operation.done for operation in active.values()):
        await_all(list(active.values()), call, some=True)
    index, _, value = _end_any(requests, active, status)
    return index, value


def test_any(requests: Sequence[Request], status: Status | None) -> tuple[int, bool, Any]:
    """``Request.testany``."""
    active = active_of(requests)
    poll(list(active.values()), "Testany")
    return _end_any(requests, active, status)


def wait_all(requests: Sequence[Request], statuses: Statuses, call: str) -> list[Any]:
    """``Request.waitall``."""
    await_all(list(active_of(requests).values()), call)
    return _end_all(requests, range(len(requests)), statuses)


def test_all(requests: Sequence[Request], statuses: Statuses) -> tuple[bool, list[Any] | None]:
    """``Request.testall``."""
    active = list(active_of(requests).values())
    poll(active, "Testall")
    if not all(operation.done for operation in active):
        return False, None
    return True, _end_all(requests, range(len(requests)), statuses)


def wait_some(
    requests: Sequence[Request], statuses: Statuses, call: str
) -> tuple[list[int] | None, list[Any] | None]:
    """``Request.waitsome``."""
    active = active_of(requests)
    if active and not any(operation.done for operation in active.values()):
        await_all(list(active.values()), call, some=True)
    return _end_some(requests, active, statuses)


def test_some(
    requests: Sequence[Request], statuses: Statuses
) -> tuple[list[int] | None, list[Any] | None]:
    """``Request.testsome``."""
    active = active_of(requests)
    poll(list(active.values()), "Testsome")
    return _end_some(requests, active, statuses)


def await_all(operations: list[Operation], call: str, some: bool = False) -> None:
    """Wait until all are done; with ``some``, until one is."""
    engine = _engine(operations)
    if engine is not None:
        with translated(operations[0].comm):
            engine.wait(operations, waited_for(call, operations), some)


def poll(operations: list[Operation], call: str) -> None:
    """Move on what can move on, in this call."""
    engine = _engine(operations)
    if engine is not None:
        engine.poll(operations, call)


def active_of(requests: Sequence[Request]) -> dict[int, Operation]:
    """Those under way, by index."""
    found = ((index, request._operation) for index, request in enumerate(requests))
    return {index: operation for index, operation in found if operation is not None}


def filled(statuses: Statuses, count: int) -> list[tuple[int, Status]]:
    """The statuses to fill. A list gets as many as are needed, as in mpi4py."""
    if statuses is None:
        return []
    if isinstance(statuses, list):
        statuses += [Status() for _ in range(count - len(statuses))]
    return list(enumerate(statuses))[:count]


def _engine(operations: Sequence[Operation]) -> Engine | None:
    return next((one.engine for one in operations if one.engine is not None), None)


def _end_any(
    requests: Sequence[Request], active: dict[int, Operation], status: Status | None
) -> tuple[int, bool, Any]:
    for index, operation in active.items():
        if operation.done:
            return index, True, requests[index]._end(status)
    if status is not None and not active:
        status._set_from(None)
    return UNDEFINED, not active, None


def _end_all(requests: Sequence[Request], which: Sequence[int], statuses: Statuses) -> list[Any]:
    """End them all; then raise what the first of those that failed has failed with."""
    places = dict(filled(statuses, len(which)))
    values: list[Any] = []
    failed: Exception | None = None
    for place, index in enumerate(which):
        try:
            values.append(requests[index]._end(places.get(place)))
        except Exception as failure:  # noqa: BLE001 - the others end first
            failed = failed or failure
    if failed is not None:
        raise failed
    return values


def _end_some(
    requests: Sequence[Request], active: dict[int, Operation], statuses: Statuses
) -> tuple[list[int] | None, list[Any] | None]:
    if not active:
        return None, None
    ended = [index for index, operation in active.items() if operation.done]
    return ended, _end_all(requests, ended, statuses)
