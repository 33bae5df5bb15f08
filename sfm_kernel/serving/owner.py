"""The owner's side of serving: who attaches to other processes, and what they are to do for it."""

from __future__ import annotations

import contextlib
import itertools
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import cloudpickle

from sfm_kernel.endpoint import Context, Endpoint
from sfm_kernel.endpoint.endpoint import open_endpoints
from sfm_kernel.endpoint.messaging import UNBOUNDED
from sfm_kernel.endpoint.seen import facts
from sfm_kernel.errors import EndpointClosed, PeerLost, SFMError, UnknownName
from sfm_kernel.message import Message
from sfm_kernel.transport.base import Name

CONTEXT, ANSWERS = "serving", "answers"
"""The contexts in which processes that serve, and their owners, receive."""

LOOK_EVERY = 0.5
"""Seconds between two looks at whether the others live."""


class Service:
    """What an owner lets another process do. Override what is needed.

    All methods run on the main thread of the process that serves. What they raise is not caught:
    it ends ``serve``; an engine shows it and drops the service.
    """

    def __init__(self, sfm: Endpoint, owner: Name, key: str) -> None:
        """An owner has attached. ``key`` tells its attachments from all others in the world."""
        self.sfm, self.owner, self.key = sfm, owner, key
        # With room without limit: who sends to each other never both waits.
        self._answers = Context(sfm, ANSWERS, UNBOUNDED)
        self._others = Context(sfm, CONTEXT, UNBOUNDED)

    def answer(self, **attributes: Any) -> None:
        """Send to the owner, who receives with ``Attachment.receive``; nothing if it has died."""
        with contextlib.suppress(PeerLost, UnknownName, EndpointClosed):
            self._answers.send(dest=self.owner, key=self.key, **attributes)

    def tell(self, other: Name, **attributes: Any) -> None:
        """Send to the object that the same owner has in another process. Raises as ``send``."""
        self._others.send(dest=other, key=self.key, **attributes)

    def take(self, message: Message) -> None:
        """A message that was sent over the attachment."""

    def work(self) -> bool:
        """Do some of what is to be done, as no message waits; whether anything was done.

        Called again and again, and between two calls all messages are taken.
        """
        return False

    def close(self) -> None:
        """The owner has released this process, or has died."""


class Attachment:
    """An owner's hold on processes that serve it; also a context manager, which releases them.

    Messages to a process that does not serve yet wait there until it does.

    Args:
        service: the class of which each of them makes an object, or what makes it.
        title: what observers are told that they serve: "farm".
    Attributes:
        key: what tells it from other attachments.
    Raises:
        UnknownName, PeerLost: one of them is not there; none is attached.
    """

    def __init__(
        self,
        sfm: Endpoint,
        names: Iterable[Name],
        service: Callable[[Endpoint, Name, str], Service],
        title: str,
    ) -> None:
        self._sfm, self._context, self._answers = sfm, sfm.context(CONTEXT), _Answers(sfm)
        self._answers.doing, self._answers.tick = title, self._look
        self._members = {one.name: one for one in sfm.members()}
        self._names: dict[Name, Name] = {
            one.rank: one.name for one in sfm.members() if one.rank is not None
        }
        self.names = [self._names.get(name, name) for name in names]
        self._looked = 0.0
        self._lost: list[Name] = []
        self.key = f"{sfm.uid[:12]}-{next(_numbers)}"
        attached: list[Name] = []
        packed = cloudpickle.dumps(service)  # it may come from a notebook
        try:
            for name in self.names:
                self.send(name, attach=packed, title=title)
                attached.append(name)
            if (asked := _requests.get(sfm)) is not None:
                asked.begin(self.names)
        except BaseException:
            self.names = attached
            self.release()
            raise

    def send(self, dest: Name, /, **attributes: Any) -> None:
        """Send to the service's object there, which takes it. Raises as ``Endpoint.send`` does.

        ``key``, ``attach``, ``title`` and ``release`` are attributes of this module's own.
        """
        self._context.send(dest=dest, key=self.key, **attributes)

    def receive(
        self,
        awaited: Callable[[], Sequence[Name]],
        quiet: float | None = None,
        limit: float | None = None,
    ) -> Message | None:
        """The next answer; None when one has died whom ``lost`` tells, or the time is over.

        Args:
            awaited: who can answer, for observers, who explain why nobody does.
            quiet: seconds; with it observers see no blocked call: for a thread beside the program.
            limit: seconds; observers see the call. Raises RecvTimeout.
        """
        answers = self._answers
        answers.awaited = awaited
        while True:
            found = answers._any([{"key": self.key}], True)
            if found is not None:
                return found[1]
            if self._lost:
                return None
            with contextlib.suppress(_Lost):
                if quiet is None:
                    return answers.recv(limit, key=self.key)
                if not answers.wait(quiet, key=self.key):
                    self._look()
                    return None

    def tell(self, doing: str) -> None:
        """What observers are told that ``receive`` is for, from now on."""
        self._answers.doing = doing

    def call_back(self, dest: Name, key: str, /, **attributes: Any) -> None:
        """Send to an owner who waits in ``receive`` of the attachment with this key."""
        self._answers.send(dest=dest, key=key, **attributes)

    def wake(self) -> None:
        """Let ``receive``, in another thread, return: with a message that this process has sent."""
        self._answers.send(dest=self._sfm.name, key=self.key, wake=True)

    def name_of(self, worker: Name) -> Name:
        """The name of who is attached, by name or rank. Raises UnknownName."""
        name = self._names.get(worker, worker)
        if name not in self.names:
            raise UnknownName(worker, self.names)
        return name

    def lost(self) -> list[Name]:
        """Those that have died since this was asked last; they are in ``names`` no more."""
        found, self._lost = self._lost, []
        self.names = [name for name in self.names if name not in found]
        return found

    def _look(self) -> None:
        now = time.monotonic()
        if now >= self._looked + LOOK_EVERY:
            self._looked = now
            alive, members = self._sfm.alive, self._members
            self._lost = [one for one in self.names if not alive(members[one])]
            if self._lost:
                raise _Lost

    def interrupt(self, names: Sequence[Name]) -> None:
        """End what these engines run now for anybody, with KeyboardInterrupt, as Stop does.

        Nothing happens where nobody has told how: a program is interrupted as a whole.
        """
        if names and (asked := _requests.get(self._sfm)) is not None:
            asked.interrupt(names)

    def release(self) -> None:
        """They serve this attachment no more. Harmless when repeated."""
        names, self.names = self.names, []
        for name in names:
            with contextlib.suppress(SFMError):  # it is gone, or this process is about to go
                self.send(name, release=True)

    def __enter__(self) -> Attachment:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class _Lost(Exception):
    """Somebody who serves has died; ends a wait."""


class _Answers(Context):
    """Where an owner receives."""

    def __init__(self, sfm: Endpoint) -> None:
        super().__init__(sfm.context(ANSWERS), ANSWERS)
        self.title = lambda: f"context {ANSWERS!r}"
        self.awaited: Callable[[], Sequence[Name]] = tuple

    def _facts(self, template: dict[str, Any], purpose: str = "") -> str:
        return facts(
            "recv", self.awaited(), context_id=self.context_id, purpose=purpose or self._doing()
        )


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
    """Processes of this endpoint's world serve when they are asked to, as engines do.

    Args:
        begin: asks those with these names to; it need not wait until they do.
        interrupt: sends them what Stop sends.
    """
    _requests[sfm] = _Request(begin, interrupt)


def only_endpoint() -> Endpoint:
    """This process's endpoint, if it has exactly one. An endpoint that is pickled becomes that of
    whoever unpickles it: ``recv`` in a task is the worker's."""
    there = open_endpoints()
    if len(there) != 1:
        raise SFMError(f"this process has {len(there)} endpoints: say which one, as an argument")
    return there[0]


def workers(sfm: Endpoint) -> list[Name]:
    """The names of those that can serve this process, by rank: all others that have one and live.

    An owner without a rank (a notebook) has all ranks.
    """
    ranked = [one for one in sfm.members() if one.rank is not None and one.uid != sfm.uid]
    living = [one for one in ranked if sfm.alive(one)]
    return [one.name for one in sorted(living, key=lambda one: one.rank or 0)]


def in_notebook(sfm: Endpoint) -> bool:
    """Whether its user types cells, and engines are asked to serve."""
    return sfm in _requests


def bar(sfm: Endpoint, total: int, title: str, shown: bool | None = None) -> Any:
    """A progress bar on stderr, whose ``update()`` is called for each of ``total``; or None.

    Args:
        shown: at once; by default in a notebook, after a second.
    """
    if total == 0 or not (in_notebook(sfm) if shown is None else shown):
        return None
    try:
        from tqdm import tqdm
    except ImportError:  # ipyparallel brings it, and is not everywhere
        return None

    class Bar(tqdm):  # type: ignore[type-arg,misc,unused-ignore]
        def update(self, n: float | None = 1) -> bool | None:
            drawn: bool | None = super().update(n)
            if self.n >= self.total:
                self.close()
            return drawn

    return Bar(total=total, desc=title, unit=" calls", delay=0 if shown else 1)
