"""What the native ``send``, ``recv``, ``recv_nb`` and ``peek`` leave to Python; and contexts."""

from __future__ import annotations

import hashlib
import operator
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sfm_kernel._native import Calls, Channel
from sfm_kernel.endpoint.calls import call
from sfm_kernel.endpoint.seen import asked, facts
from sfm_kernel.errors import AddressError, PeerLost, RecvTimeout, SFMError, WouldBlock
from sfm_kernel.transport.base import Member, Name

if TYPE_CHECKING:
    from sfm_kernel.endpoint.peers import Peers


class Messaging(Calls):
    """``send``, ``recv``, ``recv_nb``, ``peek`` (``native/python/src/calls.rs``), and their rest.

    The rest is what is rare: ways to others, waits, losses, errors.
    """

    _member: Member
    _inbox: Any
    _peers: Peers
    _network: threading.Thread
    _context_id = 0

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

    def _waiter(self, template: dict[str, Any]) -> tuple[str, Callable[[], str | None]] | None:
        """Called when a receive is about to sleep: what it waits for, and what to check then.

        The check returns, once, what observers are to know besides. None instead of both: the rank
        in ``src`` is another process's by now, and the receive is to begin again.
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
        check, told = self._peers.watch(template), False

        def tick() -> str | None:
            nonlocal told
            check()
            if told:
                return None
            told = True
            return self._facts(template)

        return call("recv", template), tick

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
            self._context_id = (
                number | (not news) | library << 2
            )  # the core tells them by these bits
        if answers:
            self._context_id |= 2
        self._wire(self._inbox, self._peers.channels, self._peers.ranks, self._context_id)

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

    def _waiter(self, template: dict[str, Any]) -> tuple[str, Callable[[], str | None]] | None:
        wait = super()._waiter(template)
        if wait is None:
            return None
        text, check = wait
        tick = self.tick

        def both() -> str | None:
            told = check()
            if tick is not None:
                tick()
            return told

        if self.title is not None:
            text = f"{text} of {self.title()}"
        doing = self._doing()
        return (f"{doing}: {text}" if doing else text), both

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
