"""Endpoint: the calls that users make.

Source: SFM paper, section 2.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import sfm_kernel.endpoint.main_thread
import sfm_kernel.endpoint.variables  # noqa: F401 - native calls read them for observers
from sfm_kernel._native import BUFFERING, CombiningTree, Member, Name
from sfm_kernel.endpoint import ending
from sfm_kernel.endpoint.bystanders import bystanders
from sfm_kernel.endpoint.callbacks import Callback, Callbacks
from sfm_kernel.endpoint.calls import seconds
from sfm_kernel.endpoint.messaging import Context, Messaging
from sfm_kernel.endpoint.peers import Peers, by_name
from sfm_kernel.endpoint.seen import conditions_of, facts, is_own
from sfm_kernel.errors import EndpointClosed, RecvTimeout, SFMError
from sfm_kernel.message import Message
from sfm_kernel.transport.base import Directory, Transport
from sfm_kernel.transport.closing import Closing

if TYPE_CHECKING:
    from sfm_kernel.c.functions import Functions

SOON = 0.5
"""Seconds for which ``wait_for`` polls often, before it polls as seldom as other blocked calls."""


class Endpoint(Messaging, Closing):
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
        kinds: Collection[str] = ("inproc", "shm", "zmq"),
        buffering: int = BUFFERING,
        size: int | None = None,
    ) -> None:
        self._member, self._directory = member, directory
        self._inbox, self._transports = inbox, list(transports)
        self._peers = Peers(
            member, directory, self._transports, kinds, lambda: inbox.closed, self._report_silence
        )
        self._connect()
        self._callbacks = Callbacks(inbox, self._show_callbacks)
        self._size = size
        self._contexts: dict[str, Context] = {}
        self._lock = threading.Lock()
        self.buffering = buffering
        self._about = member.identity()
        self.describe(kind="process", size=size)
        self._network = threading.Thread(
            target=inbox.serve,
            args=(self._callbacks.choose,),
            name=f"sfm-network-{member.name}",
            daemon=True,
        )
        self._network.start()
        _open.add(self)

    # ---- identity, and members ----

    @property
    def c(self) -> Functions:
        """The C functions that this process has from C cells: ``sfm.c.f(x)``."""
        from sfm_kernel.c.functions import functions

        return functions

    @property
    def name(self) -> Name:
        """The process's name, to which others send; its rank if it was given no name."""
        return self._member.name

    @property
    def rank(self) -> int | None:
        """0, 1, 2 …, or None for a guest such as a notebook."""
        return self._member.rank

    @property
    def site(self) -> str:
        """The process's site: its machine's name, unless another site was set."""
        return self._member.site

    def site_of(self, name: Name) -> str:
        """The site of the process with this name or rank, also if it has died.

        Raises:
            UnknownName: no process has this name. AddressError: it cannot be one.
        """
        return self._peers.known(name).site

    @property
    def size(self) -> int:
        """The number of ranked processes: fixed by ``run``, or those that live now."""
        if self._size is not None:
            return self._size
        return sum(member.rank is not None and self.alive(member) for member in self.members())

    @property
    def world(self) -> str:
        """The world's name. Whoever learns it may join: observers then expect newcomers."""
        if self._about["size"] and not is_own(sys._getframe(1).f_code.co_filename):
            self.describe(size=None)
        return self._directory.world

    @property
    def folder(self) -> str:
        """The world's folder in shared memory, for observers."""
        return self._directory.folder

    @property
    def directory(self) -> Directory:
        """The world's directory, which lists its members."""
        return self._directory

    def context(self, name: str) -> Context:
        """The context of this name, always the same object; see ``Context``."""
        if not isinstance(name, str) or not name:
            raise ValueError(f"a context's name is a text, not {name!r}")
        with self._lock:
            if name not in self._contexts:
                made = self._contexts[name] = Context(self, name)
                made.title = lambda: f"context {name!r}"
                if len(self._contexts) <= _SHOWN_CONTEXTS:
                    contexts = self._contexts.values()
                    names = {f"{c.context_id:x}": str(c.name)[:_LONGEST] for c in contexts}
                    self.describe(contexts=names)
            return self._contexts[name]

    @property
    def closed(self) -> bool:
        """Whether the endpoint has left its world."""
        return bool(self._inbox.closed)

    @property
    def uid(self) -> str:
        """The number of this incarnation: 32 hexadecimal digits, new each time a process joins."""
        return self._member.uid

    def shares_memory_with(self, member: Member) -> bool:
        """Whether files in ``folder`` can be mapped by both, and messages go through memory."""
        return self._peers.is_near(member)

    def tree(self, path: str, fresh: str, members: int, index: int) -> CombiningTree:
        """Memory for a group's barriers and small reductions; see ``_native.CombiningTree``."""
        return CombiningTree(self._inbox, path, fresh, members, index)

    def members(self) -> list[Member]:
        """All members of the world now, including dead ones that nobody has replaced."""
        return self._peers.members()

    def alive(self, member: Member) -> bool:
        """Whether this member still runs and has not left."""
        return self._peers.alive(member)

    def wait_for(self, *names: Name, timeout: float | None = None) -> None:
        """Return when every one of ``names`` (or ranks) has joined and lives.

        Raises:
            RecvTimeout: a process was missing after ``timeout`` seconds; the error names it.
        """
        deadline = math.inf if timeout is None else time.monotonic() + seconds(timeout)
        missing: list[Name] = []
        text = f"wait_for({', '.join(map(repr, names))})"

        def all_joined() -> bool:
            nonlocal missing
            joined = by_name(member for member in self.members() if self.alive(member))
            missing = [name for name in names if name not in joined]
            if missing and self.closed:
                raise EndpointClosed("this endpoint was closed while it waited for others")
            if missing and time.monotonic() >= deadline:
                raise RecvTimeout(f"not joined within {timeout} s: {missing}")
            return not missing

        def wait_facts() -> str:
            return facts("join", missing, every=True, purpose=text)

        soon = time.monotonic() + SOON
        while not all_joined():
            if time.monotonic() < soon:  # the others usually start at the same time
                time.sleep(0.005)
                continue
            limit = None if timeout is None else max(0.0, deadline - time.monotonic())
            self._inbox.wait_until(all_joined, text, wait_facts, False, limit)
            return

    def route_kind(self, name: Name) -> str:
        """How messages to ``name`` travel: "inproc", "shm", "zmq" or "gateway"."""
        return self._peers.route(name).kind

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"rank {self.rank}"
        return f"<Endpoint {self.name!r} of world {self.world!r}, {state}>"

    # ---- callbacks ----

    def regcb(self, function: Callable[[Message], object], /, **template: Any) -> Callback:
        """Call ``function(message)`` for every later message that matches, until unregistered.

        The network thread calls it, also while this process computes. It consumes the message:
        ``recv`` does not see it. If several callbacks match, the first registered gets the message.
        Errors of the function are reported on stderr, and the next message is still served.

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
        """Publish more about this process for observers.

        Args:
            about: values that JSON can hold. ``kind`` is "engine" (runs cells), "notebook" (its
                user types cells) or "process"; ``size``: the final number of ranked processes, if
                nobody else will join.
        """
        self._about |= about
        self._inbox.set_info(json.dumps(self._about))

    def _show_callbacks(self, templates: Sequence[Mapping[str, Any]]) -> None:
        shown: list[Any] = []
        with contextlib.suppress(Exception):  # a value cannot be shown
            shown += map(conditions_of, templates[:_SHOWN_CALLBACKS])
        while len(json.dumps(shown)) > _CALLBACKS_LENGTH:
            shown.pop()
        self.describe(callbacks=shown)

    def _report_silence(self, silent: dict[str, tuple[float, str]]) -> None:
        self.describe(unreachable=silent)

    def show_running(self, running: bool) -> None:
        """Show observers whether user code is running ("running") or not ("idle")."""
        self._inbox.set_running(running)

    def show_end(self, others: str) -> None:
        """Show observers that the program, or cell, of this process has ended.

        ``others``: the bystanders that it has left, see ``bystanders``; "" if none.
        """
        if others:
            self._inbox.set_others(others)
        else:
            self.show_running(False)

    @contextlib.contextmanager
    def waiting_for_cell(self) -> Iterator[Callable[[Sequence[Name]], None]]:
        """Show observers that this notebook waits for a cell on engines.

        Yields a function to call now and then with the names of the engines that still run it.
        """

        shown: list[Name] | None = None

        def show(names: Sequence[Name]) -> None:
            nonlocal shown
            if list(names) != shown:
                shown = list(names)
                waits = f"the cell on {', '.join(map(str, names))}"
                self._inbox.set_waiting(waits, facts("cell", names, every=True))
            self._inbox.set_others(bystanders())

        try:
            yield show
        finally:
            self._inbox.end_waiting()

    # ---- end ----

    def close(self) -> None:
        """Leave the world. Blocked calls end with EndpointClosed; sent messages are delivered.

        Callbacks are called for all messages that have come before, if that takes 5 s at most, and
        for none that come later. Messages that were not received are discarded. Harmless when
        repeated.
        """
        if self not in _open:
            return
        # From the last to the first, each even if another fails or Stop interrupts it.
        with contextlib.ExitStack() as steps:
            steps.callback(self._directory.close)
            steps.callback(self._leave)
            steps.callback(self._peers.forget)
            for transport in self._transports:
                if transport.kind != "zmq":
                    steps.callback(transport.close)
            steps.callback(self._end_network_thread)
            steps.callback(self._inbox.close)
            for transport in self._transports:
                if transport.kind == "zmq":  # delivers what is pending, with the inbox
                    steps.callback(transport.close)
            try:
                self._end_callbacks()
                ending.begin_at_exit()
                _open.remove(self)  # last, so that an interrupt comes before it or runs the steps
            except KeyError:  # another thread was faster
                steps.pop_all()

    def _leave(self) -> None:
        with contextlib.suppress(SFMError, OSError):  # the world may have been removed
            self._directory.leave(self._member)

    def _end_callbacks(self) -> None:
        """Return when the callbacks for all that has arrived have returned, or after some time."""
        if not self._callbacks.active or threading.current_thread() is self._network:
            return
        number, deadline = self._inbox.take_in_all(), time.monotonic() + _CALLBACKS
        while not self._inbox.is_handled(number) and time.monotonic() < deadline:
            time.sleep(0.001)

    def _end_network_thread(self) -> None:
        if threading.current_thread() is self._network:  # a callback may close its endpoint
            return
        self._network.join(_LAST_CALLBACK)
        if self._network.is_alive():
            text = f"a callback of process {self.name!r} does not return: this process leaves it"
            with contextlib.suppress(OSError, ValueError):  # stderr may be closed already
                print(text, file=sys.stderr)


_CALLBACKS, _LAST_CALLBACK = 5.0, 1.0
"""Seconds that callbacks may take when an endpoint closes, and then the one that still runs."""

_SHOWN_CONTEXTS, _LONGEST = 20, 60
"""Contexts that observers see, and characters of their names, at most."""

_SHOWN_CALLBACKS, _CALLBACKS_LENGTH = 6, 800
"""Callbacks that observers see, and characters of their templates, at most."""

_open: set[Endpoint] = set()
"""The endpoints of this process. Strong references: an endpoint that no variable names any longer
may still be sending to others, or serving callbacks."""


def open_endpoints() -> list[Endpoint]:
    """The endpoints that this process has open."""
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
