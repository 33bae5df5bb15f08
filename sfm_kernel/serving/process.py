"""A process that serves: a program until it is released, an engine between cells."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import NamedTuple

import cloudpickle

from sfm_kernel.directory import Member, Name
from sfm_kernel.endpoint import Endpoint
from sfm_kernel.errors import SFMError
from sfm_kernel.message import Message
from sfm_kernel.serving.owner import CHECK_INTERVAL, CONTEXT, Service

SLICE = 0.04
"""Seconds for which an engine serves before its event loop may begin a cell."""

GAP = 0.001
"""Seconds between two slices for the event loop: a cell needs several turns of it to begin."""

PATIENCE = 10.0
"""Seconds for which an engine that was asked to serve waits for an owner's first message."""

_MESSAGES = 100
"""Number of messages that are taken before the services work."""

_BUSY_WAIT, _IDLE_WAIT = 0.002, 0.01
"""Seconds without a message after which an engine reports that it is idle; seconds that it then
still waits in its main thread, where it serves fastest."""


class users_code:
    """``with users_code():`` lets Stop end the block with KeyboardInterrupt.

    On a serving engine Stop does nothing outside such a block, where it could only lose messages.
    """

    depth = 0

    def __enter__(self) -> None:
        users_code.depth += 1

    def __exit__(self, *_: object) -> None:
        users_code.depth -= 1


def serve(sfm: Endpoint) -> None:
    """Serve owners; returns when all owners that have attached have released this process or died.

    Blocks: until at least one owner has attached, or has given up or died while it attached to this
        and other processes, and none is left. Ctrl-C and Stop end it.
    Raises: the errors that a service raises.
    """
    server = _Server(sfm)
    context = server.context
    context.private, context.tick = True, server.check_owners
    context.doing = lambda: f"serving.serve() ({server.title() or 'nobody calls'})"
    try:
        while server.services or server.announced or not server.served:
            with contextlib.suppress(_Changed):
                if not server.step():
                    server.take(context.recv())
    finally:
        context.doing, context.tick = "", None
        server.close()


def between_cells(sfm: Endpoint, busy: Callable[[], object], idle: Callable[[], object]) -> None:
    """Begin to serve in slices on the running event loop, as long as there is an owner.

    Args:
        busy: called when this process begins to work.
        idle: called when it has no more work.
    """
    global _slices
    if _slices is None or _slices.over:
        _slices = _Slices(sfm, busy, idle)
    _slices.until = time.monotonic() + PATIENCE


class _Changed(Exception):
    """Ends a wait: an owner has died, and there may be none left."""


class _Served(NamedTuple):
    service: Service
    owner: Member | None
    title: str


class _Announced(NamedTuple):
    """An owner that will attach to this process, and then to others."""

    owner: Member | None
    others: list[Name]


class _Server:
    """The services of one endpoint.

    Args:
        lenient: whether an error of a service ends that service only.
        busy: called before a message is taken.
    """

    def __init__(
        self, sfm: Endpoint, *, lenient: bool = False, busy: Callable[[], object] = bool
    ) -> None:
        self.context = sfm.context(CONTEXT)
        self.services: dict[str, _Served] = {}
        self.announced: dict[str, _Announced] = {}
        self.served = False
        self._sfm, self._lenient, self._busy = sfm, lenient, busy
        self._checked = 0.0

    def title(self) -> str:
        """The services in words, for observers; "" if there is none."""
        titles = dict.fromkeys(
            f"{title} of {service.owner}" for service, _, title in self.services.values() if title
        )
        return f"serves {', '.join(titles)}" if titles else ""

    def step(self) -> bool:
        """Take the messages that have arrived, and let the services work; returns whether there was
        anything to do."""
        busy = False
        for _ in range(_MESSAGES):
            if (matched := self.context._any([{}], True)) is None:
                break
            self.take(matched[1])
            busy = True
        for key, served in list(self.services.items()):
            with self._guarded(key):
                busy = served.service.work() or busy
        self.check_owners()
        return busy

    def take(self, message: Message) -> None:
        """Give a message to its service, which may have ended."""
        key = message.key
        self._busy()
        with self._guarded(key):
            if "announce" in message:
                self.announced[key] = _Announced(self._owner(message), message.announce)
            elif "attach" in message:
                self.announced.pop(key, None)
                self.served = True
                service = cloudpickle.loads(message.attach)(self._sfm, message.src, key)
                self.services[key] = _Served(service, self._owner(message), message.title)
                self._publish()
            elif "release" in message:
                # Of an owner, or of a process that was to serve the same one.
                self.announced.pop(key, None)
                self.served = True
                self._drop(key)
            elif key in self.services:
                self.services[key].service.take(message)

    def _owner(self, message: Message) -> Member | None:
        return next((each for each in self._sfm.members() if each.name == message.src), None)

    def check_owners(self) -> None:
        """Drop the services of owners that have died; raises _Changed if there were any.

        Whom an owner has not attached any more, and perhaps not reached, is told.
        """
        now = time.monotonic()
        if now < self._checked + CHECK_INTERVAL:
            return
        self._checked = now
        alive = self._sfm.alive
        owners = {key: announced.owner for key, announced in self.announced.items()}
        owners |= {key: served.owner for key, served in self.services.items()}
        dead = [key for key, owner in owners.items() if not (owner and alive(owner))]
        for key in dead:
            if (announced := self.announced.pop(key, None)) is not None:
                self.served = True
                self._release(key, announced.others)
            self._drop(key)
        if dead and not self._lenient:
            raise _Changed

    def _release(self, key: str, others: list[Name]) -> None:
        for other in others:
            with contextlib.suppress(SFMError):  # it has died, or this process is ending
                self.context.send(dest=other, key=key, release=True)

    def close(self) -> None:
        """Drop all services."""
        for key in list(self.services):
            self._drop(key)

    def _drop(self, key: str) -> None:
        if (served := self.services.pop(key, None)) is not None:
            served.service.close()
            self._publish()

    def _publish(self) -> None:
        if not self._sfm.closed:
            self._sfm.describe(serving=self.title() or None)

    @contextlib.contextmanager
    def _guarded(self, key: str) -> Iterator[None]:
        try:
            yield
        except Exception:
            if not self._lenient:
                raise
            print(f"a service has failed:\n{traceback.format_exc()}", file=sys.stderr)
            self._drop(key)


class _Slices:
    """Serving between the cells of an engine: in slices of ``SLICE`` seconds while messages arrive.

    At other times a thread waits for a message, and the event loop is free for cells.

    Attributes:
        over: there is no owner, and no further slice.
        until: the time at which it ends unless an owner has attached (``time.monotonic``).
    """

    def __init__(
        self, sfm: Endpoint, busy: Callable[[], object], idle: Callable[[], object]
    ) -> None:
        self._server = _Server(sfm, lenient=True, busy=self._begin)
        self._busy, self._idle, self._working = busy, idle, False
        self._loop = asyncio.get_running_loop()
        self.over, self.until = False, 0.0
        self._resting = threading.Event()
        threading.Thread(target=self._await, name="sfm-serving", daemon=True).start()
        self._loop.call_soon(self._slice)

    def _slice(self) -> None:
        before, resting = signal.signal(signal.SIGINT, _interrupt), True
        try:
            resting = self._serve(time.monotonic() + SLICE)
            self.over = not (self._server.services or time.monotonic() < self.until)
        except SFMError:  # the endpoint was closed
            self.over = True
        finally:
            signal.signal(signal.SIGINT, before)
        if resting or self.over:
            self._resting.set()
        else:
            self._loop.call_later(GAP, self._slice)

    def _serve(self, end: float) -> bool:
        """Serve until a time; whether there is nothing more to do."""
        server = self._server
        if self._working:  # a cell may have run since
            self._busy()
        while time.monotonic() < end:
            if server.step() or server.context.wait(_BUSY_WAIT):
                continue
            if self._working:
                self._working = False
                self._idle()
            if not server.context.wait(_IDLE_WAIT):
                return True
        return False

    def _begin(self) -> None:
        if not self._working:
            self._working = True
            self._busy()

    def _await(self) -> None:
        """Run the thread: wait for a message while the event loop has nothing to serve."""
        while True:
            self._resting.wait()
            self._resting.clear()
            with contextlib.suppress(SFMError):  # the endpoint was closed: the next slice finds out
                if not self.over:
                    self._server.context.wait(CHECK_INTERVAL)
            if self.over or self._loop.is_closed():
                return
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                self._loop.call_soon_threadsafe(self._slice)


_slices: _Slices | None = None
"""This engine's serving; None before it was first asked to serve."""


def _interrupt(number: int, frame: object) -> None:
    if users_code.depth:
        raise KeyboardInterrupt
