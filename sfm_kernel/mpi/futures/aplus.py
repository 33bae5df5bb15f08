"""Futures with ``then`` and ``catch``, as promises have them.

Source: the Promises/A+ specification.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

OnSuccess = Callable[[Any], Any] | None
OnFailure = Callable[[BaseException], Any] | None


class ThenableFuture(Future[Any]):
    """A future with ``then`` and ``catch``."""

    def then(self, on_success: OnSuccess = None, on_failure: OnFailure = None) -> Future[Any]:
        """``then(self, on_success, on_failure)``."""
        return then(self, on_success, on_failure)

    def catch(self, on_failure: OnFailure = None) -> Future[Any]:
        """``catch(self, on_failure)``."""
        return catch(self, on_failure)


def then(
    future: Future[Any], on_success: OnSuccess = None, on_failure: OnFailure = None
) -> Future[Any]:
    """A future for what comes after ``future``.

    Args:
        on_success: called with the result; what it returns is the new result. If that is a future,
            its outcome is taken.
        on_failure: called with the error of ``future`` or of ``on_success``; what it returns is
            the new error if it is an exception, and the result otherwise; or a future, as above.
    Without a function the outcome is passed on. A chain that comes back to itself fails with
    RuntimeError.
    """
    after: Future[Any] = type(future)()
    _follow(future, after, on_success, on_failure)
    return after


def catch(future: Future[Any], on_failure: OnFailure = None) -> Future[Any]:
    """``then(future, None, on_failure)``; without a function, errors become the result None."""
    return then(future, None, _nothing if on_failure is None else on_failure)


def _nothing(_: BaseException) -> None:
    return None


def _follow(
    before: Future[Any],
    after: Future[Any],
    on_success: OnSuccess = None,
    on_failure: OnFailure = None,
) -> None:
    """``after`` gets the outcome of ``before``, when there is one."""

    def done(before: Future[Any]) -> None:
        if before.cancelled() or after.cancelled():
            after.cancel()
            after.set_running_or_notify_cancel()
            return
        error = before.exception()
        if error is None:
            try:
                result = before.result()
                _resolve(after, result if on_success is None else on_success(result))
                return
            except BaseException as raised:  # noqa: BLE001 - whatever a user's function raises
                error = raised
        if on_failure is None:
            after.set_exception(error)
            return
        try:
            outcome = on_failure(error)
            if isinstance(outcome, BaseException):
                after.set_exception(outcome)
            else:
                _resolve(after, outcome)
        except BaseException as raised:  # noqa: BLE001 - whatever a user's function raises
            after.set_exception(raised)

    before.add_done_callback(done)


def _resolve(after: Future[Any], outcome: Any) -> None:
    if isinstance(outcome, Future):
        _check_cycle(after, outcome)
        _follow(outcome, after)
    else:
        after.set_result(outcome)


_lock = threading.Lock()
_chains: weakref.WeakKeyDictionary[Future[Any], weakref.WeakSet[Future[Any]]] = (
    weakref.WeakKeyDictionary()
)
"""What each future has followed."""


def _check_cycle(after: Future[Any], before: Future[Any]) -> None:
    if after is before:
        raise RuntimeError(f"chain cycle detected: {before} follows itself")
    with _lock:
        followed = _chains.setdefault(after, weakref.WeakSet())
        if before in followed:
            raise RuntimeError(f"chain cycle detected: {before} was followed before")
        followed.add(before)
