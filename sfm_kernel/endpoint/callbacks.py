"""Callbacks: functions that the network thread calls for matching messages."""

from __future__ import annotations

import contextlib
import sys
import threading
import traceback
import weakref
from collections.abc import Callable
from typing import Any

from sfm_kernel._native import matches
from sfm_kernel.endpoint import ending
from sfm_kernel.endpoint.calls import call
from sfm_kernel.endpoint.seen import is_users_file, locate
from sfm_kernel.endpoint.weak import listed
from sfm_kernel.errors import SFMError
from sfm_kernel.message import Message


class Callback:
    """A function that is called for every matching message until ``unregister()``.

    Attributes:
        failed: the line in which it has raised last, for observers: its code, and the line.
    """

    def __init__(
        self, owner: Callbacks, function: Callable[[Message], object], template: dict[str, Any]
    ) -> None:
        self._owner, self.function, self.template = owner, function, template
        self.failed: tuple[str, int] | None = None

    def run(self, message: Message) -> None:
        """Call the function. What it raises is shown, and goes no further."""
        try:
            self.function(message)
        except Exception as failure:  # noqa: BLE001 - whatever a user's function raises
            if not (ending.has_begun() and isinstance(failure, SFMError)):
                self.failed = _line_of(failure)
                _report(self, "callback")

    def unregister(self) -> None:
        """No message that arrives from now on goes to the function. Harmless when repeated."""
        self._owner.remove(self)

    def __enter__(self) -> Callback:
        return self

    def __exit__(self, *_: object) -> None:
        self.unregister()


class Callbacks:
    """The callbacks of one endpoint: ``all``, in the order in which they were registered.

    ``show`` is called with the templates of all whenever they have changed.
    """

    def __init__(self, inbox: Any, show: Callable[[list[dict[str, Any]]], object]) -> None:
        self._inbox, self._show = inbox, show
        self.all: tuple[Callback, ...] = ()  # replaced, never changed: read without the lock
        self._changing = threading.Lock()
        _owners.add(self)

    @property
    def active(self) -> bool:
        """Whether a message that arrives may be given to a function."""
        return bool(self.all) and not self._inbox.closed

    def add(self, function: Callable[[Message], object], template: dict[str, Any]) -> Callback:
        """Register; the network thread receives from now on."""
        callback = Callback(self, function, template)
        with self._changing:
            self.all = (*self.all, callback)
            self._inbox.set_callbacks(True)
            self._show([known.template for known in self.all])
        return callback

    def remove(self, callback: Callback) -> None:
        """Unregister; without any callback, receiving calls read the rings themselves again."""
        with self._changing:
            self.all = tuple(other for other in self.all if other is not callback)
            if self._inbox.closed:
                return
            if not self.all:
                self._inbox.set_callbacks(False)
            self._show([known.template for known in self.all])

    def choose(self, message: Message) -> Callable[[Message], None] | None:
        """The function that gets the message, or None. Runs in the network thread."""
        for callback in self.all:
            try:
                if matches(message, callback.template):
                    return callback.run
            except Exception:  # noqa: BLE001 - whatever a user's predicate raises
                _report(callback, "a predicate for")
        return None


_owners: weakref.WeakSet[Callbacks] = weakref.WeakSet()


def registered() -> list[Callback]:
    """This process's callbacks that may be called, of all endpoints."""
    return [callback for owner in listed(_owners.copy) if owner.active for callback in owner.all]


def _line_of(failure: Exception) -> tuple[str, int] | None:
    """The program's innermost line of an error's traceback, as observers are told."""
    for frame, line in reversed(list(traceback.walk_tb(failure.__traceback__))):
        code = frame.f_code
        if is_users_file(code.co_filename):
            name = "" if code.co_name.startswith("<") else f"{code.co_name}, "
            located = locate(code.co_filename, f"{name}where it raised {type(failure).__name__}")
            return (located, line) if located else None
    return None


def _report(callback: Callback, role: str) -> None:
    name = getattr(callback.function, "__name__", repr(callback.function))
    registration = call("regcb", callback.template)
    text = f"{role} {name} of {registration} raised; later messages are still served:\n"
    with contextlib.suppress(OSError, ValueError):  # stderr may be closed already
        print(text + traceback.format_exc(), file=sys.stderr, end="")
