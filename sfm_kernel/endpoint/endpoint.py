"""Endpoint: the calls that users make.

Source: SFM paper, section 2.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from sfm_kernel._native import BUFFERING, CombiningTree
from sfm_kernel.endpoint import ending
from sfm_kernel.endpoint.bystanders import bystanders
from sfm_kernel.endpoint.callbacks import Callback, Callbacks
from sfm_kernel.endpoint.calls import seconds
from sfm_kernel.endpoint.messaging import Context, Messaging
from sfm_kernel.endpoint.peers import Peers
from sfm_kernel.endpoint.seen import facts
from sfm_kernel.errors import (
    EndpointClosed,
    RecvTimeout,
    SFMError,
)
from sfm_kernel.message import Message
from sfm_kernel.transport.base import Directory, Member, Name, Transport

if TYPE_CHECKING:
    from sfm_kernel.c.functions import Functions


SOON = 0.5
"""Seconds for which ``wait_for`` looks often, before it looks as seldom as other blocked calls."""


class Endpoint(Messaging):
    """One process's end of a world. Made by ``sfm_kernel.join``; may be used from any thread.

    ``send``, ``recv``, ``recv_nb`` and ``peek`` come from ``Messaging``; ``regcb`` is here. Others
    send to ``name`` or ``rank``; ``size`` counts the ranks. ``buffering`` says how far ``send`` may
    run ahead; with 0 it waits for the receive.
    """

    def __init__(
        self,
        member: Member,
        directory: Directory,
        inbox: Any,
        transports: Iterable[Transport],
        *,
        kinds: Iterable[str] = ("inproc", "shm", "tcp"),
        buffering: int = BUFFERING,
        size: int | None = None,
    ) -> None:
        self._member, self._directory, self._inbox = member, directory, inbox
        self._transports = list(transports)
        self._peers = Peers(
            member, directory, self._transports, kinds, lambda: inbox.closed, self._tell_silence
        )
        self._connect()
        self._callbacks = Callbacks(inbox)
        self._size = size
        self._contexts: dict[str, Context] = {}
        self._lock = threading.Lock()
        self.buffering = buffering
        self._about = member.told()
        self.describe(kind="process", size=size)
        self._network = threading.Thread(
            target=inbox.serve,
            args=(self._callbacks.choose,),
            name=f"sfm-network-{member.name}",
            daemon=True,
        )
        self._network.start()
        _open.add(self)

    # ---- who ----

    @property
    def c(self) -> Functions:
        """The functions of C cells that this process has: ``sfm.c.f(x)``."""
        from sfm_kernel.c.functions import functions

        return functions

    @property
    def name(self) -> Name:
        """What addresses this process; its rank where it was given no name."""
        return self._member.name

    @property
    def rank(self) -> int | None:
        """0, 1, 2 …, or None for a guest such as a notebook."""
        return self._member.rank

    @property
    def site(self) -> str:
        """Where this process is: its machine's name, unless it was told another site."""
        return self._member.site

    def site_of(self, name: Name) -> str:
        """Where the process with this name or rank is, or was if it has died.

        Raises:
            UnknownName: nobody has this name. AddressError: it cannot be one.
        """
        return self._peers.known(name).site

    @property
    def size(self) -> int:
        """How many ranked processes the world has: fixed by ``run``, else those that live now."""
        if self._size is not None:
            return self._size
        return sum(one.rank is not None and self._peers.alive(one) for one in self.members())

    @property
    def world(self) -> str:
        """The world's name."""
        return self._directory.world

    @property
    def folder(self) -> str:
        """The world's folder in shared memory, for observers."""
        return self._directory.folder

    @property
    def directory(self) -> Directory:
        """Where the world's members are listed."""
        return self._directory

    def context(self, name: str) -> Context:
        """The space of messages of this name, always the same; see ``Context``."""
        if not isinstance(name, str) or not name:
            raise ValueError(f"a context's name is a text, not {name!r}")
        with self._lock:
            if name not in self._contexts:
                made = self._contexts[name] = Context(self, name)
                made.title = lambda: f"context {name!r}"
                if len(self._contexts) <= _TOLD:
                    named = ((f"{one.context_id:x}", key) for key, one in self._contexts.items())
                    self.describe(contexts={number: key[:_LONGEST] for number, key in named})
            return self._contexts[name]

    @property
    def closed(self) -> bool:
        """Whether the endpoint has left its world."""
        return bool(self._inbox.closed)

    @property
    def uid(self) -> str:
        """This incarnation: 32 hexadecimal digits, new each time that a process joins."""
        return self._member.uid

    def shares_memory_with(self, member: Member) -> bool:
        """Whether files in ``folder`` can be mapped by both, and messages go through memory."""
        return self._peers.is_near(member)

    def tree(self, path: str, fresh: str, members: int, place: int) -> CombiningTree:
        """Memory for a group's barriers and small reductions; see ``_native.CombiningTree``."""
        return CombiningTree(self._inbox, path, fresh, members, place)

    def members(self) -> list[Member]:
        """Everybody in the world, the dead that nobody replaced among them, as known now."""
        return self._peers.members()

    def alive(self, member: Member) -> bool:
        """Whether this member still runs and has not left."""
        return self._peers.alive(member)

    def wait_for(self, *names: Name, timeout: float | None = None) -> None:
        """Return when every one of ``names`` (or ranks) has joined and lives.

        Raises:
            RecvTimeout: somebody was missing after ``timeout`` seconds; the message names them.
        """
        deadline = math.inf if timeout is None else time.monotonic() + seconds(timeout)
        missing: list[Name] = []
        text = f"wait_for({', '.join(map(repr, names))})"

        def look() -> bool:
            nonlocal missing
            living = [one for one in self.members() if self._peers.alive(one)]
            there = {one.name for one in living} | {one.rank for one in living}
            missing = [name for name in names if name not in there]
            if missing and self.closed:
                raise EndpointClosed("this endpoint was closed while it waited for others")
            if missing and time.monotonic() >= deadline:
                raise RecvTimeout(f"not joined within {timeout} s: {missing}")
            return not missing

        def tell() -> str:
            return facts("join", missing, every=True, purpose=text)

        soon = time.monotonic() + SOON
        while not look():
            if time.monotonic() < soon:  # others begin at the same time, as a rule
                time.sleep(0.005)
                continue
            limit = None if timeout is None else max(0.0, deadline - time.monotonic())
            self._inbox.wait_until(look, text, tell, False, limit)
            return

    def route_kind(self, name: Name) -> str:
        """How messages to ``name`` travel: "inproc", "shm", "tcp" or "gateway"."""
        return self._peers.route(name).kind

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"rank {self.rank}"
        return f"<Endpoint {self.name!r} of world {self.world!r}, {state}>"

    # ---- callbacks ----

    def regcb(self, function: Callable[[Message], object], /, **template: Any) -> Callback:
        """Call ``function(message)`` for every later message that matches, until unregistered.

        The call comes from the network thread, also while this process computes. It consumes the
        message: ``recv`` does not see it. Of several callbacks the first registered gets it. What
        the function raises is reported on stderr, and the next message is still served.

        Blocks: never.
        Args:
            function: called with one Message; it may ``send``, but not wait in ``recv``.
            template: as for ``recv``.
        Returns:
            The registration, with ``unregister()``; also a context manager.
        Raises:
            TypeError: ``function`` cannot be called. EndpointClosed: this endpoint was closed.
        Source: SFM paper, section 2 (Table 1).
        Example:
            >>> heard = []
            >>> with sfm_kernel.join("doc", name="A") as sfm:
            ...     with sfm.regcb(lambda m: heard.append(m.item), topic="news"):
            ...         sfm.send(dest="A", topic="news", item="rain")
            ...         while not heard:
            ...             time.sleep(0.01)
            >>> heard
            ['rain']
        """
        if not callable(function):
            raise TypeError(f"regcb needs a function that takes a message, not {function!r}")
        if self.closed:
            raise EndpointClosed("this endpoint is closed: join the world again")
        if "src" in template:
            template["src"] = self._peers.canonical(template["src"])
        return self._callbacks.add(function, template)

    def describe(self, **about: Any) -> None:
        """Tell observers more about this process.

        Args:
            about: what JSON can hold. ``kind`` is "engine" (runs cells), "notebook" (its user types
                cells) or "process"; ``size``: how many ranked processes there will ever be.
        """
        self._about |= about
        self._inbox.set_info(json.dumps(self._about))

    def _tell_silence(self, silent: dict[str, tuple[float, str]]) -> None:
        self.describe(unreachable=silent)

    def show_running(self, running: bool) -> None:
        """Tell observers whether user code is running ("running") or not ("idle")."""
        self._inbox.set_running(running)

    def show_end(self, others: str) -> None:
        """Tell observers that the program, or cell, of this process has come to its end.

        ``others``: what it has left that could go on, see ``bystanders``; "" if nothing.
        """
        if others:
            self._inbox.set_others(others)
        else:
            self.show_running(False)

    @contextlib.contextmanager
    def waiting_for_cell(self) -> Iterator[Callable[[Sequence[Name]], None]]:
        """Observers see this notebook wait for a cell on engines.

        Gives a function to be called now and then with the names of those that have not ended it.
        """

        told: list[Name] | None = None

        def tell(names: Sequence[Name]) -> None:
            nonlocal told
            if list(names) != told:
                told = list(names)
                waits = f"the cell on {', '.join(map(str, names))}"
                self._inbox.set_waiting(waits, facts("cell", names, every=True))
            self._inbox.set_others(bystanders())

        try:
            yield tell
        finally:
            self._inbox.end_waiting()

    # ---- end ----

    def close(self) -> None:
        """Leave the world. Blocked calls end with EndpointClosed; what was sent is delivered.

        Messages that were not received are gone. Harmless when repeated.
        """
        if self not in _open:
            return
        ending.begin_at_exit()
        # From the last to the first, each even if another fails or Stop interrupts it.
        with contextlib.ExitStack() as steps:
            steps.callback(self._directory.close)
            steps.callback(self._leave)
            steps.callback(self._peers.forget)
            for transport in self._transports:
                if transport.kind != "tcp":
                    steps.callback(transport.close)
            steps.callback(self._end_network_thread)
            steps.callback(self._inbox.close)
            for transport in self._transports:
                if transport.kind == "tcp":  # sends what is under way; needs the inbox for that
                    steps.callback(transport.close)
            try:
                _open.remove(self)  # last, so that an interrupt comes before it or runs the steps
            except KeyError:  # another thread was faster
                steps.pop_all()

    def _leave(self) -> None:
        with contextlib.suppress(SFMError, OSError):  # the world may be gone
            self._directory.leave(self._member)

    def _end_network_thread(self) -> None:
        if threading.current_thread() is not self._network:  # a callback may close its endpoint
            self._network.join()

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


_TOLD, _LONGEST = 20, 60
"""Contexts of which observers are told; characters of their names."""

_open: set[Endpoint] = set()
"""The endpoints of this process. Strong references: an endpoint that nobody names any more may
still be sending to others, or serving callbacks."""


def open_endpoints() -> list[Endpoint]:
    """Those that this process has open."""
    return list(_open)


@atexit.register
def _close_all() -> None:
    ending.begin_at_exit()
    for endpoint in list(_open):
        with contextlib.suppress(SFMError, OSError):
            endpoint.close()


def _abandon_all() -> None:
    """In a forked child: the endpoints are the parent's."""
    for endpoint in list(_open):
        endpoint._inbox.abandon()
    _open.clear()


os.register_at_fork(after_in_child=_abandon_all)
