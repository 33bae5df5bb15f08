"""Futures made of futures."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

__all__ = ["collect", "compose"]


def collect(fs: Iterable[Future[Any]]) -> Future[list[Any]]:
    """A future whose result is the list of the results of ``fs``.

    It fails as soon as one of them fails, and is cancelled when one is cancelled. When it is done
    before all of them are, the others are cancelled.
    """
    futures = list(fs)
    if not futures:
        empty: Future[list[Any]] = Future()
        empty.set_result([])
        return empty
    return _Collection(futures).whole


class _Collection:
    def __init__(self, futures: list[Future[Any]]) -> None:
        self._futures, self._missing = futures, set(futures)
        self._lock, self._settled = threading.RLock(), False
        self.whole: Future[list[Any]] = type(futures[0])()
        self.whole.add_done_callback(self._whole_is_done)
        for future in list(self._missing):
            future.add_done_callback(self._one_is_done)

    def _one_is_done(self, future: Future[Any]) -> None:
        with self._lock:
            self._missing.discard(future)
            if self._settled:
                return
            if future.cancelled():
                self.whole.cancel()
            elif (error := future.exception()) is not None:
                self._settle(lambda: self.whole.set_exception(error))
            elif not self._missing:
                results = [one.result() for one in self._futures]
                self._settle(lambda: self.whole.set_result(results))

    def _settle(self, how: Callable[[], None]) -> None:
        self._settled = True
        if self.whole.set_running_or_notify_cancel():
            how()

    def _whole_is_done(self, whole: Future[list[Any]]) -> None:
        with self._lock:
            if not self._settled:
                self._settled = True
                whole.set_running_or_notify_cancel()
        for future in self._futures:
            future.cancel()


def compose(
    future: Future[Any],
    resulthook: Callable[[Any], Any] | None = None,
    excepthook: Callable[[BaseException], Any] | None = None,
) -> Future[Any]:
    """A future for what the hooks make of the outcome of ``future``.

    Args:
        resulthook: called with the result; what it returns is the new result.
        excepthook: called with the error; what it returns is the new error if it is an exception,
            and the result otherwise.
    A hook that raises makes the new future fail; without a hook the outcome is passed on. If one
    of the two futures is cancelled, so is the other.
    """
    composed: Future[Any] = type(future)()

    def cancelled(new: Future[Any]) -> None:
        if new.cancelled():
            new.set_running_or_notify_cancel()
            future.cancel()

    def done(old: Future[Any]) -> None:
        if old.cancelled():
            composed.cancel()
            return
        error = old.exception()
        try:
            if error is None:
                result = old.result()
                composed.set_result(result if resulthook is None else resulthook(result))
                return
            outcome = error if excepthook is None else excepthook(error)
            if isinstance(outcome, BaseException):
                composed.set_exception(outcome)
            else:
                composed.set_result(outcome)
        except BaseException as raised:  # noqa: BLE001 - whatever a hook raises
            composed.set_exception(raised)

    composed.add_done_callback(cancelled)
    future.add_done_callback(done)
    return composed
