"""A process that serves: in a program until it is released, on an engine between cells."""

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

from sfm_kernel.endpoint import Endpoint
from sfm_kernel.errors import SFMError
from sfm_kernel.message import Message
from sfm_kernel.serving.owner import CONTEXT, LOOK_EVERY, Service
from sfm_kernel.transport.base import Member

SLICE = 0.04
"""Seconds for which an engine serves before it looks whether there is a cell for it."""

GAP = 0.001
"""Seconds that its event loop has between two slices: a cell needs several turns to begin."""

PATIENCE = 10.0
"""Seconds for which an engine that was asked to serve waits for an owner's first message."""

_MESSAGES = 100
"""How many messages are taken before services get their turn."""

_BRIEFLY, _LINGER = 0.002, 0.01
"""Seconds without work after which an engine is said to be idle; for how many more it still waits
where it serves fastest."""


class users_code:
    """``with users_code():`` Stop ends what is inside with KeyboardInterrupt.

    On an engine that serves, Stop does nothing outside of it: there it could only lose messages.
    """

    depth = 0

    def __enter__(self) -> None:
        users_code.depth += 1

    def __exit__(self, *_: object) -> None:
        users_code.depth -= 1


def serve(sfm: Endpoint) -> None:
    """Answer owners; returns when all that have attached have released this process, or have died.

    Blocks: until at least one has attached, and all are gone; Ctrl-C and Stop end it.
    Raises: what a service raises.
    """
    server = _Server(sfm)
    context = server.context
    context.private, context.doing, context.tick = True, server.title, server.look
    try:
        while server.services or not server.served:
            with contextlib.suppress(_Changed):
                if not server.step():
                    server.take(context.recv())
    finally:
        context.doing, context.tick = "", None
        server.close()


def between_cells(sfm: Endpoint, busy: Callable[[], object], idle: Callable[[], object]) -> None:
    """Serve from now on in slices on the running event loop, as long as there is an owner.

    Args:
        busy, idle: called when this process has begun to work, and when it has nothing more to do.
    """
    global _slices
    if _slices is None or _slices.over:
        _slices = _Slices(sfm, busy, idle)
    _slices.until = time.monotonic() + PATIENCE


class _Changed(Exception):
    """An owner has died: whether to wait on is to be asked again."""


class _Served(NamedTuple):
    service: Service
    owner: Member | None
    title: str


class _Server:
    """What one endpoint serves.

    Args:
        lenient: an error of a service ends that service only.
        busy: called before a message is taken.
    """

    def __init__(
        self, sfm: Endpoint, *, lenient: bool = False, busy: Callable[[], object] = bool
    ) -> None:
        self.context = sfm.context(CONTEXT)
        self.services: dict[str, _Served] = {}
        self.served = False
        self._sfm, self._lenient, self._busy = sfm, lenient, busy
        self._looked = 0.0

    def title(self) -> str:
        """What it serves, for observers; "" if nothing."""
        told = dict.fromkeys(
            f"{one.title} of {one.service.owner}" for one in self.services.values() if one.title
        )
        return f"serves {', '.join(told)}" if told else ""

    def step(self) -> bool:
        """Take what has come, and let services work; whether there was anything to do."""
        busy = False
        for _ in range(_MESSAGES):
            if (found := self.context._any([{}], True)) is None:
                break
            self.take(found[1])
            busy = True
        for key, one in list(self.services.items()):
            with self._guarded(key):
                busy = one.service.work() or busy
        self.look()
        return busy

    def take(self, message: Message) -> None:
        """Give a message to the service that it is for; it may have ended."""
        key = message.key
        self._busy()
        with self._guarded(key):
            if "attach" in message:
                known = (one for one in self._sfm.members() if one.name == message.src)
                service = cloudpickle.loads(message.attach)(self._sfm, message.src, key)
                self.services[key] = _Served(service, next(known, None), message.title)
                self.served = True
                self._tell()
            elif "release" in message:
                self._drop(key)
            elif key in self.services:
                self.services[key].service.take(message)

    def look(self) -> None:
        """Drop the services of owners that have died; raises _Changed if there were any."""
        now = time.monotonic()
        if now < self._looked + LOOK_EVERY:
            return
        self._looked = now
        alive = self._sfm.alive
        dead = [key for key, (_, who, _) in self.services.items() if not (who and alive(who))]
        for key in dead:
            self._drop(key)
        if dead and not self._lenient:
            raise _Changed

    def close(self) -> None:
        """Drop all services."""
        for key in list(self.services):
            self._drop(key)

    def _drop(self, key: str) -> None:
        if (one := self.services.pop(key, None)) is not None:
            one.service.close()
            self._tell()

    def _tell(self) -> None:
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
    """An engine's serving between cells: in pieces of ``SLICE`` seconds, as long as messages come.

    While none does, a thread waits for one, and the event loop for cells.

    Attributes:
        over: there is no owner, and no more slice.
        until: when it ends unless an owner has attached (``time.monotonic``).
    """

    def __init__(
        self, sfm: Endpoint, busy: Callable[[], object], idle: Callable[[], object]
    ) -> None:
        self._server = _Server(sfm, lenient=True, busy=self._begin)
        self._busy, self._idle, self._working = busy, idle, False
        self._loop = asyncio.get_running_loop()
        self.over, self.until = False, 0.0
        self._rests = threading.Event()
        threading.Thread(target=self._await, name="sfm-serving", daemon=True).start()
        self._loop.call_soon(self._slice)

    def _slice(self) -> None:
        before, rests = signal.signal(signal.SIGINT, _interrupt), True
        try:
            rests = self._serve(time.monotonic() + SLICE)
            self.over = not (self._server.services or time.monotonic() < self.until)
        except SFMError:  # the endpoint has gone
            self.over = True
        finally:
            signal.signal(signal.SIGINT, before)
        if rests or self.over:
            self._rests.set()
        else:
            self._loop.call_later(GAP, self._slice)

    def _serve(self, end: float) -> bool:
        """Whether there is nothing more to do."""
        server = self._server
        if self._working:  # a cell may have run since
            self._busy()
        while time.monotonic() < end:
            if server.step() or server.context.wait(_BRIEFLY):
                continue
            if self._working:
                self._working = False
                self._idle()
            if not server.context.wait(_LINGER):
                return True
        return False

    def _begin(self) -> None:
        if not self._working:
            self._working = True
            self._busy()

    def _await(self) -> None:
        """What the thread does: while the event loop has nothing to serve, wait for a message."""
        while True:
            self._rests.wait()
            self._rests.clear()
            with contextlib.suppress(SFMError):  # closed, which the slice finds out
                if not self.over:
                    self._server.context.wait(LOOK_EVERY)
            if self.over or self._loop.is_closed():
                return
            with contextlib.suppress(RuntimeError):  # closed just now
                self._loop.call_soon_threadsafe(self._slice)


_slices: _Slices | None = None
"""Those of this engine."""


def _interrupt(number: int, frame: object) -> None:
    if users_code.depth:
        raise KeyboardInterrupt
