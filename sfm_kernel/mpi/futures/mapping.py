"""``map`` and ``starmap``: many calls, and their results one after another."""

from __future__ import annotations

import functools
import itertools
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, as_completed
from typing import Any


def starmap(
    executor: Executor,
    function: Callable[..., Any],
    tuples: Iterable[Iterable[Any]],
    timeout: float | None,
    chunksize: int,
    buffersize: int | None,
    unordered: bool,
) -> Iterator[Any]:
    """Submit the calls, and return their results as an iterator; see ``MPIPoolExecutor.starmap``.

    The first ``buffersize`` calls, or all, are submitted before it returns.
    """
    if chunksize < 1:
        raise ValueError(f"chunksize is a number of calls, 1 or more, not {chunksize!r}")
    if buffersize is not None:
        if not isinstance(buffersize, int):
            raise TypeError(f"buffersize is a number of calls, or None, not {buffersize!r}")
        if buffersize < 1:
            raise ValueError(f"buffersize is a number of calls, 1 or more, not {buffersize}")
        if unordered:
            raise ValueError("buffersize needs results in order: leave one of the two away")
    if chunksize > 1:
        function, tuples = functools.partial(_call_all, function), _chunks(tuples, chunksize)
    deadline = None if timeout is None else time.monotonic() + timeout
    waiting = iter(tuples)
    first = waiting if buffersize is None else itertools.islice(waiting, buffersize)
    futures = deque(executor.submit(function, *arguments) for arguments in first)
    if unordered:
        results = _as_they_come(set(futures), deadline)
    elif buffersize is None:
        results = _in_order(futures, deadline, lambda: ())
    else:

        def submit_one() -> Iterable[Future[Any]]:
            return [executor.submit(function, *one) for one in itertools.islice(waiting, 1)]

        results = _in_order(futures, deadline, submit_one)
    return results if chunksize == 1 else itertools.chain.from_iterable(results)


def _call_all(function: Callable[..., Any], *chunk: Iterable[Any]) -> list[Any]:
    return list(itertools.starmap(function, chunk))


def _chunks(tuples: Iterable[Any], size: int) -> Iterator[tuple[Any, ...]]:
    remaining = iter(tuples)
    while chunk := tuple(itertools.islice(remaining, size)):
        yield chunk


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else deadline - time.monotonic()


def _in_order(
    futures: deque[Future[Any]],
    deadline: float | None,
    submit_more: Callable[[], Iterable[Future[Any]]],
) -> Iterator[Any]:
    try:
        while futures:
            # Nothing here refers to a future, or to its result, while the caller has it.
            result = [_result(futures.popleft(), deadline)]
            futures.extend(submit_more())
            yield result.pop()
    finally:
        _cancel(futures)


def _as_they_come(futures: set[Future[Any]], deadline: float | None) -> Iterator[Any]:
    try:
        for future in as_completed(futures, _left(deadline)):
            futures.remove(future)
            result = [future.result()]
            del future
            yield result.pop()
    finally:
        _cancel(futures)


def _result(future: Future[Any], deadline: float | None) -> Any:
    try:
        return future.result(_left(deadline))
    finally:
        future.cancel()  # where time was over


def _cancel(futures: Iterable[Future[Any]]) -> None:
    for future in futures:
        future.cancel()
