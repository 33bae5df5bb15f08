"""The compiled core: packets, matching, segments, rings, doorbells.

Not for users: ``sfm_kernel.message``, ``sfm_kernel.endpoint`` and ``sfm_kernel.transport`` are
built on it and documented for them. Calls that block release the GIL, end with
KeyboardInterrupt within 100 ms of a signal, and with EndpointClosed when their inbox closes.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, Self, final

from typing_extensions import Buffer, disjoint_base

from sfm_kernel.errors import PeerLost, RecvTimeout, WouldBlock

__all__ = [
    "ANSWERS",
    "ANSWER_SECONDS",
    "BUFFERING",
    "COUNTED",
    "GATEWAY_KEY_BYTES",
    "INBOX_IRRELEVANT",
    "JUDGEMENT_BYTES",
    "LARGEST_FRAME",
    "LIBRARY",
    "MAIN_THREAD_STATES",
    "MAX_DEPARTED",
    "MAX_MEMBERS",
    "MESSAGE_EVENTS",
    "MOST_CONNECTIONS",
    "OBSERVER_SHIFT",
    "OTHERS_BYTES",
    "SCHEDULERS",
    "SHOWN_CHARACTERS",
    "SITES",
    "STATES",
    "SUMMARY_UNIT",
    "UNSETTLED",
    "CallHooks",
    "Calls",
    "Channel",
    "CollectiveHooks",
    "Collectives",
    "CombiningTree",
    "Exchange",
    "Gateway",
    "Inbox",
    "JoinRequest",
    "Known",
    "LabLink",
    "Ledger",
    "Link",
    "LocalDirectory",
    "Member",
    "Message",
    "Name",
    "Observer",
    "OpenDirectory",
    "Operation",
    "Outcome",
    "Packet",
    "Region",
    "RemoteDirectory",
    "Segment",
    "ServerClient",
    "Table",
    "WorldFolder",
    "abandon_connections",
    "arena_bytes",
    "check_key",
    "check_private",
    "check_site",
    "check_world",
    "clean_worlds",
    "congestion",
    "decode",
    "derived_pair",
    "frame_of",
    "gateway_key",
    "is_alive",
    "judge",
    "key_pair",
    "location_words",
    "make_folder",
    "make_root",
    "matches",
    "native_handlers",
    "native_stack",
    "open_tun",
    "pack",
    "peek",
    "recv",
    "recv_nb",
    "refresh_mpi",
    "remove_dead",
    "remove_sites",
    "remove_unused",
    "remove_world",
    "requested_site",
    "resolve",
    "ring_bytes",
    "root",
    "send",
    "set_bystanders",
    "set_congestion",
    "set_locator",
    "set_main_line",
    "set_mpi",
    "set_mpi_buffering",
    "set_mpi_world",
    "set_variables",
    "setns",
    "site_of_host",
    "sites_folder",
    "sleeps",
    "stacks",
    "stretched",
    "tcp_info",
    "unshare",
    "worlds",
]

_Path = str | os.PathLike[str]

GATEWAY_KEY_BYTES: Final[int]
"""Bytes of the key that gateways get."""

Name = str | int
"""A process's address for others: its name, or its rank."""

MAX_DEPARTED: Final[int]
"""The most departed members that a table remembers."""
ANSWER_SECONDS: Final[float]
"""Seconds in which a directory server must answer. One that has ended is noticed much earlier."""

LARGEST_FRAME: Final[int]
"""The most bytes of a frame to a directory server: requests travel in pieces."""

MAX_MEMBERS: Final[int]
"""Processes that one world can hold: the width of the arrival bitmap in a segment."""

BUFFERING: Final[int]
"""Bytes of unreceived messages that one sender may leave in one inbox before ``send`` waits."""

COUNTED: Final[int]
"""Bit of a context's number: its messages wait until they are received. Without it they are news,
which count as received when they arrive."""

ANSWERS: Final[int]
"""Bit of a context's number: acknowledgements of another context's messages."""

LIBRARY: Final[int]
"""Bit of a context's number: its messages are a library's, and do not use the user's buffering."""

STATES: Final[tuple[str, ...]]
"""The states of a process that a segment can have."""

MAIN_THREAD_STATES: Final[tuple[str, ...]]
"""The states of a main thread while its process is in no call."""

MESSAGE_EVENTS: Final[tuple[str, ...]]
"""The events of messages in a trace: "sent", "received", and "answered" and "heard" at the two
ends of an acknowledgement. Its other events are ``STATES``."""

UNSETTLED: Final[int]
"""In ``examined``: a blocked call has not examined the messages that have arrived, or the other
side can end it by itself."""

INBOX_IRRELEVANT: Final[int]
"""In ``examined``: no message that arrives can end the call."""

SITES: Final[str]
"""The suffix of the folder for a world's sites, after the world's name."""

SUMMARY_UNIT: Final[str]
"""The separator of a name and its value in the summary of an inbox."""

SHOWN_CHARACTERS: Final[int]
"""Characters of a text that a summary shows, at most."""

OTHERS_BYTES: Final[int]
"""Bytes of the text about a blocked call's bystanders, at most."""

JUDGEMENT_BYTES: Final[int]
"""Bytes of a judgement, at most."""

OBSERVER_SHIFT: Final[int]
"""The first bit of the observer's number in an order to end a call."""

SCHEDULERS: Final[tuple[str, ...]]
"""The names of the schedulers by which a gateway shares its connections among flows."""

MOST_CONNECTIONS: Final[int]
"""Connections between two gateways, at most."""

@final
class Packet:
    """One encoded message. Supports the buffer protocol (read-only, contiguous)."""

    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Region:
    """Memory of a received packet: writable, and alive as long as it is referred to."""

    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Message:
    """A received packet. Its values are decoded when they are first read.

    ``m.tag`` and ``m["tag"]`` are the value of an attribute, ``"tag" in m`` shows whether there is
    one, and ``dict(m)`` has all of them; ``src`` and ``dest`` are always there. Values are the
    receiver's, and writable, arrays too.

    Reading a pickled value runs code of the message's maker: in a world, a member.
    ``repr`` and every display read all values.
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
    def keys(self) -> list[str]:
        """The names of the attributes, as sent. Makes ``dict(message)`` work."""

def pack(attributes: dict[str, Any], /, context: int = 0) -> Packet:
    """Encode ``attributes`` in their order, for the queue of ``context`` (0: the endpoint's).

    Raises EncodeError, which names the attribute.
    """

def decode(data: Buffer, /) -> tuple[list[Message], bytes]:
    """The complete messages at the head of ``data``, and the remaining bytes. Raises PacketError.

    Reading a pickled value runs code of the process that has made the packet.
    """

def matches(message: Message, template: dict[str, Any], /) -> bool:
    """Whether ``message`` has every attribute of ``template``. Raises as ``recv``."""

@final
class Observer:
    """Reads the segments of one world's processes without their help. Thread-safe.

    Files stay open as long as the calls name them: drop the object when it is no longer used.
    Changes to a segment, or its removal, never kill the observer.
    """

    def __new__(cls) -> Self: ...
    def segments(self, paths: Sequence[_Path], /) -> list[dict[str, Any] | None]:
        """State and counters of each process; None if there is no segment.

        Waits up to 50 ms for their network threads to publish the queued messages. A damaged
        segment gives only ``alive`` and the state "damaged"; texts of others may be damaged.
        """

    def calls(self, paths: Sequence[_Path], /) -> list[tuple[str, int] | None]:
        """The state of each process, and the number of its latest blocked call. Does not wait."""

    def pulses(self, paths: Sequence[_Path], /) -> list[int]:
        """For each segment a number that changes with its contents; 0 if there is none."""

    def trace(
        self, path: _Path, start: int = 0, /
    ) -> tuple[
        list[tuple[int, float, str, str, int, int, int, int, list[tuple[str, str]], int]],
        int,
        list[tuple[int, str]],
    ]:
        """The events of a process's trace, the index of the next, and the texts of codes.

        An event is ``(index, time, event, peer, number, nbytes, code, line, attributes, context)``:
        its index in the process's history; seconds since 1970; one of ``MESSAGE_EVENTS`` or
        ``STATES``; the last 16 digits of the peer's uid; the number of the message of that pair;
        its bytes; the code and line of the program; the message's first attributes as texts; and
        the first 16 bits of its context's number (1 if they are 0), or 0 for a user's message.
        Only events from ``start`` on that have not been overwritten; none without a segment, or if
        it is damaged.
        """

def judge(path: _Path, step: str, call: int, judgement: str = "", /) -> bool:
    """Take a step towards the end of another process's blocked call.

    False if the call is over, or if another observer has prepared its end.

    Args:
        step: "prepare": the call takes no message from now on; "commit" ends it with
            DeadlockDetected; "abort" lets it go on.
        call: its number; and from the bit ``OBSERVER_SHIFT`` on a number of the observer, which
            only commits or aborts what it has prepared itself.
        judgement: what is prepared: JSON with "cycle" (names) and "why".
    """

def resolve(
    path: _Path, address: int, build_id: str = "", /
) -> tuple[str | None, int, str | None] | None:
    """File, line and function of an address in a binary, from its debug information.

    Without debug information: the function alone (None, 0, its name). None if nothing is known, or
    the build id of the present binary does not begin with ``build_id``. Among inlined functions it
    is the innermost that is in no system's header.
    Cost: some ms for a binary that was not read before, or has changed since; then 2 us.
    """

def gateway_key(world: bytes, /) -> bytes:
    """The key that gateways get, derived from the world's: ``GATEWAY_KEY_BYTES``.

    With it a gateway opens what is sealed for it, and recognises the world's processes. It cannot
    speak as one (native/src/frame/gateway_key.rs).
    """

@final
class Gateway:
    """A gateway between sites: a thread that forwards frames (native/src/gateway). Thread-safe.

    It takes no signals and does not need the GIL. In a forked child it does nothing.
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
            key: the gateway key, see ``gateway_key``.
            algorithm: TCP's congestion control to other gateways. By default bbr; if the kernel
                does not offer it, four connections with the kernel's default.
            connections: to each other gateway, 1 to 64.
            mptcp: request MPTCP; ``status`` shows whether it is used.
            pacing: bytes per second to each other gateway, at most.
            scheduler: "fifo", "round-robin" or "smallest".
            delay, limit: emulate a path between sites: seconds one way, and bytes per second.
        Raises:
            SFMError: the address is not available, or the kernel refuses the algorithm.
            ValueError: an argument is not valid.
        """

    @property
    def uid(self) -> str: ...
    @property
    def address(self) -> str: ...
    def peers(self, listed: list[tuple[str, str, str]], /) -> None:
        """Set the list of all gateways of the world: uid, site, address. Raises ValueError."""

    def weights(self, weights: dict[str, float], /) -> None:
        """Set the weights of senders' frames, by uid; all others have 1. Raises ValueError."""

    def status(self) -> str:
        """Its state, as JSON (native/src/gateway/status.rs); "{}" once it is closed."""

    def close(self) -> None:
        """Close it and all its connections. Idempotent."""

def tcp_info(socket: int, /) -> dict[str, int | float | None]:
    """The kernel's TCP_INFO of a file descriptor; see ``transport.tcp_info``."""

def congestion(socket: int, /) -> str:
    """The congestion control that a TCP socket uses, such as "cubic". Raises OSError."""

def set_congestion(socket: int, name: str, /) -> None:
    """Change it, and verify with the kernel. Raises OSError; see ``transport.tcp_info``."""

def set_bystanders(function: Callable[[], str], /) -> None:
    """Have blocked calls get the text about their bystanders from ``function``."""

def set_locator(function: Callable[[str, str], str | None], /) -> None:
    """Have ``function(filename, name)`` describe a code object; None: it is not shown."""

def location_words(location: int, /) -> str:
    """A line of the program for a sentence, " in a.py, line 3 (step)"; "" if it is unknown."""

def set_mpi(
    call: Callable[[], tuple[str, list[tuple[str, str]]] | None],
    site: Callable[[FrameType], tuple[str | None, str, int] | None],
    noted: Callable[[], Callable[[str], None] | None],
    reduction: Callable[[], tuple[str, str | None, int | None, bool] | None],
    /,
) -> None:
    """Connect this process's MPI calls with its Python program: ``sfm_kernel.mpi.library``.

    ``call()`` returns the text of the present frame's call for observers, and those of its
    arguments that MPI does not get; ``site(frame)`` returns the text of a frame's call, the text of
    its code, and the line; None if the frame is not the program's.
    ``noted()`` is called when that call is about to raise because bytes that have come are no
    pickled object; the function that it returns adds a text to that exception.
    """

def set_mpi_buffering(nbytes: int, /) -> None:
    """Set the bytes of MPI's standard sends that may wait at another process unreceived.

    0: none, standard sends are synchronous.
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
    """Have MPI_Init find the engines with these functions: ``sfm_kernel.mpi.engines``.

    Only the first call has an effect.
    Args:
        inbox: this engine's.
        members: returns the world, this engine's rank among the living engines, and the slot, uid
            and name of each of them, by rank; None when the endpoint is closed.
        channel, is_near, lives, site: return, for the uid of a process, its channel or None;
            whether memory is shared with it; whether it lives; its site.
    """

def refresh_mpi(anew: int, /) -> None:
    """Update MPI's list of living engines, if MPI has begun; it goes on after MPI_Finalize.

    ``anew``: the time at which a cell was last stopped or failed, equal on all engines that go on
    together; they number their collective calls from there. An earlier time has no effect.
    """

_Frame = tuple[CodeType, int, str]
"""A frame's code, its line, and the name of its module."""

def stacks() -> dict[int, list[_Frame]]:
    """The frames of each thread, innermost first, by the thread's identity.

    No other thread runs meanwhile, and no object of the program lives longer for it. Only the
    innermost 10,000 frames of a stack are listed.
    """

def sleeps(thread: int, /) -> bool:
    """Whether a thread of this process, by its native number, waits for a lock or in an event loop
    that has no files ready, without a limit of time; False if the system does not say."""

def native_handlers() -> list[int]:
    """The signals for which an extension or another native library has a handler of its own."""

def native_stack(pid: int, /) -> list[tuple[Path, int]]:
    """The frames of a process's main thread in a system call: binary and address, innermost first.

    Empty if it is in none, or the system does not show it to this process.
    """

def frame_of(coroutine: object, /) -> _Frame | None:
    """The frame of a coroutine, which may run in another thread; None if it has ended."""

def set_main_line(function: Callable[[], tuple[str, int, bool, bool] | None], /) -> None:
    """Have ``function`` find the main thread's line: code, line, whether it waits for input, and
    whether only a message could release a lock that it waits for."""

def set_variables(function: Callable[[], int], /) -> None:
    """Have ``function`` give a number that differs if its thread's variables do; 0: unknown."""

@final
class LabLink:
    """Carries IP packets between two devices of ``open_tun``, in a thread of its own.

    At first without delay, limit or loss. The devices are duplicated: close yours. Thread-safe;
    every method but ``close`` raises ValueError when it is closed.
    """

    def __new__(cls, one: int, other: int, seed: int = 0, /) -> Self:
        """``seed``: of random events, which it makes repeatable for equal packets. OSError."""

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
        """Change one direction for all later packets; None: no change.

        Args:
            back: the direction from ``other`` to ``one``; otherwise from ``one`` to ``other``.
            delay_s: seconds from the end of the queue to the other side, up to 60.
            rate_bits_per_s: bits of IP packets per second; infinity: no queue.
            queue_bytes: bytes in the queue at most, with the packet that is being sent; further
                packets are dropped.
            loss: share of the packets that are lost after the queue.
            cross_bits_per_s: random traffic of others, which shares the queue and ends there.
            down: all packets disappear, also those under way.
        Raises:
            ValueError: an argument is out of range; nothing was changed.
        """

    def forget(self) -> None:
        """Reset each connection that exists now when it next sends a packet."""

    def report(self) -> dict[str, Any]:
        """The counters since the start, or ``clear``.

        ``there`` and ``back``: packets and bytes ``offered``, ``delivered``, packets dropped by
        the queue (``full``), by chance (``lost``), by ``cut``; packets of ``others``; the largest
        number of bytes in the queue (``deepest``). ``late_count``, ``late_mean_s``, ``late_p99_s``,
        ``late_max_s``: delays of packets beyond the intended ones. ``waited_s``: seconds that the
        thread was ready to run but had no processor; None if the kernel does not report it.
        ``reset``, ``refused`` by a device: packets. ``failure``: why it has ended by itself.
        """

    def clear(self) -> None:
        """Set the counters to 0."""

    def close(self) -> None:
        """Stop carrying packets. Idempotent."""

def open_tun(name: str, /) -> int:
    """Make a TUN device in this thread's network namespace; return its nonblocking descriptor.

    The device exists as long as the descriptor is open. Raises OSError: the system has no such
    devices (ENOENT), not allowed (EACCES, EPERM), the name is taken (EBUSY).
    """

def unshare(flags: int, /) -> None:
    """``os.unshare`` of Python 3.12. Raises OSError."""

def setns(namespace: int, /) -> None:
    """``os.setns`` of Python 3.12, for a descriptor of a namespace of any kind. Raises OSError."""

@final
class Member:
    """One incarnation of a process of a world, as the directory knows it.

    Two are equal if all but ``info`` are.

    Attributes:
        uid: 32 hexadecimal digits, new each time a process joins.
        slot: a number below ``MAX_MEMBERS``, unique among the living members.
        rank: 0, 1, 2 … for processes that compute; None for a guest, such as a notebook.
        name: its address for others; the rank if the user gave no other name.
        pid, host: for people; never used to decide whether it lives.
        segment: path of its segment on its machine.
        address: it listens there ("tcp://10.0.0.7:41234"); empty if it does not listen.
        info: anything a front end wants others to see (ipyparallel's engine id, for one); "plain"
            says that it is a program with ZeroMQ alone.
        site: the name of its site; by default that of its machine.
        public: the public half of its key pair, 64 hexadecimal digits; empty if it does not listen.
        is_plain: whether it is a program with ZeroMQ alone, which reads no pickled values, and no
            frames of other sites.
    """

    def __new__(
        cls,
        uid: str,
        slot: int,
        rank: int | None,
        name: Name,
        pid: int,
        host: str,
        segment: str,
        address: str,
        info: dict[str, Any] | None = None,
        site: str = "",
        public: str = "",
    ) -> Self: ...
    @property
    def uid(self) -> str: ...
    @property
    def slot(self) -> int: ...
    @property
    def rank(self) -> int | None: ...
    @property
    def name(self) -> Name: ...
    @property
    def pid(self) -> int: ...
    @property
    def host(self) -> str: ...
    @property
    def segment(self) -> str: ...
    @property
    def address(self) -> str: ...
    @property
    def info(self) -> dict[str, Any]: ...
    @property
    def site(self) -> str: ...
    @property
    def public(self) -> str: ...
    @property
    def is_plain(self) -> bool: ...
    @staticmethod
    def from_json(record: dict[str, Any]) -> Member:
        """The entry that ``to_json`` described; raises TypeError on a malformed record."""

    def to_json(self) -> dict[str, Any]:
        """The entry as JSON's own types."""

    def identity(self) -> dict[str, Any]:
        """The attributes by which observers identify it."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class JoinRequest:
    """A process's request to join; ``Directory.join`` and ``Member`` explain the fields.

    Raises BadName or TypeError on invalid values.
    """

    def __new__(
        cls,
        uid: str,
        pid: int,
        host: str,
        segment: str,
        address: str,
        name: Name | None = None,
        rank: int | None = None,
        guest: bool = False,
        names: Sequence[Name] = ...,
        info: dict[str, Any] | None = None,
        site: str | None = None,
        public: str = "",
    ) -> Self: ...
    @property
    def address(self) -> str: ...
    @property
    def public(self) -> str: ...
    @staticmethod
    def from_json(record: dict[str, Any]) -> JoinRequest:
        """The request from ``to_json``'s result; raises TypeError or BadName if malformed."""

    def to_json(self) -> dict[str, Any]:
        """The request as JSON's own types."""

@final
class Table:
    """The members of one world, by slot. At most one entry has a slot, a rank or a name.

    Dead processes stay until a newcomer takes their name or rank, so that a restarted process gets
    back its own and others can see which processes died.

    Attributes:
        departed: the processes that left, for each name the last one, at most ``MAX_DEPARTED``;
            for processes that wait for one of them.
    """

    def __new__(cls) -> Self: ...
    @property
    def members(self) -> list[Member]: ...
    @property
    def departed(self) -> list[Member]: ...
    def admit(self, request: JoinRequest, lives: Callable[[Member], bool]) -> Member:
        """Enter a newcomer as ``Directory.join`` says. On an error the table is unchanged."""

    def find(self, uid: str) -> Member | None:
        """The entry with this uid; None if there is none."""

    def remove(self, uid: str) -> bool:
        """Remove an entry; return whether there was one."""

    def dumps(self) -> bytes:
        """The table as text, for a file."""

    @staticmethod
    def loads(text: bytes) -> Table:
        """The table that ``dumps`` wrote; raises WorldError if it is damaged."""

@disjoint_base
class OpenDirectory:
    """The directory of a world; see ``transport.base.Directory`` for the contract."""

    @property
    def world(self) -> str: ...
    @property
    def folder(self) -> str: ...
    @property
    def key(self) -> bytes: ...
    def leave(self, member: Member) -> None: ...
    def members(self) -> list[Member]: ...
    def listed(self) -> list[Member]: ...
    def departed(self) -> list[Member]: ...
    def alive(self, member: Member) -> bool: ...
    def why_departed(self, member: Member) -> str: ...
    def close(self) -> None:
        """Release the folder, and the connection to a server. Idempotent; does not leave.

        The last process to close a world of one machine that all have left removes it. A world
        whose processes died stays until a process joins a world, or an observer asks which there
        are: it can be seen how they ended.
        """

    def _join(self, request: JoinRequest) -> Member: ...

@disjoint_base
class LocalDirectory(OpenDirectory):
    """The directory of a world on this machine: a table in a file, no server.

    Raises:
        WorldGone: the world does not exist and ``create`` is false.
        WorldAccess: its folder or key belongs to another user, or others could read it.
    """

    def __new__(cls, world: str, create: bool = True) -> Self: ...
    @property
    def table(self) -> str:
        """The path of the file that lists the members."""

@disjoint_base
class RemoteDirectory(OpenDirectory):
    """The directory that a server keeps.

    ``libraries``: paths of libzmq, or of modules linked with it, to try before the system's.
    ``notice(text)`` is called when this process was put out of the world.
    """

    def __new__(
        cls,
        libraries: Sequence[str],
        world: str,
        url: str,
        key: bytes,
        notice: Callable[[str], object],
    ) -> Self: ...
    @property
    def server(self) -> ServerClient:
        """The client of its server."""

    def _gateways(self) -> list[tuple[str, str, str, str]]:
        """Uid, site, address and name of the gateways of all sites, oldest first."""

    def _watch(
        self,
        changed: Callable[[list[tuple[str, str, str, str]], list[Member], dict[str, str]], object],
    ) -> None:
        """Call ``changed`` with gateways, members, and who has departed, now and at each change."""

@disjoint_base
class WorldFolder:
    """One world's folder on this machine, held open: no process removes it meanwhile.

    Raises:
        WorldGone: it does not exist and ``create`` is false.
        WorldAccess: it (or the root) belongs to another user, or others may enter it.
    """

    def __new__(cls, world: str, *, create: bool) -> Self: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: object, raised: object, traceback: object, /) -> None: ...
    @property
    def world(self) -> str: ...
    @property
    def path(self) -> str: ...
    def fileno(self) -> int:
        """The descriptor of the folder, which keeps it from being removed."""

    def close(self) -> bool:
        """Close the folder; return whether it was open. Idempotent."""

def root() -> str:
    """The folder of this user's worlds: ``$SFM_DIR``, or one in shared memory. Not created.

    Raises WorldAccess if SFM_DIR cannot be a folder, or if another user has taken the usual name
    and the user's home cannot record another one.
    """

def make_root() -> str:
    """Make the folder of this user's worlds, and return it."""

def make_folder(path: _Path, /) -> None:
    """Make the folder, closed to others, unless it exists."""

def check_private(path: _Path, /) -> None:
    """Raise WorldAccess unless the folder belongs to the user and is closed to others."""

def check_world(world: str, /) -> str:
    """The name itself; raises BadName if it is not a world's name."""

def check_site(site: Any, /, given: str = "site") -> str:
    """The name, if it is valid: 1 to 64 printable characters, none of them a space.

    ``given``: the argument or variable that it comes from, for the error. Raises BadName.
    """

def requested_site(site: str | None, /) -> str:
    """The site that a process requests: ``site``, or that of ``SFM_SITE``. Raises BadName.

    "" stands for the machine's site.
    """

def site_of_host(host: str, /) -> str:
    """The default site of a machine: its name, without characters that a site's cannot have."""

def is_alive(segment: _Path, /) -> bool:
    """Whether the process that made the segment runs: it holds the file's lock. About 5 µs.

    A segment that does not exist belongs to a process that left. If the segment cannot be opened
    (for want of descriptors), its owner counts as alive.
    """

def worlds() -> list[str]:
    """The worlds of this user on this machine in which a process lives, by name.

    Those whose last process has died are removed, see ``remove_dead``.
    """

def remove_dead() -> None:
    """Remove the worlds whose last process has died: their keys and messages are nobody's.

    A world that its owner has made for others, as ``run`` does, stays for as long as the owner
    lives, which looks at how they ended and then removes it.
    """

def clean_worlds() -> list[str]:
    """Remove the files of dead processes; returns the paths that were removed."""

def remove_world(world: str, /) -> bool:
    """Remove a world in which no process lives; return whether it no longer exists.

    If a process lives in the world, or has it open, only the files of dead processes are removed.
    The caller closes its endpoint and directory first.
    """

def sites_folder(world: str, /) -> str:
    """The folder for those sites of a world that share this machine; each has a folder in it."""

def remove_sites(world: str, /) -> list[str]:
    """Remove the sites of a world in which no process lives; returns the paths removed."""

def remove_unused(path: _Path, /) -> bool:
    """Remove a world's folder, unless a process has it open; return whether none has."""

def ring_bytes(folder: _Path, /) -> int:
    """The size of a ring in this folder, in bytes.

    ``SFM_RING_BYTES``, a power of two, or the default, which is less if there is little room.
    Raises ValueError.
    """

def arena_bytes() -> int:
    """The arena's size in bytes: ``SFM_ARENA_BYTES``, 0 for none, or the default."""

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
    """Python functions that the methods of ``Calls`` use. The first argument is the ``Calls``."""

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
            channel: returns the channel to a destination to which nothing was sent before.
            successor: called with a destination, the error of a send, and the channel that it used:
                returns the channel to the process that has taken over the name, or raises.
            canonical: called with a rank, and whether a new process has sent something: returns the
                name of the process with that rank.
            begin_wait: called with the template when ``recv`` is about to sleep: returns the text
                for observers, and a function that ``recv`` calls about every 100 ms, which returns
                facts for observers (JSON) or None. None instead of both: ``recv`` begins again.
            timed_out: returns the error of a ``recv`` that got nothing within these seconds.
            would_block: returns the error of a ``recv_nb`` that found nothing.
            polled: called with the name, timeout and template of a call that found nothing: returns
                JSON for observers.
        """

@disjoint_base
class Calls:
    """The base class of endpoints and contexts.

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

        They send and receive in ``context``, 64 bits; 0 is the endpoint's.
        """

    def _any(self, templates: list[dict[str, Any]], take: bool) -> tuple[int, Message] | None:
        """The index of the first template that a message matches, and the message.

        All templates are compared at one instant. None if no message matches. ``take`` removes the
        message from the queue.
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
        UnknownName: no process is called ``dest``; the error lists the names that exist.
        EncodeError: a value cannot be pickled.
        PeerLost: ``dest`` has died, or dies while the call waits.
        MessageTooLarge: ``dest`` has no memory for it.
        MessagesLost: ``dest`` could not read what it was sent before; sent again, it arrives.
        SegmentFull: shared memory has no room for the ring to ``dest``.
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
        The message. Its values belong to the caller, and are writable. Reading a pickled value
        runs code of the sender, a member of the world; ``print`` reads all values.
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

    Blocks: never. Otherwise as ``recv``.
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
    """Return whether a queued message has every attribute of the template. Changes nothing.

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
    """The codes of the outcomes of a round in a tree."""

    NOTHING: Final[int]
    INTS: Final[int]
    FLOATS: Final[int]
    BYTES: Final[int]
    LARGE: Final[int]
    """A value does not fit into the tree: it has to go through messages."""
    MIXED: Final[int]
    MISMATCH: Final[int]
    """The members are not in the same call."""
    RESULT: Final[int]
    """The result of combining in Python."""
    FAILURE: Final[int]
    """The error of combining in Python."""
    DUTY: Final[int]
    """The caller came last, and has to combine the members' values, and to ``conclude``."""
    BROKEN: Final[int]
    """The round was broken off, by the member whose index is the result."""
    STRANGE: Final[int]
    """Nothing was done, since the value has to be packed."""

@final
class Operation:
    """The codes of the operations on numbers in a round in a tree."""

    KEEP: Final[int]
    """No operation: each member reads the values of the others."""
    ADD: Final[int]
    MULTIPLY: Final[int]
    MIN: Final[int]
    """As Python's ``min``: the first, unless the second is smaller."""
    MAX: Final[int]
    MINIMUM: Final[int]
    """As NumPy's ``minimum``: a NaN prevails."""
    MAXIMUM: Final[int]
    OTHER: Final[int]
    """An operation that Python does."""

@final
class CombiningTree:
    """Memory that the members of a group share, for barriers and small reductions.

    It is a file that the first member to come makes and the last to come unlinks.
    """

    room: int
    """Bytes of a member's value in a round, at most."""

    def __new__(
        cls, inbox: Inbox, path: _Path, fresh: _Path, members: int, index: int
    ) -> CombiningTree:
        """Map ``path``, made under the name ``fresh`` if there is none, as member ``index``.

        Raises SegmentFull, OSError; ValueError if ``path`` is no tree of this number of members.
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
            op: the operation on numbers: one of ``Operation``.
            value: a float, an int, a contiguous array, None; or the object that is ``packed``.
            out: for an array: another of the same shape and type, for the result.
            text: describes the wait to observers.
            tick: called with the indices of the missing members about every 100 ms of a wait. An
                error that it raises breaks the round off and is raised by the call.
        Returns:
            The outcome (one of ``Outcome``), and the result.
        """

    def conclude(self, result: bytes, failed: bool) -> bool:
        """Publish the result of combining; by the last member. False if the round was broken off.

        ``failed``: the bytes are an error instead.
        """

    def cells(self, raw: bool) -> list[Any]:
        """The value of each member, numbers as such unless ``raw``; until the next ``meet``."""

    def abandon(self) -> bool:
        """Break off this member's round, or the next one if it is decided."""

    @property
    def broken_by(self) -> int | None:
        """The index of the member that has broken off this member's round."""

@final
class Ledger:
    """The record of one member's calls of a group so far, and the group's tree."""

    tree: CombiningTree | None
    def __new__(cls) -> Ledger: ...
    def enter(self) -> None:
        """Begin a call: one at a time. Raises CollectiveError."""

    def leave(self) -> None: ...
    @property
    def busy(self) -> bool: ...
    def begin(self, made: Any, mark: int) -> None:
        """Record a call, in the program's line; ``mark`` is equal for equal calls."""

    def made(self) -> list[tuple[Any, int]]:
        """The latest calls, as they were recorded, with their locations (``location_words``)."""

    def reset(self) -> None:
        """Forget all calls, and the tree."""

    @property
    def count(self) -> int: ...
    @property
    def location(self) -> int:
        """The location of the latest call; 0 if there is none."""

    @property
    def chain(self) -> int:
        """A hash of all calls."""

@final
class Known:
    """A prepared collective call: its operations, its mark and its record."""

    def __new__(cls, number: int, array: int, mark: int, made: tuple[str, str]) -> Known:
        """The operation on numbers and that on arrays: one of ``Operation``, ``KEEP`` if none."""

@final
class CollectiveHooks:
    """Python functions that ``Collectives`` uses. The first argument is the ``Collectives``."""

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
            barrier, allreduce: the calls without a tree; they take ``algorithm``, and ``value``,
                ``op``, ``out``, ``algorithm``.
            learn: returns the ``Known`` of an operation; None if it is not one.
            settle: called with the code and result of a round, ``value``, ``op``, the record of the
                call, and the user's ``out``: returns the call's result.
            failed: called with the error that broke a round off: returns the call's result, or
                raises.
        """

@disjoint_base
class Collectives:
    """The base class of groups, with ``barrier`` and ``allreduce``."""

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
    """All messages that have arrived and were not received, and the bell that wakes receivers.

    It takes over its segment; without one it lives on the heap, for endpoints of one process.
    """

    def __new__(cls, segment: Segment | None = None) -> Inbox: ...
    def wait_until(
        self,
        condition: Callable[[], object],
        text: str,
        tick: Callable[[], object],
        sending: bool = False,
        limit: float | None = None,
    ) -> None:
        """Return when ``condition()`` is true; it is called whenever a message may have arrived.

        Args:
            text: describes the wait to observers; if it is empty, they see no wait.
            tick: called about every 100 ms; it returns facts for observers (JSON) or None, and an
                error that it raises ends the wait.
            sending: the wait is for the receipt of messages that this process has sent.
            limit: seconds after which ``condition()`` is true or raises.
        """

    def serve(self, choose: Callable[[Message], Callable[[Message], object] | None]) -> None:
        """The network thread's work, until the inbox closes.

        It keeps rings from filling up and answers observers. While callbacks are registered, it
        calls ``choose`` for every message, and the function that ``choose`` returns: the message
        then counts as received. None leaves the message in the queue.
        """

    def set_callbacks(self, active: bool) -> None:
        """Whether callbacks are registered."""

    def set_running(self, running: bool) -> None:
        """Show observers "running" or "idle"."""

    def set_waiting(self, text: str, facts: str) -> None:
        """Show observers that this process waits for others to end a cell."""

    def set_others(self, others: str) -> None:
        """Show observers the bystanders of a wait, or those that a program has left: JSON."""

    def end_waiting(self) -> None:
        """End ``set_waiting``."""

    def trace_off(self) -> None:
        """Stop recording events."""

    def set_info(self, info: str) -> None:
        """Publish facts about the process for observers: JSON, at most 4096 bytes."""

    @property
    def depth(self) -> int:
        """Messages in the queue."""

    def take_in_all(self) -> int:
        """Take in what has arrived; return a number for ``is_handled``."""

    def is_handled(self, number: int) -> bool:
        """Whether callbacks have returned for all messages that had arrived at ``take_in_all``."""

    @property
    def closed(self) -> bool: ...
    def close(self) -> None:
        """End every blocked call with EndpointClosed. Idempotent."""

    def abandon(self) -> None:
        """In a forked child: close without touching the parent's segment and rings."""

@final
class Channel:
    """The channel to one incarnation of a peer, through one transport. Thread-safe.

    ``check()`` raises if the peer can no longer receive; it is called when that is in doubt, and
    about every 100 ms of a wait.
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
        """The channel to a process that shares memory; makes the ring, a file.

        The ring has ``capacity`` bytes, and up to ``arena`` bytes for large values.
        """

    @staticmethod
    def link(
        link: Link,
        dest: str | int,
        src: str | int,
        check: Callable[[], object],
        plain: bool = False,
    ) -> Channel:
        """The channel through a link; large messages go in chunks, as the peer accepts them.

        ``plain``: the peer reads no pickled values; EncodeError names the attribute.
        """

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
        """The channel from ``inbox``, of the member ``uid``, to an inbox of this process."""

    @property
    def kind(self) -> str:
        """``"shm"``, ``"zmq"``, ``"gateway"`` or ``"inproc"``."""

    def send(self, packet: Packet, buffering: int) -> None:
        """Send ``packet``; packets arrive in the order of the calls.

        Blocks while more than ``buffering`` bytes of earlier packets to this peer were not yet
        received (a packet larger than that passes alone); with ``buffering=0`` it returns when
        the packet itself was received. Interrupted by KeyboardInterrupt. A packet's cost is its
        length plus 128 bytes.

        Raises:
            PeerLost: the peer died; the packet was not delivered.
            EndpointClosed: this endpoint was closed meanwhile.
        """

@final
class Exchange:
    """All connections of one endpoint to other machines, and its links.

    Raises EndpointClosed when it is closed.
    """

    def __new__(
        cls,
        inbox: Inbox,
        uid: str,
        key: bytes,
        pair: tuple[bytes, bytes],
        site: str,
        address: str,
        strangers: int,
        patience: float | None = None,
        *,
        libraries: list[str] = ...,
        table: str | None = None,
        context: int | None = None,
    ) -> Exchange:
        """
        Args:
            key: the world's.
            pair: the secret and the public half of this process's own keys, 32 bytes each.
            table: the file that announces the members' keys in a world of one machine.
            context: the number of an open client's (``ServerClient.context``), whose thread serves
                these connections, too. None: one of its own.
            address: peers connect to it by ZeroMQ, which chooses a port: "tcp://IP:*".
            libraries: paths of libzmq, or of modules linked with it, to try before the system's.
            strangers: open connections that have not shown a member's key, at most.
            patience: seconds after which a peer that cannot be reached is given up; None: never.
        """

    @property
    def address(self) -> str:
        """Others reach this process there: "tcp://IP:port"."""

    def start(self, name: str) -> None:
        """Serve connections, in a thread of this name."""

    def close(self) -> None:
        """Stop, when everything sent has arrived or a peer does not answer."""

    def link(self, uid: str, address: str, site: str = "") -> Link:
        """The link to a peer. A new link begins to connect."""

    def set_gateways(self, listed: list[tuple[str, str, str]]) -> None:
        """Set the list of the world's gateways: uid, site and address of each."""

    def announce(self, members: list[tuple[str, str]]) -> None:
        """Let these members connect: the uid of each, and the public half of its keys.

        The key is 64 hexadecimal digits, or empty for a member that does not listen. ValueError if
        it is neither.
        """

    def expel(self, uid: str, why: str) -> None:
        """A member was put out of the world: it is not heard any more. ``why``: for errors."""

    def report_departed(self, uids: list[str]) -> None:
        """Report that these peers have left or died, according to the directory."""

    def known(self, uid: str) -> Link | None:
        """The link to a peer, if there is one."""

    def connections(self) -> list[dict[str, Any]]:
        """The present connections to other sites or to gateways.

        For each: ``gateway`` (its uid, if it leads to one), ``peers`` (uids; of a gateway's the
        first 16 of ``count``), ``site`` (its number), ``address``, ``algorithm``, ``refused`` (the
        algorithm that the kernel refused), ``warm`` ("bbr", "heartbeat" or "": the means that keeps
        its congestion window during silence), ``unsent_s``, ``silent_s``, ``timeouts_lately`` (a
        number, and the seconds in which they happened), ``idle_restarts``, ``last_restart``
        (``ago_s``, ``silence_s``, ``from`` and ``to`` in packets, ``rtt_s``, ``cost_s``: the delay
        that it caused), ``tcp``: see ``tcp_info``.

        Cost: two system calls for each.
        """

    def settled(self, uid: str) -> bool:
        """Whether all that a dead peer had sent has arrived, as far as can be known."""

def key_pair(libraries: list[str]) -> tuple[bytes, bytes]:
    """The secret and the public half of a fresh pair of CURVE, 32 bytes each.

    Args:
        libraries: paths of libzmq, or of modules that are linked with it; the system's is the last.
    """

def derived_pair(libraries: list[str], key: bytes, is_gateway: bool) -> tuple[bytes, bytes]:
    """The pair that all derive who have the world's key, or the gateways'; see ``key_pair``.

    Raises WorldAccess, see ``check_key``.
    """

def check_key(key: bytes, /) -> None:
    """Raise WorldAccess if the key is empty, or so short that it could be guessed."""

def stretched(key: bytes, /) -> bytes:
    """The key that is used for a given one: short ones, which somebody may have made up, stretched.

    Who has recorded what passes gateways can try keys. For one of fewer than 32 bytes each try
    costs what it costs here: some 50 ms, and 16 MB (scrypt, RFC 7914). Raises WorldAccess, see
    ``check_key``.
    """

@final
class ServerClient:
    """The client of a directory server (native/endpoint/src/directory/client.rs). Thread-safe.

    JSON is text here; ``sfm_kernel.directory.client`` puts Python's objects around it. A call that
    waits gives the GIL back, and runs signal handlers meanwhile.
    """

    def __new__(
        cls,
        libraries: list[str],
        world: str,
        url: str,
        key: bytes,
        is_gateway: bool,
        patience: float,
    ) -> ServerClient:
        """Show the server the key, which is the world's or a gateway's.

        Raises WorldGone if the server does not answer within ``patience`` seconds, or keeps another
        world; WorldAccess if the key is not the server's; WorldError if the url is invalid, or
        there is no libzmq (``libraries``: see ``key_pair``).
        """

    @property
    def world(self) -> str:
        """The world's name."""

    @property
    def key(self) -> bytes:
        """The key that is used: see ``stretched``."""

    @property
    def pair(self) -> tuple[bytes, bytes]:
        """The secret and the public half of its own pair, by which the server knows it."""

    @property
    def context(self) -> int:
        """The number of its ZeroMQ context, for an ``Exchange``. The context ends with the last
        that uses it. Raises EndpointClosed when it is closed."""

    @property
    def breaks(self) -> int:
        """How often the connection was up and came down."""

    @property
    def refused(self) -> bool:
        """Whether the server does not admit this client's pair any longer."""

    def ask(self, kind: str, details: str, body: bytes, limit: float) -> tuple[bytes, list[bytes]]:
        """The answer to a request, JSON, and the bodies that came with it.

        Args:
            details: the request's, an object of JSON.
        Raises:
            WorldGone: there is none within ``limit`` seconds.
            EndpointClosed: this client was closed, or belongs to the parent process.
            Other errors: the server refuses the request.
        """

    def subscribe(self, on_update: Callable[[bytes | None], object]) -> None:
        """Call ``on_update``, in a thread of the core's, with each state that the server publishes.

        And with None when the server falls silent. Once for each client.
        """

    def close(self) -> None:
        """Release the connection, when the subscriber's thread has ended. Idempotent.

        In a forked child it does nothing.
        """

def abandon_connections() -> None:
    """In a forked child: give up its copies of the parent's connections."""

@final
class Link:
    """The messages to and from one peer, in order and exactly once. Thread-safe."""

    @property
    def uid(self) -> str: ...
    @property
    def address(self) -> str: ...
    @property
    def up(self) -> bool:
        """The peer has answered on the present connection."""

    @property
    def lost(self) -> str | None:
        """The reason why the peer can never receive again; None while it may."""

    @property
    def kind(self) -> str:
        """How messages travel: "zmq", or "gateway" through gateways."""

    @property
    def silence(self) -> tuple[float, str] | None:
        """Seconds since the peer last answered, and what gateways report about it; None while it
        answers."""

    @property
    def waiting(self) -> int:
        """Cost of the messages that were sent and not yet received, in bytes."""

    def _break(self) -> None:
        """End the connection, as if it broke: for tests."""
