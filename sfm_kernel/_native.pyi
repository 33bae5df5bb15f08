"""The compiled core: packets, matching, segments, rings, doorbells.

Not for users: ``sfm_kernel.message``, ``sfm_kernel.endpoint`` and ``sfm_kernel.transport`` are
built on it and documented for them. What blocks here releases the GIL, ends with
KeyboardInterrupt within 100 ms of a signal, and with EndpointClosed when its inbox closes.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any, Final, Self, final

from typing_extensions import Buffer, disjoint_base

from sfm_kernel.errors import PeerLost, RecvTimeout, WouldBlock

__all__ = [
    "ANSWERS",
    "ARENA_BYTES",
    "BUFFERING",
    "COUNTED",
    "JUDGEMENT_BYTES",
    "LIBRARY",
    "MAIN_THREAD_STATES",
    "MAX_MEMBERS",
    "MESSAGE_EVENTS",
    "MOST_CONNECTIONS",
    "OTHERS_BYTES",
    "RING_BYTES",
    "SCHEDULERS",
    "SHOWN_CHARACTERS",
    "STATES",
    "SUMMARY_UNIT",
    "UNSETTLED",
    "WHATEVER",
    "CallHooks",
    "Calls",
    "Channel",
    "CollectiveHooks",
    "Collectives",
    "CombiningTree",
    "Exchange",
    "Gateway",
    "Inbox",
    "Known",
    "LabLink",
    "Ledger",
    "Link",
    "Message",
    "Observer",
    "Operation",
    "Outcome",
    "Packet",
    "RaiseInstead",
    "Region",
    "Segment",
    "abandon_connections",
    "congestion",
    "decode",
    "is_arena_size",
    "is_ring_size",
    "judge",
    "knock",
    "matches",
    "open_tun",
    "pack",
    "peek",
    "recv",
    "recv_nb",
    "refresh_mpi",
    "resolve",
    "send",
    "set_bystanders",
    "set_congestion",
    "set_locator",
    "set_main_line",
    "set_mpi",
    "set_mpi_buffering",
    "set_mpi_world",
    "setns",
    "tcp_info",
    "unshare",
]

_Path = str | os.PathLike[str]

MAX_MEMBERS: Final[int]
"""Processes that one world can hold: the width of the arrival bitmap in a segment."""

BUFFERING: Final[int]
"""Bytes of unreceived messages that one sender may leave in one inbox before ``send`` waits."""

RING_BYTES: Final[int]
"""The usual size of a ring. Larger messages flow through in parts."""

ARENA_BYTES: Final[int]
"""Usual address space for the large values of one pair. It takes memory as it is used, never more
than leaves half of ``/dev/shm`` free, and gives it back when it was not used for two seconds. What
finds no room goes through the ring."""

COUNTED: Final[int]
"""Bit of a context's number: its messages wait until they are received. Without it they are news,
which count as received when they arrive."""

ANSWERS: Final[int]
"""Bit of a context's number: acknowledgements of another context's messages."""

LIBRARY: Final[int]
"""Bit of a context's number: its messages are the library's, and take no room of the user's."""

STATES: Final[tuple[str, ...]]
"""What a segment can say that its process does."""

MAIN_THREAD_STATES: Final[tuple[str, ...]]
"""What a main thread can be in while its process is in no call."""

MESSAGE_EVENTS: Final[tuple[str, ...]]
"""What of a trace happens to messages: "sent", "received", and "answered" and "heard" at the two
ends of an acknowledgement. Its other events are ``STATES``."""

UNSETTLED: Final[int]
"""In ``examined``: a blocked call has not looked at what has arrived, or the other side can end it
by itself."""

WHATEVER: Final[int]
"""In ``examined``: nothing that arrives decides the call."""

SUMMARY_UNIT: Final[str]
"""What stands between a name and its value in the summary of an inbox."""

SHOWN_CHARACTERS: Final[int]
"""Characters that are shown of a text in a summary."""

OTHERS_BYTES: Final[int]
"""Bytes of the text about what could go on beside a call."""

JUDGEMENT_BYTES: Final[int]
"""Bytes of a judgement."""

SCHEDULERS: Final[tuple[str, ...]]
"""How a gateway lets flows take turns."""

MOST_CONNECTIONS: Final[int]
"""Connections between two gateways at most."""

def is_ring_size(nbytes: int, /) -> bool:
    """Whether a ring can have so many bytes."""

def is_arena_size(nbytes: int, /) -> bool:
    """Whether an arena can have so many bytes; 0: there is no arena."""

@final
class Packet:
    """One encoded message. Supports the buffer protocol (read-only, contiguous)."""

    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Region:
    """Memory of a received packet: writable, and alive as long as somebody uses it."""

    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Message:
    """A received packet. Its values are decoded when they are first read.

    ``m.tag`` and ``m["tag"]`` are the value of an attribute, ``"tag" in m`` tells whether there is
    one, and ``dict(m)`` has all of them; ``src`` and ``dest`` are always there. Values are the
    receiver's own, and writable, arrays too.

    To read a value that was pickled runs code of whoever has made the message: in a world a member.
    ``repr``, as every display, reads all values.
    Raises:
        AttributeError, KeyError: the message has no such attribute.
    Source: SFM paper, section 2.
    Example:
        >>> with sfm_kernel.join("doc", name="A") as sfm:
        ...     sfm.send(dest="A", tag=42, data=[1, 2])
        ...     m = sfm.recv()
        >>> m.tag, m["data"], "other" in m, m.src
        (42, [1, 2], False, 'A')
        >>> m
        Message: {'dest': 'A', 'src': 'A', 'tag': 42, 'data': [1, 2]}
    """

    def __getattribute__(self, name: str, /) -> Any: ...
    def __getitem__(self, name: str, /) -> Any: ...
    def __contains__(self, name: object, /) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __dir__(self) -> list[str]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def _repr_html_(self) -> str: ...
    def _put_back(self) -> None:
        """Back to its place in its queue, if nobody has read a value of it."""

    def keys(self) -> list[str]:
        """The names of the attributes, as sent. Makes ``dict(message)`` work."""

def pack(attributes: dict[str, Any], /, context: int = 0) -> Packet:
    """Encode ``attributes`` in their order, for the queue of ``context`` (0: the user's own).

    Raises EncodeError, which names the attribute.
    """

def decode(data: Buffer, /) -> tuple[list[Message], bytes]:
    """Messages that are complete at the head of ``data``, and the leftover. Raises PacketError.

    To read a pickled value of one runs code of whoever has made the packet.
    """

def matches(message: Message, template: dict[str, Any], /) -> bool:
    """Whether ``message`` has every attribute of ``template``. Raises as ``recv``."""

@final
class Observer:
    """Looks at the segments of one world's processes, read without their help. Thread-safe.

    Their files stay open as long as the calls name them: let go of it when nobody looks any more.
    Whatever becomes of a segment meanwhile, nothing here is killed by it.
    """

    def __new__(cls) -> Self: ...
    def segments(self, paths: Sequence[_Path], /) -> list[dict[str, Any] | None]:
        """State and counters of the processes; None where there is no segment.

        Waits up to 50 ms for their network threads to write down what is queued. Of a damaged one
        there is no more than ``alive`` and the state "damaged"; texts of others may be damaged.
        """

    def calls(self, paths: Sequence[_Path], /) -> list[tuple[str, int] | None]:
        """For each process its state, and the number of its latest blocked call; asks nobody."""

    def pulses(self, paths: Sequence[_Path], /) -> list[int]:
        """For each segment a number that changes when anything in it does; 0 for none."""

    def trace(
        self, path: _Path, start: int = 0, /
    ) -> tuple[
        list[tuple[int, float, str, str, int, int, int, int, list[tuple[str, str]], int]],
        int,
        list[tuple[int, str]],
    ]:
        """The events of a process's trace, the place of the next, and the texts of codes.

        An event is ``(place, time, what, peer, number, nbytes, code, line, attributes, context)``:
        its place in the process's history, seconds since 1970, "sent", "received" or a state, the
        last 16 digits of the peer's uid, which message of that pair, its bytes, where in the
        program, the message's first attributes as texts, and the first 16 bits of its context's
        number (1 where they are 0), 0 for a user's own message. Only events from ``start`` on
        that are still there; none where there is no segment, or it is damaged.
        """

def judge(path: _Path, call: int, judgement: str, /) -> bool:
    """End a blocked call of another process with DeadlockDetected; False if it is over already.

    ``call`` is its number, ``judgement`` JSON with "cycle" (names) and "why".
    """

def resolve(
    path: _Path, address: int, build_id: str = "", /
) -> tuple[str | None, int, str | None] | None:
    """File, line and function of an address in a binary, from its debug information.

    Without any: the function alone (None, 0, its name). None where nothing is known, or the build
    id of the binary that is there now does not begin with ``build_id``. Of functions that the
    compiler has put into each other it is the innermost that is in no system's header.
    Cost: some ms for a binary that was not read before, or has changed since; then 2 us.
    """

@final
class Gateway:
    """A gateway between sites: a thread that forwards frames (native/src/gateway). Thread-safe.

    It takes no signals, and needs neither the GIL nor the process that made it: in a forked child
    it does nothing.
    """

    def __new__(
        cls,
        site: str,
        key: bytes,
        address: str,
        *,
        algorithm: str | None = None,
        connections: int | None = None,
        mptcp: bool = False,
        pacing: int | None = None,
        scheduler: str = "round-robin",
        delay: float = 0.0,
        limit: int | None = None,
    ) -> Self:
        """Listen at ``address`` ("tcp://IP:port", port 0 chooses one), and serve.

        Args:
            key: the gateway key, 32 bytes.
            algorithm: TCP's congestion control to other gateways. By default bbr; where the kernel
                gives none, four connections of its own one.
            connections: to each other gateway, 1 to 64.
            mptcp: ask for MPTCP; ``status`` tells whether it is.
            pacing: bytes per second to each other gateway at most.
            scheduler: "fifo", "round-robin" or "smallest".
            delay, limit: play a path between sites: seconds one way, and bytes per second.
        Raises:
            SFMError: the address cannot be had, or the kernel refuses the algorithm.
            ValueError: an argument is none.
        """

    @property
    def uid(self) -> str: ...
    @property
    def address(self) -> str: ...
    def peers(self, listed: list[tuple[str, str, str]], /) -> None:
        """These are all gateways of the world now: uid, site, address. Raises ValueError."""

    def weights(self, weights: dict[str, float], /) -> None:
        """Senders, by uid, whose frames count for more, or less, than 1. Raises ValueError."""

    def status(self) -> str:
        """What it does, as JSON (native/src/gateway/status.rs); "{}" once it is closed."""

    def close(self) -> None:
        """End it, with all its connections. Idempotent."""

def tcp_info(socket: int, /) -> dict[str, int | float | None]:
    """What the kernel knows of the TCP connection of a file descriptor; see ``transport.tcp``."""

def congestion(socket: int, /) -> str:
    """The congestion control that a TCP socket uses: "cubic", say. Raises OSError."""

def set_congestion(socket: int, name: str, /) -> None:
    """Use another, and ask the kernel whether it does. Raises OSError; see ``transport.tcp``."""

def set_bystanders(function: Callable[[], str], /) -> None:
    """Ask ``function`` what of this process could go on while a call of this thread is blocked."""

def set_locator(function: Callable[[str, str], str | None], /) -> None:
    """Ask ``function(filename, name)`` for the text of a piece of code; None: not to be shown."""

def set_mpi(
    interrupted: Callable[[BaseException], None],
    call: Callable[[], str | None],
    site: Callable[[FrameType], tuple[str | None, str, int] | None],
    /,
) -> None:
    """Have MPI's calls of this process know Python around them: ``sfm_kernel.mpi.library``.

    ``interrupted(error)`` is called when a signal's handler has raised, in the frame whose call
    then ends with an error code; ``call()`` says what that frame calls, as observers are shown it;
    ``site(frame)`` the same of a frame, with the text of its code and the line, None where it is
    not the program's.
    """

def set_mpi_buffering(nbytes: int, /) -> None:
    """How much of MPI's standard sends another process may have without having received it.

    0: none, they are synchronous.
    """

def set_mpi_world(
    *,
    inbox: Inbox,
    members: Callable[[], tuple[str, int, list[tuple[int, str, int | str]]] | None],
    channel: Callable[[str], Channel | None],
    is_near: Callable[[str], bool],
    lives: Callable[[str], bool],
    site: Callable[[str], str],
) -> None:
    """Have MPI_Init ask these functions who the engines are: ``sfm_kernel.mpi.engines``.

    Only the first call has an effect.
    Args:
        inbox: this engine's.
        members: the world, this engine's rank among those that live, and slot, uid and name of each
            of them, by rank; None when the endpoint is closed.
        channel, is_near, lives, site: of the process with a uid its channel, or None; whether
            memory is shared with it; whether it lives; where it is.
    """

def refresh_mpi(anew: int, /) -> None:
    """Let MPI see which engines live now, if it has begun; it goes on after MPI_Finalize.

    ``anew``: when a cell was last stopped or failed, as engines are told that go on together; their
    collective calls are numbered from there. Smaller than before: it changes nothing.
    """

@final
class RaiseInstead:
    """A trace function that raises ``error`` in place of the first exception that it is told of.

    ``end(frame)`` is called before, and takes it out again.
    """

    def __new__(cls, error: BaseException, end: Callable[[FrameType], object]) -> Self: ...
    def __call__(self, frame: FrameType, event: str, argument: object, /) -> Self: ...

def set_main_line(function: Callable[[], tuple[str, int, bool] | None], /) -> None:
    """Ask ``function`` which line the main thread is in: code, line, whether it waits for input."""

@final
class LabLink:
    """Carries IP packets between two devices of ``open_tun``, in a thread of its own.

    At first without delay, limit or loss. The devices are duplicated: close yours. Thread-safe;
    every method but ``close`` raises ValueError when it is closed.
    """

    def __new__(cls, one: int, other: int, seed: int = 0, /) -> Self:
        """``seed``: of what happens by chance; the same again for the same packets. OSError."""

    def set(
        self,
        back: bool,
        /,
        *,
        delay_s: float | None = None,
        rate_bits_per_s: float | None = None,
        queue_bytes: int | None = None,
        loss: float | None = None,
        cross_bits_per_s: float | None = None,
        down: bool | None = None,
    ) -> None:
        """Change one direction, for packets that come from now on; None: as it is.

        Args:
            back: from ``other`` to ``one``; otherwise there.
            delay_s: seconds from the end of the queue to the other side, up to 60.
            rate_bits_per_s: of whole IP packets; infinity: no queue.
            queue_bytes: that may wait, with the packet that is being sent; what comes then is
                dropped.
            loss: share of the packets that are lost after the queue.
            cross_bits_per_s: packets of others, by chance, which go no further than the queue.
            down: everything disappears, also what is on its way.
        Raises:
            ValueError: one of them is out of range; nothing was changed.
        """

    def forget(self) -> None:
        """From now on connections that there are already are reset when they send something."""

    def report(self) -> dict[str, Any]:
        """What has happened since the start, or ``clear``.

        ``there`` and ``back``: packets and bytes ``offered``, ``delivered``, packets dropped by
        the queue (``full``), by chance (``lost``), by ``cut``; packets of ``others``; bytes that
        were in the queue at most (``deepest``). ``late_count``, ``late_mean_s``, ``late_p99_s``,
        ``late_max_s``: how much later than intended packets were delivered. ``waited_s``: how long
        the thread could have run and did not get a processor; None where the kernel does not tell.
        ``reset``, ``refused`` by a device: packets. ``failure``: why it has ended by itself.
        """

    def clear(self) -> None:
        """Count from 0 again."""

    def close(self) -> None:
        """Carry nothing any more; again: no effect."""

def open_tun(name: str, /) -> int:
    """Make a TUN device in this thread's network namespace: its descriptor, which never blocks.

    The device is there as long as the descriptor is open. Raises OSError: no such devices here
    (ENOENT), not allowed (EACCES, EPERM), the name is taken (EBUSY).
    """

def unshare(flags: int, /) -> None:
    """``os.unshare`` of Python 3.12. Raises OSError."""

def setns(namespace: int, /) -> None:
    """``os.setns`` of Python 3.12, for a descriptor of a namespace of any kind. Raises OSError."""

@final
class Segment:
    """A process's file in shared memory: state, doorbell, arrivals; locked while it lives."""

    @staticmethod
    def create(path: _Path, uid: str, info: str) -> Segment:
        """Make the file, mode 0600, its pages reserved. Raises SegmentFull, OSError."""

    @property
    def path(self) -> str: ...

@final
class CallHooks:
    """What the methods of ``Calls`` ask Python for. Each function is given the ``Calls`` first."""

    def __new__(
        cls,
        *,
        channel: Callable[[Any, Any], Channel],
        successor: Callable[[Any, Any, PeerLost, Channel], Channel],
        canonical: Callable[[Any, Any, bool], Any],
        begin_wait: Callable[[Any, dict[str, Any]], tuple[str, Callable[[], str | None]] | None],
        timed_out: Callable[[Any, float, dict[str, Any]], RecvTimeout],
        would_block: Callable[[Any, dict[str, Any]], WouldBlock],
        polled: Callable[[Any, str, float | None, dict[str, Any]], str],
    ) -> Self:
        """
        Args:
            channel: the channel to a destination to which nothing was sent before.
            successor: of a destination, the error that a send has ended with, and the channel that
                it took: the channel to the process that has taken over its name, or it raises.
            canonical: the name of the process with a rank; whether anybody new has sent something.
            begin_wait: called with the template when ``recv`` is about to sleep: the text for
                observers, and a function that is called about every 100 ms, and returns what
                observers are to know (JSON) or None. None instead of both: ``recv`` begins again.
            timed_out: the error of a ``recv`` that got nothing within these seconds.
            would_block: the error of a ``recv_nb`` that found nothing.
            polled: JSON for observers about a call, by its name, timeout and template, that has
                found nothing.
        """

@disjoint_base
class Calls:
    """What endpoints and contexts inherit from.

    Its methods are the functions ``send``, ``recv``, ``recv_nb`` and ``peek`` below; the class that
    inherits from it assigns them to its attributes.
    """

    _buffering: int
    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
    def _wire(
        self,
        inbox: Inbox,
        channels: dict[Any, Channel],
        ranks: dict[int, Any],
        hooks: CallHooks,
        context: int = 0,
    ) -> None:
        """Connect the calls with an inbox, the channels by name, and the names by rank.

        They send and receive in ``context``, 64 bits; 0 is the user's own.
        """

    def _any(self, templates: list[dict[str, Any]], take: bool) -> tuple[int, Message] | None:
        """The first template that a message fits, and the message; with ``take`` it leaves.

        All templates are looked at at one instant. None if there is none.
        """

def send(self: Calls, /, *, dest: Any, **attributes: Any) -> None:
    """Send a message with these attributes to ``dest``; ``src`` is added.

    The message is then in the receiver's inbox, or on its way there. Values may be changed
    or reused at once.

    Blocks: while ``buffering`` bytes of earlier messages wait unreceived at ``dest``; with
        ``buffering=0`` until this message was received. Stop (KeyboardInterrupt) ends the
        wait: then nothing was sent (with ``buffering=0``: or it stays in the inbox).
    Args:
        dest: name or rank of the destination. Required.
        attributes: any names but ``src``, any values that can be pickled.
    Raises:
        AddressError: ``dest`` is missing, or ``src`` was given.
        UnknownName: nobody is called ``dest``; the error lists who is there.
        EncodeError: a value cannot be pickled.
        PeerLost: ``dest`` has died, or dies while the call waits.
        MessageTooLarge: ``dest`` has no memory for it.
        MessagesLost: ``dest`` could not read what it was sent before; sent again, it arrives.
        SegmentFull: shared memory has no room for the way to ``dest``.
        EndpointClosed: this endpoint was closed.
        In every case nothing was sent.
    Order, Cost: messages to one destination arrive in the order sent, whatever their size.
        On one machine large values are copied once, small ones twice; arrays of numbers are
        not pickled.
    Source: SFM paper, section 2.
    Example:
        >>> with sfm_kernel.join("doc", name="A") as sfm:
        ...     sfm.send(dest="A", mytag=42, input=[1, 2])
        ...     sfm.recv(mytag=42)
        Message: {'dest': 'A', 'src': 'A', 'mytag': 42, 'input': [1, 2]}
    """

def recv(self: Calls, timeout: float | None = None, /, **template: Any) -> Message:
    """Take the first message, in order of arrival, that has every attribute of the template.

    A template value is compared with ``==``; a callable one is a predicate on the value.
    Without a template the oldest message is taken. What does not match stays queued.

    Blocks: until a message matches, or for ``timeout`` seconds. Stop (KeyboardInterrupt)
        ends it within 100 ms; the message is then still queued.
    Args:
        timeout: seconds, by position only, so that an attribute may be called ``timeout``.
        template: attributes that the message must have; ``src`` matches name and rank.
    Returns:
        The message. Its values are the caller's own, and writable. To read one that was pickled
        runs code of the sender, a member of the world; ``print`` reads all of them.
    Raises:
        RecvTimeout: nothing matched in time.
        PeerLost: the ``src`` of the template has died or left, and nothing it had sent matches.
        MatchError: ``==`` has no truth value (an array). The message stays queued.
        EndpointClosed: this endpoint was closed. What a predicate raises is passed on.
    Order, Cost: arrival order. Messages that do not match cost nothing, however many.
    Source: SFM paper, sections 2 and 4.3.
    Example:
        >>> with sfm_kernel.join("doc", name="A") as sfm:
        ...     for tag in (7, 23, 42):
        ...         sfm.send(dest="A", tag=tag)
        ...     sfm.recv(tag=42).tag                        # this value
        ...     sfm.recv(tag=lambda tag: tag > 10).tag      # a condition
        ...     sfm.recv(1.5).tag                           # any, within 1.5 seconds
        42
        23
        7
    """

def recv_nb(self: Calls, /, **template: Any) -> Message:
    """Take the first message that is in the inbox now and has every attribute of the template.

    Blocks: never. Otherwise it is ``recv``.
    Args:
        template: attributes that the message must have, as for ``recv``.
    Returns:
        The message.
    Raises:
        WouldBlock: no queued message matches; the inbox is unchanged. Otherwise as ``recv``.
    Example:
        >>> with sfm_kernel.join("doc", name="A") as sfm:
        ...     sfm.send(dest="A", tag=1)
        ...     sfm.recv_nb(tag=1).tag
        ...     sfm.recv_nb(tag=1)
        Traceback (most recent call last):
        sfm_kernel.errors.WouldBlock: ...
    """

def peek(self: Calls, /, **template: Any) -> bool:
    """Whether a queued message has every attribute of the template. Changes nothing.

    Blocks: never.
    Args:
        template: as for ``recv``; without any: is there a message?
    Raises:
        As ``recv_nb``, but never WouldBlock.
    Example:
        >>> with sfm_kernel.join("doc", name="A") as sfm:
        ...     sfm.send(dest="A", tag=1)
        ...     sfm.peek(tag=1), sfm.peek(tag=2), sfm.peek()
        (True, False, True)
    """

@final
class Outcome:
    """The codes of what a round at a tree came to."""

    NOTHING: Final[int]
    INTS: Final[int]
    FLOATS: Final[int]
    BYTES: Final[int]
    LARGE: Final[int]
    """Something found no room: it has to go another channel."""
    MIXED: Final[int]
    MISMATCH: Final[int]
    """The members are not in the same call."""
    RESULT: Final[int]
    """What Python's combining came to."""
    FAILURE: Final[int]
    """Why Python's combining has failed."""
    DUTY: Final[int]
    """The caller came last, and has to combine what all have brought, and to ``conclude``."""
    BROKEN: Final[int]
    """The round was broken off, by the member at the place that the result is."""
    STRANGE: Final[int]
    """Nothing was done, since the value has to be packed."""

@final
class Operation:
    """The codes of what is done with numbers in a round at a tree."""

    KEEP: Final[int]
    """Nothing: everybody looks at what the others brought."""
    ADD: Final[int]
    MULTIPLY: Final[int]
    MIN: Final[int]
    """As Python's ``min``: the first, unless the second is smaller."""
    MAX: Final[int]
    MINIMUM: Final[int]
    """As NumPy's ``minimum``: a NaN prevails."""
    MAXIMUM: Final[int]
    OTHER: Final[int]
    """Python does it."""

@final
class CombiningTree:
    """Memory that the members of a group share, for barriers and small reductions.

    A file that the first to come makes and the last to come unlinks.
    """

    room: int
    """Bytes that a member can bring to a round."""

    def __new__(
        cls, inbox: Inbox, path: _Path, fresh: _Path, members: int, place: int
    ) -> CombiningTree:
        """Map ``path``, made under the name ``fresh`` if there is none; ``place`` is the own one.

        Raises SegmentFull, OSError; ValueError where ``path`` is no tree for so many.
        """

    def meet(
        self,
        call: int,
        detail: int,
        op: int,
        value: Any,
        packed: bytes | None,
        out: Any,
        text: str,
        tick: Callable[[list[int]], object],
    ) -> tuple[int, Any]:
        """One round of all members: returns when all have come, or it was broken off.

        Args:
            call, detail: 64 bits each, equal on all members.
            op: what is done with numbers: one of ``Operation``.
            value: a float, an int, a contiguous array, None; or what is ``packed``.
            out: where value is an array: one of the same kind for the result.
            text: what observers are told about the wait.
            tick: called with the places of the missing about every 100 ms of a wait. What it
                raises breaks the round off and is raised here.
        Returns:
            What it came to (one of ``Outcome``), and the result.
        """

    def conclude(self, result: bytes, failed: bool) -> bool:
        """The last to come, after its duty; false if the round was broken off meanwhile."""

    def cells(self, raw: bool) -> list[Any]:
        """What each member brought, numbers as such unless ``raw``; until the next ``meet``."""

    def break_off(self) -> bool:
        """Break off the round that this member is in; false if it was decided before."""

    def abandon(self) -> bool:
        """Break off the round that comes next."""

    @property
    def broken_by(self) -> int | None:
        """The place of who has broken off this member's round."""

@final
class Ledger:
    """What one member of a group has called so far, and the group's tree."""

    tree: CombiningTree | None
    def __new__(cls) -> Ledger: ...
    def enter(self) -> None:
        """Begin a call: one at a time. Raises CollectiveError."""

    def leave(self) -> None: ...
    @property
    def busy(self) -> bool: ...
    def begin(self, made: Any, mark: int) -> None:
        """Write down a call; ``mark`` is equal for equal calls."""

    def made(self) -> list[Any]:
        """The latest calls, as they were written down."""

    def reset(self) -> None:
        """Forget all calls, and the tree."""

    @property
    def count(self) -> int: ...
    @property
    def chain(self) -> int:
        """A hash of all calls."""

@final
class Known:
    """What is known of a call before it is made."""

    def __new__(cls, number: int, array: int, mark: int, made: tuple[str, str]) -> Known:
        """The operation on numbers and that on arrays: one of ``Operation``, ``KEEP`` if none."""

@final
class CollectiveHooks:
    """What ``Collectives`` asks Python for. Each function is given the ``Collectives`` first."""

    def __new__(
        cls,
        *,
        barrier: Callable[[Any, str | None], None],
        allreduce: Callable[[Any, Any, Callable[[Any, Any], Any], Any, str | None], Any],
        learn: Callable[[Any, Any], Known | None],
        settle: Callable[[Any, int, Any, Any, Any, tuple[Any, ...], Any], Any],
        failed: Callable[[Any, BaseException], Any],
    ) -> Self:
        """
        Args:
            barrier, allreduce: the calls where they do not go through a tree: ``algorithm``;
                ``value``, ``op``, ``out``, ``algorithm``.
            learn: what is known of an operation; None if it is none.
            settle: a round at the tree came to this code and result, for ``value`` and ``op``, of
                the call as it was written down, with the user's ``out``: the call's result.
            failed: a round was broken off by this error: the call's result, or it raises.
        """

@disjoint_base
class Collectives:
    """What a group inherits ``barrier`` and ``allreduce`` from."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
    def _wire(
        self,
        ledger: Ledger,
        tick: Callable[[list[int]], object],
        barrier: Known,
        hooks: CollectiveHooks,
    ) -> None: ...
    def barrier(self, *, algorithm: str | None = None) -> None: ...
    def allreduce(
        self,
        value: Any,
        op: Callable[[Any, Any], Any] | None = None,
        *,
        out: Any = None,
        algorithm: str | None = None,
    ) -> Any: ...

@final
class Inbox:
    """All that arrived and was not received; and the doorbell that wakes who waits for it.

    Owns its segment from then on; without one it lives on the heap, for endpoints of one process.
    """

    def __new__(cls, segment: Segment | None = None) -> Inbox: ...
    def wait_until(
        self,
        look: Callable[[], object],
        text: str,
        tick: Callable[[], object],
        sending: bool = False,
        limit: float | None = None,
    ) -> None:
        """Return when ``look()`` is true; it is called whenever something may have come.

        Args:
            text: what observers are told about the wait; nothing if it is empty.
            tick: called about every 100 ms; what it raises ends the wait.
        """

    @staticmethod
    def location() -> int:
        """Where in its program this thread is now, for ``help``."""

    def help(self, number: int, location: int, apart: bool) -> None:
        """This thread works from now on for a call that another one has made at ``place``.

        What it sends is then seen to come from there, and its waits are not shown: whoever waits
        for it tells what it waits for. ``number``: any but 0, and no other helper's.
        ``apart``: it goes on beside calls that do not wait for it.
        """

    def end_help(self) -> None:
        """The end of ``help``."""

    def helper_facts(self, number: int) -> str | None:
        """What a helper waits for, as ``wait_until`` is to tell it; None before it is known."""

    def rest(self, limit: int) -> None:
        """Wait until something has come, for at most ``limit`` microseconds."""

    def wake(self) -> None:
        """Let all who are in ``wait_until`` look again."""

    def serve(self, choose: Callable[[Message], Callable[[Message], object] | None]) -> None:
        """The network thread's work, until the inbox closes.

        Keeps rings from filling up, writes what observers wish, and while callbacks are
        registered shows every message to ``choose``: what that returns is called with the
        message, which counts as received then; None leaves it in the queue.
        """

    def set_callbacks(self, active: bool) -> None:
        """Whether callbacks are registered."""

    def set_running(self, running: bool) -> None:
        """Show observers "running" or "idle"."""

    def set_waiting(self, text: str, facts: str) -> None:
        """Show observers that this process waits for others to end a cell."""

    def set_others(self, others: str) -> None:
        """Show observers what could go on meanwhile, or what a program has left: JSON."""

    def end_waiting(self) -> None:
        """It waits no more."""

    def polled(self, tell: Callable[[], str]) -> None:
        """A call has asked in vain for what ``tell()`` says, as JSON; it is seldom called."""

    def trace_off(self) -> None:
        """Record no events from now on."""

    def set_info(self, info: str) -> None:
        """What observers are told about the process: JSON, at most 4096 bytes."""

    @property
    def depth(self) -> int:
        """Messages in the queue."""

    @property
    def closed(self) -> bool: ...
    def close(self) -> None:
        """End every blocked call with EndpointClosed. Idempotent."""

    def abandon(self) -> None:
        """In a forked child: close without touching what is the parent's."""

@final
class Channel:
    """The way to one incarnation of a peer, through one transport. Thread-safe.

    ``check()`` raises where nothing can arrive at the peer any more; it is called where there is
    reason to doubt that, and about every 100 ms of a wait.
    """

    @staticmethod
    def ring(
        inbox: Inbox,
        peer_segment: _Path,
        peer_uid: str,
        slot: int,
        capacity: int,
        arena: int,
        dest: str | int,
        src: str | int,
        check: Callable[[], object],
    ) -> Channel:
        """To a process that shares memory: makes the ring, a file of its own.

        It has ``capacity`` bytes, and up to ``arena`` bytes for large values.
        """

    @staticmethod
    def link(link: Link, dest: str | int, src: str | int, check: Callable[[], object]) -> Channel:
        """Through a link; large messages in parts, as the peer takes them in."""

    @staticmethod
    def local(
        inbox: Inbox,
        uid: str,
        peer: Inbox,
        peer_uid: str,
        dest: str | int,
        src: str | int,
        check: Callable[[], object],
    ) -> Channel:
        """From ``inbox``, of the member ``uid``, to an inbox of this process, or to itself."""

    @property
    def kind(self) -> str:
        """``"shm"``, ``"tcp"`` or ``"inproc"``."""

    def send(self, packet: Packet, buffering: int) -> None:
        """Put ``packet`` on its way; order is kept between calls.

        Blocks while more than ``buffering`` bytes of earlier packets to this peer were not yet
        received (a packet larger than that passes alone); with ``buffering=0`` it returns when
        the packet itself was received. Interrupted by KeyboardInterrupt. A packet's cost is its
        length plus 128 bytes.

        Raises:
            PeerLost: the peer died; the packet was not delivered.
            EndpointClosed: the own endpoint was closed meanwhile.
        """

@final
class Exchange:
    """All connections to other machines of one endpoint: its links, and what peers deliver.

    Raises EndpointClosed when it is closed.
    """

    def __new__(
        cls,
        inbox: Inbox,
        uid: str,
        key: bytes,
        site: str,
        address: str,
        listener: int,
        strangers: int,
        patience: float | None = None,
    ) -> Exchange:
        """
        Args:
            key: the world's.
            address: what peers connect to, "tcp://IP:port".
            listener: descriptor of the listening socket, which does not block and is the
                exchange's from now on.
            strangers: how many connections may stand open that have not shown the key.
            patience: seconds after which a peer that cannot be reached is given up; None: never.
        """

    def start(self, name: str) -> None:
        """Serve who connects, in a thread of this name."""

    def close(self) -> None:
        """Stop, when all that was sent has arrived or a peer does not answer."""

    def link(self, uid: str, address: str, site: str = "") -> Link:
        """The link to a peer. If it is new, a connection is about to be made."""

    def set_gateways(self, listed: list[tuple[str, str, str]]) -> None:
        """These are the world's gateways now: uid, site and address of each."""

    def tell_gone(self, uids: list[str]) -> None:
        """These peers have left or died: the directory says so."""

    def known(self, uid: str) -> Link | None:
        """The link to a peer, if there is one."""

    def connections(self) -> list[dict[str, Any]]:
        """The connections that lead to other sites or to gateways, as they are now.

        Of each: ``gateway`` (its uid, if it leads to one), ``peers`` (uids; of a gateway's the
        first 16 of ``count``), ``site`` (its number), ``address``, ``algorithm``, ``refused`` (the
        one that the kernel would not give), ``warm`` ("bbr", "heartbeat" or "": what keeps it from
        forgetting in a silence how much it carries), ``unsent_s``, ``silent_s``,
        ``timeouts_lately`` (how many, and in how many seconds), ``idle_restarts``,
        ``last_restart`` (``ago_s``, ``silence_s``, ``from`` and ``to`` in packets, ``rtt_s``,
        ``cost_s``: how much later what followed arrived), ``tcp``: see ``tcp_info``.

        Cost: two system calls for each.
        """

    def settled(self, uid: str) -> bool:
        """Whether all that a dead peer had sent has come in, as far as can be known."""

def knock(key: bytes, sender: str, receiver: str) -> bytes:
    """What lets a connection to the member ``receiver`` stay open though nothing else is said.

    Args:
        key: the world's.
        sender: uid of who wants to see whether the member lives, and is none itself.
    """

def abandon_connections() -> None:
    """In a forked child: give up its copies of the parent's connections."""

@final
class Link:
    """The conversation with one peer: everything in order, exactly once. Thread-safe."""

    @property
    def uid(self) -> str: ...
    @property
    def address(self) -> str: ...
    @property
    def up(self) -> bool:
        """The peer has answered on the present connection."""

    @property
    def lost(self) -> str | None:
        """Why nothing will ever arrive at the peer any more; None while it may."""

    @property
    def kind(self) -> str:
        """How messages travel: "tcp", or "gateway" through gateways."""

    @property
    def silence(self) -> tuple[float, str] | None:
        """Seconds for which the peer has not answered, and what gateways say of it; None while it
        does."""

    @property
    def waiting(self) -> int:
        """Cost of what was sent and is not yet received."""

    def _break(self) -> None:
        """End the connection, as if it broke: for tests."""
