"""The owner's side of serving: it attaches to other processes, which serve it."""

from __future__ import annotations

import contextlib
import itertools
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import cloudpickle

from sfm_kernel.directory import Name
from sfm_kernel.endpoint import Context, Endpoint
from sfm_kernel.endpoint.endpoint import open_endpoints
from sfm_kernel.endpoint.messaging import UNBOUNDED
from sfm_kernel.endpoint.seen import facts
from sfm_kernel.errors import EndpointClosed, PeerLost, SFMError, UnknownName
from sfm_kernel.message import Message

CONTEXT, ANSWERS = "serving", "answers"
"""The contexts in which serving processes and their owners receive."""

CHECK_INTERVAL = 0.5
"""Seconds between two checks for dead processes."""


class Service:
    """The work of a serving process for one owner. Subclasses override the methods they need.

    All methods run on the main thread of the serving process. An error that they raise ends
    ``serve``; an engine prints it and drops the service.
    """

    def __init__(self, sfm: Endpoint, owner: Name, key: str) -> None:
        """An owner has attached. ``key`` identifies the attachment in the world."""
        self.sfm, self.owner, self.key = sfm, owner, key
        # Without a limit: two processes that send to each other never both wait for room.
        self._answers = Context(sfm, ANSWERS, UNBOUNDED)
        self._others = Context(sfm, CONTEXT, UNBOUNDED)

    def answer(self, **attributes: Any) -> None:
        """Send to the owner's ``Attachment.receive``; does nothing if the owner has died."""
        with contextlib.suppress(PeerLost, UnknownName, EndpointClosed):
            self._answers.send(dest=self.owner, key=self.key, **attributes)

    def send(self, other: Name, **attributes: Any) -> None:
        """Send to the same owner's service in another process. Raises as ``Endpoint.send``."""
        self._others.send(dest=other, key=self.key, **attributes)

    def take(self, message: Message) -> None:
        """Take a message that was sent over the attachment."""

    def work(self) -> bool:
        """Do a small amount of work; returns whether there was any.

        It is called again and again; between two calls all messages are taken.
        """
        return False

    def close(self) -> None:
        """Clean up: the owner has released this process, or has died."""


class Attachment:
    """An owner's connection to the processes that serve it; a context manager that releases them.

    Messages to a process that does not serve yet wait in its inbox until it does.

    Args:
        names: names or ranks; None: every other process that lives and has a rank.
        service: a subclass of ``Service``, or a function that makes one, for each process.
        title: the name of the service for observers, as "farm".
        partly: whether named processes that have died or left are left out.
    Attributes:
        key: identifies the attachment in the world.
        names: the processes that live.
    Raises:
        UnknownName, PeerLost: a named process is unknown or has died; none is attached.
    """

    def __init__(
        self,
        sfm: Endpoint,
        names: Iterable[Name] | None,
        service: Callable[[Endpoint, Name, str], Service],
        title: str,
        partly: bool = False,
    ) -> None:
        living = workers(sfm) if names is None else []
        self._sfm, self._context, self._answers = sfm, sfm.context(CONTEXT), _Answers(sfm)
        self._answers.doing, self._answers.tick = title, self._check
        self._members = {member.name: member for member in sfm.members()}
        ranked = (member for member in self._members.values() if member.rank is not None)
        self._names: dict[Name | None, Name] = {member.rank: member.name for member in ranked}
        asked = living if names is None else [self._names.get(name, name) for name in names]
        self._checked = 0.0
        self._lost: list[Name] = []
        self.key = f"{sfm.uid[:12]}-{next(_numbers)}"
        self.names = list(asked)  # also those that are not reached yet: a failure releases all
        complete = names is not None and not partly
        try:
            # Each first learns who comes after it: if this process dies before it has attached all,
            # those that it has reached tell the others, which would serve for ever.
            self._tell_each(complete, lambda nth: {"announce": asked[nth + 1 :]})
            packed = cloudpickle.dumps(service)  # a notebook may have defined it
            self._tell_each(complete, lambda _: {"attach": packed, "title": title})
            if (request := _requests.get(sfm)) is not None:
                request.begin(self.names)
        except BaseException:
            self.release()
            raise

    def _tell_each(self, complete: bool, attributes: Callable[[int], dict[str, Any]]) -> None:
        """Send to each of ``names``, in their order, and leave out those that have died or left.

        Raises:
            UnknownName, PeerLost: one has, and the attachment must be ``complete``.
        """
        gone: list[Name] = []
        missing: SFMError | None = None
        for nth, name in enumerate(self.names):
            try:
                self.send(name, **attributes(nth))
            except (PeerLost, UnknownName) as error:
                gone, missing = [*gone, name], missing or error
        if missing is not None and complete:
            raise missing
        self.names = [name for name in self.names if name not in gone]

    def send(self, dest: Name, /, **attributes: Any) -> None:
        """Send to the service in another process, whose ``take`` gets the message. Raises as
        ``Endpoint.send``.

        The attributes ``key``, ``announce``, ``attach``, ``title`` and ``release`` are reserved.
        """
        self._context.send(dest=dest, key=self.key, **attributes)

    def receive(
        self,
        awaited: Callable[[], Sequence[Name]],
        quiet: float | None = None,
        limit: float | None = None,
    ) -> Message | None:
        """Receive the next answer; None if a process has died (see ``lost``), or ``quiet`` is over.

        Args:
            awaited: the processes that can answer; observers show them.
            quiet: seconds. Observers see no blocked call: for helper threads.
            limit: seconds, after which RecvTimeout is raised. Observers see the call.
        """
        answers = self._answers
        answers.awaited = awaited
        while True:
            matched = answers._any([{"key": self.key}], True)
            if matched is not None:
                return matched[1]
            if self._lost:
                return None
            with contextlib.suppress(_Lost):
                if quiet is None:
                    return answers.recv(limit, key=self.key)
                if not answers.wait(quiet, key=self.key):
                    self._check()
                    return None

    def set_purpose(self, purpose: str | Callable[[], str]) -> None:
        """Set what observers show as the purpose of ``receive``, or a function that returns it."""
        self._answers.doing = purpose

    def call_back(self, dest: Name, key: str, /, **attributes: Any) -> None:
        """Send to an owner that waits in ``receive`` of the attachment with this key."""
        self._answers.send(dest=dest, key=key, **attributes)

    def wake(self) -> None:
        """Make ``receive`` in another thread return, with a message from this process."""
        self._answers.send(dest=self._sfm.name, key=self.key, wake=True)

    def name_of(self, worker: Name) -> Name:
        """The name of an attached process, by name or rank. Raises UnknownName."""
        name = self._names.get(worker, worker)
        if name not in self.names:
            raise UnknownName(worker, self.names)
        return name

    def lost(self) -> list[Name]:
        """The processes that have died since the last call. They are removed from ``names``."""
        lost, self._lost = self._lost, []
        self.names = [name for name in self.names if name not in lost]
        return lost

    def _check(self) -> None:
        now = time.monotonic()
        if now >= self._checked + CHECK_INTERVAL:
            self._checked = now
            alive, members = self._sfm.alive, self._members
            self._lost = [name for name in self.names if not alive(members[name])]
            if self._lost:
                raise _Lost

    def interrupt(self, names: Sequence[Name]) -> None:
        """Interrupt the code that these engines run for any owner, with KeyboardInterrupt, as Stop
        does. Does nothing outside a notebook, where Ctrl-C reaches all processes.
        """
        if names and (request := _requests.get(self._sfm)) is not None:
            request.interrupt(names)

    def release(self) -> None:
        """End the attachment: the processes no longer serve it. Harmless when repeated."""
        names, self.names = self.names, []
        for name in names:
            with contextlib.suppress(SFMError):  # that process has died, or this one is ending
                self.send(name, release=True)

    def __enter__(self) -> Attachment:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class _Lost(Exception):
    """Ends a wait: a serving process has died."""


class _Answers(Context):
    """The context in which an owner receives answers."""

    def __init__(self, sfm: Endpoint) -> None:
        super().__init__(sfm.context(ANSWERS), ANSWERS)
        self.title = lambda: f"context {ANSWERS!r}"
        self.awaited: Callable[[], Sequence[Name]] = tuple

    def _facts(self, template: dict[str, Any]) -> str:
        purpose = self._doing()
        return facts("recv", self.awaited(), context_id=self.context_id, purpose=purpose)


class _Request(NamedTuple):
    begin: Callable[[Sequence[Name]], None]
    interrupt: Callable[[Sequence[Name]], None]


_numbers = itertools.count(1)
_requests: weakref.WeakKeyDictionary[Endpoint, _Request] = weakref.WeakKeyDictionary()


def by_request(
    sfm: Endpoint,
    begin: Callable[[Sequence[Name]], None],
    interrupt: Callable[[Sequence[Name]], None],
) -> None:
    """Register that the processes of this endpoint's world serve on request, as engines do.

    Args:
        begin: asks the processes with these names to serve; it need not wait until they do.
        interrupt: interrupts them as Stop does.
    """
    _requests[sfm] = _Request(begin, interrupt)


def only_endpoint() -> Endpoint:
    """This process's endpoint, if it has exactly one. A pickled endpoint becomes the endpoint of
    the process that unpickles it: ``recv`` in a task is the worker's."""
    endpoints = open_endpoints()
    if len(endpoints) != 1:
        raise SFMError(f"this process has {len(endpoints)} endpoints: pass one as an argument")
    return endpoints[0]


def workers(sfm: Endpoint) -> list[Name]:
    """The names of the processes that can serve this one: all others that live and have a rank, in
    the order of ranks."""
    others = (member for member in sfm.members() if member.uid != sfm.uid and sfm.alive(member))
    ranked = [(member.rank, member.name) for member in others if member.rank is not None]
    return [name for _, name in sorted(ranked)]


def bar(sfm: Endpoint, total: int, title: str, shown: bool | None = None) -> Any:
    """A progress bar on stderr, or None. Its ``update()`` is called for each of ``total`` calls.

    Args:
        shown: True: at once; False: never; None: in a notebook, after a second.
    """
    if total == 0 or not (sfm in _requests if shown is None else shown):
        return None
    try:
        from tqdm import tqdm
    except ImportError:  # tqdm comes with ipyparallel, which may be absent
        return None

    class Bar(tqdm):  # type: ignore[type-arg,misc,unused-ignore]
        def update(self, n: float | None = 1) -> bool | None:
            drawn: bool | None = super().update(n)
            if self.n >= self.total:
                self.close()
            return drawn

    return Bar(total=total, desc=title, unit=" calls", delay=0 if shown else 1)
