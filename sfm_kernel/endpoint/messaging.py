"""``send``, ``recv``, ``recv_nb`` and ``peek``, of an endpoint and of its contexts.

The four are native. What is rare they ask Python for: a route to somebody, what observers are told
about a wait, errors.
"""

from __future__ import annotations

import hashlib
import operator
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from sfm_kernel import _native
from sfm_kernel._native import ANSWERS, COUNTED, LIBRARY, CallHooks, Calls, Channel
from sfm_kernel.endpoint.calls import call
from sfm_kernel.endpoint.seen import asked, facts
from sfm_kernel.errors import AddressError, PeerLost, RecvTimeout, SFMError, WouldBlock
from sfm_kernel.transport.base import Member, Name

if TYPE_CHECKING:
    from sfm_kernel.endpoint.peers import Peers


class Messaging(Calls):
    """Sending and receiving in one space of messages."""

    send = _native.send  # native/python/src/endpoint/send.rs
    recv = _native.recv  # native/python/src/endpoint/receive.rs
    recv_nb = _native.recv_nb
    peek = _native.peek

    _member: Member
    _inbox: Any
    _peers: Peers
    _network: threading.Thread
    _context_id = 0
    _hooks: ClassVar[CallHooks]

    def __init_subclass__(cls) -> None:
        # Functions and not bound methods, which would keep each endpoint alive.
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

        0 makes every ``send`` wait until its message was received, which shows what buffering
        hides: programs that work only while messages are small.
        """
        return self._buffering

    @buffering.setter
    def buffering(self, nbytes: int) -> None:
        told = f"buffering is a number of bytes, 0 or more, not {nbytes!r}"
        try:
            nbytes = operator.index(nbytes)
        except TypeError:
            raise TypeError(told) from None
        if not 0 <= nbytes < 1 << 64:
            raise ValueError(told)
        self._buffering = nbytes

    @property
    def context_id(self) -> int:
        """The number of the context in which messages are matched; 0 for the user's own."""
        return self._context_id

    def with_buffering(self, nbytes: int) -> Context:
        """The same space of messages, for sending with another ``buffering``."""
        return Context(self, None, nbytes)

    def _channel(self, dest: Any) -> Channel:
        """The way to ``dest``, asked for before the first message goes there."""
        try:
            return self._peers.route(dest).channel
        except TypeError:
            raise AddressError(f"dest is a name or a rank, not {dest!r}") from None

    def _successor(self, dest: Name, lost: PeerLost, failed: Channel) -> Channel:
        """The way to the process that has taken the place of the lost one; raises ``lost`` if none.

        ``failed`` is the way that led to the lost one.
        """
        self._peers.give_up(dest, failed)
        successor = self._peers.successor(dest)
        if successor is None:
            raise lost
        return successor.channel

    def _canonical(self, src: Any, news: bool) -> Any:
        return self._peers.canonical(src, news)

    def _begin_wait(self, template: dict[str, Any]) -> tuple[str, Callable[[], str | None]] | None:
        """Called when a receive is about to sleep: what it waits for, and a check for meanwhile.

        The check is called about every 100 ms. It returns, once, what observers are to know about
        the wait; what it raises ends the wait. None instead of both: the rank in ``src`` is another
        process's by now, and the receive has to begin again.
        """
        if threading.current_thread() is self._network:
            raise SFMError(
                "a callback runs in the network thread, which brings the messages in: it cannot "
                "wait for one. Use recv_nb, or let the callback set an event for another thread"
            )
        if "src" in template:
            if self._peers.has_passed_on(template["src"]):
                return None
            template["src"] = self._peers.canonical(template["src"])
        check, reported = self._peers.watch(template), False

        def look() -> str | None:
            nonlocal reported
            check()
            facts = None if reported else self._facts(template)
            reported = True
            self._tick()
            return facts

        return self._shown(call("recv", template)), look

    def _tick(self) -> None:
        """Called about every 100 ms while a receive here waits; what it raises ends the wait."""

    def _shown(self, text: str) -> str:
        """The text of a receive as observers see it."""
        return text

    def _facts(self, template: dict[str, Any], purpose: str = "") -> str:
        src = template.get("src")
        anybody = "src" not in template or callable(src)
        peers = None if anybody else [src]
        told = {} if self._is_private() else template
        return facts(
            "recv",
            peers,
            template=told,
            context_id=self._context_id,
            purpose=purpose,
            group=self._group(),
        )

    def _group(self) -> tuple[str, str] | None:
        return None

    def _is_private(self) -> bool:
        return False

    def _timed_out(self, timeout: float, template: dict[str, Any]) -> RecvTimeout:
        return RecvTimeout(
            f"no message matched {call('recv', template)} within {timeout:g} s; "
            f"{self._inbox.depth} others are queued"
        )

    def _polled(self, function: str, timeout: float | None, template: dict[str, Any]) -> str:
        """For observers, of a call that found nothing."""
        if "src" in template:
            template["src"] = self._peers.canonical(template["src"])
        text = call(function, template)
        if timeout is not None:
            text = text.replace("(", f"({timeout:g}{', ' if template else ''}", 1)
        return asked(text, self._facts(template))

    def _would_block(self, template: dict[str, Any]) -> WouldBlock:
        return WouldBlock(f"no queued message matches {call('recv_nb', template)}")


UNBOUNDED = 1 << 62
"""``buffering`` of sends that must not wait for their receiver."""


class Context(Messaging):
    """A space of messages of its own, on an endpoint's connections. Made by ``Endpoint.context``.

    What is sent in a context is received in the context of the same name at its destination, and
    nowhere else: not by the endpoint's own ``recv()``, not by its callbacks, not in another
    context. Otherwise ``send``, ``recv``, ``recv_nb`` and ``peek`` are the endpoint's. Libraries
    use it, so that their messages are never taken for their user's (MPI's communicators are
    contexts too). It lives as long as its endpoint and costs nothing when it is not used.

    Args:
        news: messages count as received when they arrive, even if nobody ever looks at them: they
            keep no sender waiting. For what is short.
        answers: the twin of the context in which its messages are acknowledged. For observers who
            waits there is in the middle of a send, and what comes there is nobody's message.
        library: its messages take no room of the user's: no send of the user waits until they are
            received, whatever ``buffering`` is.
    Attributes:
        buffering: its own, as the endpoint's was when the context was made.
        doing: what observers are told that a receive here is for; a function is asked then.
        group: in which group of processes it is, see ``facts``.
        title: says what the context is called for them.
        private: its messages are the library's business: they are told for whom a receive waits,
            and neither for what nor which message nearly fits.
        tick: called about every 100 ms while a receive here waits; what it raises ends the wait.
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
        self.title: Callable[[], str] | None = None
        self.private = False
        self.tick: Callable[[], None] | None = None
        self._member, self._inbox = endpoint._member, endpoint._inbox
        self._peers, self._network = endpoint._peers, endpoint._network
        self.buffering = endpoint.buffering if buffering is None else buffering
        self._context_id = endpoint._context_id
        if name is not None:
            # 64 bits of a good hash: two of the few names of a world will not meet. Never 0.
            digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
            number = max(8, int.from_bytes(digest, "little")) & ~7
            self._context_id = number | (not news) * COUNTED | library * LIBRARY
        if answers:
            self._context_id |= ANSWERS
        self._connect()

    def wait(self, seconds: float, /, **template: Any) -> bool:
        """Whether a message that fits is here; blocks until one is, for at most so many seconds.

        Observers see no blocked call, and what the process does stays as it was: for who has
        nothing to do, and waits for no one.
        """
        deadline = time.monotonic() + seconds
        found = False

        def look() -> bool:
            nonlocal found
            found = self._any([template], False) is not None
            return found or time.monotonic() >= deadline

        self._inbox.wait_until(look, "", _nothing, False, seconds)
        return found

    def _tick(self) -> None:
        if self.tick is not None:
            self.tick()

    def _shown(self, text: str) -> str:
        if self.title is not None:
            text = f"{text} of {self.title()}"
        doing = self._doing()
        return f"{doing}: {text}" if doing else text

    def _facts(self, template: dict[str, Any], purpose: str = "") -> str:
        return super()._facts(template, purpose or self._doing())

    def _doing(self) -> str:
        return self.doing if isinstance(self.doing, str) else self.doing()

    def _group(self) -> tuple[str, str] | None:
        return self.group

    def _is_private(self) -> bool:
        return self.private

    def __repr__(self) -> str:
        return f"<Context {self.name!r} of {self._member.name!r}>"


def _nothing() -> None:
    """What a wait has to look at now and then that anybody may end, or nobody."""
