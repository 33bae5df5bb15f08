"""``send``, ``recv``, ``recv_nb`` and ``peek``, of an endpoint and of its contexts.

The four are native. In rare cases they call the Python methods of this module: for a new route, for
the facts that observers see about a wait, and for errors.
"""

from __future__ import annotations

import hashlib
import json
import operator
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from sfm_kernel import _native
from sfm_kernel._native import ANSWERS, COUNTED, LIBRARY, CallHooks, Calls, Channel
from sfm_kernel.directory import Member, Name
from sfm_kernel.endpoint.calls import call
from sfm_kernel.endpoint.seen import facts
from sfm_kernel.errors import AddressError, PeerLost, RecvTimeout, SFMError, WouldBlock

if TYPE_CHECKING:
    from sfm_kernel.endpoint.peers import Peers


class Messaging(Calls):
    """Sending and receiving in one context."""

    send = _native.send  # native/python/src/endpoint/send.rs
    recv = _native.recv  # native/python/src/endpoint/receive.rs
    recv_nb = _native.recv_nb
    peek = _native.peek

    _member: Member
    _inbox: Any
    _peers: Peers
    _network: threading.Thread
    _context_id = 0
    _may_succeed = True  # whether who has taken a lost process's name gets the messages to it
    _hooks: ClassVar[CallHooks]

    def __init_subclass__(cls) -> None:
        # Functions, not bound methods, which would keep each endpoint alive.
        cls._hooks = CallHooks(
            channel=cls._channel,
            successor=cls._successor,
            canonical=cls._canonical,
            begin_wait=cls._begin_wait,
            timed_out=cls._timed_out,
            would_block=cls._would_block,
            polled=cls._polled,
        )

    def _connect(self) -> None:
        """Let the four native calls use this inbox and these peers."""
        self._wire(
            self._inbox, self._peers.channels, self._peers.ranks, self._hooks, self._context_id
        )

    @property
    def buffering(self) -> int:
        """Bytes that may wait unreceived at one destination before ``send`` waits.

        With 0 every ``send`` waits until its message was received. This exposes programs that work
        only while their messages are small.
        """
        return self._buffering

    @buffering.setter
    def buffering(self, nbytes: int) -> None:
        problem = f"buffering is a number of bytes, 0 or more, not {nbytes!r}"
        try:
            nbytes = operator.index(nbytes)
        except TypeError:
            raise TypeError(problem) from None
        if not 0 <= nbytes < 1 << 64:
            raise ValueError(problem)
        self._buffering = nbytes

    @property
    def context_id(self) -> int:
        """The number of the context in which messages are matched; 0 for the endpoint's."""
        return self._context_id

    def with_buffering(self, nbytes: int) -> Context:
        """The same context, for sending with another ``buffering``."""
        return Context(self, None, nbytes)

    def _channel(self, dest: Any) -> Channel:
        """The channel to ``dest``; called before the first message to it."""
        try:
            return self._peers.route(dest).channel
        except TypeError:
            raise AddressError(f"dest is a name or a rank, not {dest!r}") from None

    def _successor(self, dest: Name, lost: PeerLost, failed: Channel) -> Channel:
        """The channel to the process that has replaced a lost one; raises ``lost`` if none has.

        ``failed`` is the channel to the lost process.
        """
        self._peers.give_up(dest, failed)
        successor = self._peers.successor(dest) if self._may_succeed else None
        if successor is not None:
            return successor.channel
        try:
            raise lost
        finally:  # the error's traceback has this frame, which would keep the channel's memory
            del lost, failed

    def _canonical(self, src: Any, news: bool) -> Any:
        return self._peers.canonical(src, news)

    def _begin_wait(self, template: dict[str, Any]) -> tuple[str, Callable[[], str | None]] | None:
        """The text of a receive that is about to sleep, and a check to call during its wait.

        The receive calls the check about every 100 ms. It returns, once, the facts about the wait
        for observers; an error that it raises ends the wait. None instead of both: the rank in
        ``src`` has passed to another process, and the receive has to begin again.
        """
        if threading.current_thread() is self._network:
            raise SFMError(
                "a callback runs in the network thread, which receives the messages: it cannot "
                "wait for one. Use recv_nb, or let the callback set an event for another thread"
            )
        if "src" in template:
            if self._peers.has_passed_on(template["src"]):
                return None
            template["src"] = self._peers.canonical(template["src"])
        check_peer, reported = self._peers.watch(template), False

        def check() -> str | None:
            nonlocal reported
            check_peer()
            facts = None if reported else self._facts(template)
            reported = True
            self._tick()
            return facts

        return self._shown(call("recv", template)), check

    def _tick(self) -> None:
        """Called about every 100 ms while a receive waits; its errors end the wait."""

    def _shown(self, text: str) -> str:
        """The text of a receive as observers see it."""
        return text

    def _facts(self, template: dict[str, Any]) -> str:
        src = template.get("src")
        peers = None if "src" not in template or callable(src) else [src]
        about: dict[str, Any] = {"template": template, "context_id": self._context_id}
        return facts("recv", peers, **about | self._more_facts())

    def _more_facts(self) -> dict[str, Any]:
        """Further facts about a receive, or replacements."""
        return {}

    def _timed_out(self, timeout: float, template: dict[str, Any]) -> RecvTimeout:
        text = f"no message matched {call('recv', template)} within {timeout:g} s; "
        text += f"{self._inbox.depth} others are queued"
        if isinstance(timeout, int) and not template:  # a sender, as in other libraries?
            text += (
                f". recv({timeout}) waits {timeout} s: recv(src={timeout}) receives from {timeout}"
            )
        return RecvTimeout(text)

    def _polled(self, function: str, timeout: float | None, template: dict[str, Any]) -> str:
        """JSON for observers about a call that found nothing."""
        if "src" in template:
            template["src"] = self._peers.canonical(template["src"])
        text = call(function, template)
        if timeout is not None:
            text = text.replace("(", f"({timeout:g}{', ' if template else ''}", 1)
        return json.dumps({"text": text} | json.loads(self._facts(template)))

    def _would_block(self, template: dict[str, Any]) -> WouldBlock:
        return WouldBlock(f"no queued message matches {call('recv_nb', template)}")


UNBOUNDED = 1 << 62
"""``buffering`` of sends that must not wait for their receiver."""


class Context(Messaging):
    """A separate group of messages on an endpoint's connections. Made by ``Endpoint.context``.

    A message sent in a context is received only in the context of the same name at its destination:
    not by the endpoint's ``recv()``, not by its callbacks, not in another context. Otherwise
    ``send``, ``recv``, ``recv_nb`` and ``peek`` work as the endpoint's. Libraries use contexts so
    that their messages are never mixed with their user's (MPI's communicators are contexts too).
    A context lives as long as its endpoint and costs nothing while it is not used.

    Args:
        news: messages count as received when they arrive, even if nobody ever reads them: no sender
            waits for them. For short messages.
        answers: the twin of the context, for the acknowledgements of its messages. Observers see a
            receive there as part of a send, and do not count its messages.
        library: its messages do not count against the user's ``buffering``: no send of the user
            waits until they are received.
    Attributes:
        buffering: as the endpoint's; by default its value when the context was made.
        doing: the purpose of a receive, for observers; a text, or a function that returns it.
        group, in_group: the group of processes that it belongs to and its members, see ``facts``.
        title: returns the context's name for observers.
        private: observers see which process a receive waits for, but neither its template nor a
            message that nearly matches.
        tick: called about every 100 ms while a receive waits; its errors end the wait.
    """

    def __init__(
        self,
        endpoint: Messaging,
        name: str | None,
        buffering: int | None = None,
        news: bool = False,
        answers: bool = False,
        library: bool = False,
    ) -> None:
        self.name = name
        self.doing: str | Callable[[], str] = ""
        self.group: tuple[str, str] | None = None
        self.in_group: Sequence[Name] = ()
        self.title: Callable[[], str] | None = None
        self.private = False
        self.tick: Callable[[], None] | None = None
        self._member, self._inbox = endpoint._member, endpoint._inbox
        self._peers, self._network = endpoint._peers, endpoint._network
        self.buffering = endpoint.buffering if buffering is None else buffering
        self._context_id = endpoint._context_id
        if name is not None:
            # 64 bits of a good hash: the few names of a world do not collide. Never 0.
            digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
            number = max(8, int.from_bytes(digest, "little")) & ~7
            self._context_id = number | (not news) * COUNTED | library * LIBRARY
        if answers:
            self._context_id |= ANSWERS
        self._connect()

    def wait(self, seconds: float, /, **template: Any) -> bool:
        """Wait until a message matches, for at most ``seconds``; return whether one does.

        Observers see no blocked call and no change of state: for a process that has nothing to do
        and waits for no other.
        """
        deadline = time.monotonic() + seconds
        found = False

        def is_over() -> bool:
            nonlocal found
            found = self._any([template], False) is not None
            return found or time.monotonic() >= deadline

        self._inbox.wait_until(is_over, "", lambda: None, False, seconds)
        return found

    def _tick(self) -> None:
        if self.tick is not None:
            self.tick()

    def _shown(self, text: str) -> str:
        if self.title is not None:
            text = f"{text} of {self.title()}"
        doing = self._doing()
        return f"{doing}: {text}" if doing else text

    def _more_facts(self) -> dict[str, Any]:
        about = {"purpose": self._doing(), "group": self.group, "members": self.in_group}
        return about | {"template": {}} if self.private else about

    def _doing(self) -> str:
        return self.doing if isinstance(self.doing, str) else self.doing()

    def __repr__(self) -> str:
        return f"<Context {self.name!r} of {self._member.name!r}>"
