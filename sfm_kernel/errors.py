"""Every exception of sfm-kernel. Each message says what happened, to whom, and what to do next.

A ``except SFMError`` catches all of them. Where Python has a well-known class for the same
situation (``TimeoutError``, ``TypeError``, ``LookupError``), the error is of that class too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def printable(text: str) -> str:
    """The text with its control characters shown: what others sent must not steer a terminal."""
    return "".join(
        one if one.isprintable() or one in "\n\t" else one.encode("unicode_escape").decode()
        for one in text
    )


class SFMError(Exception):
    """Root of every error that sfm-kernel raises on purpose."""

    def __str__(self) -> str:
        return printable(super().__str__())


class WouldBlock(SFMError):
    """``recv_nb`` found no matching message. The inbox is unchanged."""


class RecvTimeout(SFMError, TimeoutError):
    """No matching message came within the given time. The inbox is unchanged."""


class PeerLost(SFMError, ConnectionError):
    """The process that the call depends on has died or left.

    What it had sent before is still in the inbox and can be received. ``peer`` is its name.
    """

    def __init__(self, peer: object, what: str = "") -> None:
        self.peer = peer
        detail = f" {what}" if what else ""
        super().__init__(
            f"process {peer!r} is gone{detail}. What it sent before is still received; "
            f"restart it, and it takes its old name and rank"
        )


class MessagesLost(PeerLost):
    """``peer`` lives, but could not read what this process had sent it. Later messages arrive."""

    def __init__(self, peer: object) -> None:
        super().__init__(peer)
        self.args = (
            f"process {peer!r} could not read what this one has sent it, and has lost what it had "
            f"not received: the memory between them was damaged. What is sent from now on arrives",
        )


class MessageTooLarge(SFMError, MemoryError):
    """The receiver has no memory for the message. Nothing was sent; smaller messages still are.

    ``peer`` is the receiver, ``nbytes`` the length of the packet.
    """

    def __init__(self, peer: object, nbytes: int) -> None:
        self.peer, self.nbytes = peer, nbytes
        super().__init__(
            f"process {peer!r} has no memory for a message of {nbytes:,} bytes: send it in smaller "
            f"pieces, or give that process more memory"
        )


class EndpointClosed(SFMError):
    """The endpoint was closed (or belongs to the parent of a forked process)."""


class CollectiveError(SFMError):
    """A collective call could not be completed. Every member of the group is told, once.

    The group may be used again when all of them have been told.
    """


class CollectiveMismatch(CollectiveError):
    """The members of a group are in different calls, or gave what does not belong together.

    ``calls`` maps the names of members to what they called, as far as that is known.
    """

    def __init__(self, calls: Mapping[object, str]) -> None:
        self.calls = dict(calls)
        who: dict[str, list[str]] = {}
        for name, what in self.calls.items():
            who.setdefault(what, []).append(repr(name))
        told = "; ".join(f"{', '.join(names)}: {what}" for what, names in who.items())
        super().__init__(
            f"the members of a group have to make the same calls in the same order, with the same "
            f"root, operation, shape and type of numbers. They called: {told}"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.calls,)


class TransferError(SFMError):
    """The two sides of a transfer do not fit together, or the other side has given it up.

    The transfer is over on both sides; what it had brought before is in the destination.
    """


class DeadlockDetected(SFMError):
    """The processes of ``cycle`` wait for each other and no message is on its way."""

    def __init__(self, cycle: Sequence[object], why: str = "") -> None:
        self.cycle = list(cycle)
        names = " -> ".join(repr(name) for name in [*self.cycle, *self.cycle[:1]])
        super().__init__(why or f"deadlock: {names}: each waits for the next, no message is coming")


class SegmentFull(SFMError, OSError):
    """Shared memory cannot hold what was asked for. Nothing was sent or mapped.

    ``needed``, ``free`` and ``limit`` are bytes.
    """

    def __init__(self, needed: int, free: int, limit: int, where: str = "/dev/shm") -> None:
        self.needed, self.free, self.limit = needed, free, limit
        super().__init__(
            f"{where} has {free} of {limit} bytes free and {needed} are needed. Run `%sfm clean` "
            f"(or `python -m sfm_kernel clean`), enlarge it (docker run --shm-size=1g), or set "
            f"SFM_DIR to a folder with more room"
        )


class MatchError(SFMError, TypeError):
    """A template value cannot be compared with the message's: ``==`` gave no truth value.

    The message stays queued. ``attribute`` is the template's attribute.
    """

    def __init__(self, attribute: str, why: str = "") -> None:
        self.attribute = attribute
        super().__init__(
            f"template attribute {attribute!r} cannot be matched with ==: "
            f"{why or 'the comparison has no truth value'}. Match it with a predicate, "
            f"such as recv({attribute}=lambda value: (value == wanted).all())"
        )


class PacketError(SFMError, ValueError):
    """Bytes that are not a valid packet: wrong magic, version, length or a damaged table."""


class EncodeError(SFMError, TypeError):
    """An attribute's value cannot be pickled. Nothing was sent. ``attribute`` names it."""

    def __init__(self, attribute: str, why: str = "") -> None:
        self.attribute = attribute
        super().__init__(
            f"attribute {attribute!r} cannot be sent: {why or 'it cannot be pickled'}. "
            f"Nothing was sent. Send data instead (numbers, strings, lists, arrays, or objects of "
            f"classes that both sides can import)"
        )


class AddressError(SFMError, TypeError):
    """``dest`` is missing, or a reserved attribute (``src``) was given. Nothing was sent."""


class UnknownName(SFMError, LookupError):
    """No process of the world has this name or rank. Nothing was sent."""

    def __init__(self, name: object, known: Iterable[object], world: str = "") -> None:
        self.name, self.known = name, list(known)
        where = f" in world {world!r}" if world else ""
        there = ", ".join(repr(one) for one in self.known) or "nobody yet"
        super().__init__(f"no process is named {name!r}{where}. There: {there}")


class WorldError(SFMError):
    """A world cannot be joined or used."""


class BadName(WorldError, ValueError):
    """What was given cannot be the name of a world or a process, or a rank."""


class WorldFull(WorldError):
    """The world has as many processes as it can hold."""


class WorldGone(WorldError):
    """The world does not exist (any more), or its directory does not answer."""


class NameInUse(WorldError):
    """A living process of the world has this name or rank already."""


class WorldAccess(WorldError, PermissionError):
    """The world's folder or key belongs to somebody else, or others could read it."""


class LimitReached(SFMError):
    """What an administrator allows is used up. Nothing was started."""


class BadSetting(SFMError, ValueError):
    """A configuration, or the environment, says what makes no sense."""


class ProcessFailed(SFMError):
    """A process of ``run`` raised or died; the others were stopped.

    ``rank`` is its rank, ``traceback`` the text of its traceback (empty if it was killed).
    """

    def __init__(self, rank: int, reason: str, traceback: str = "") -> None:
        self.rank, self.traceback = rank, traceback
        shown = f"\n\n{traceback.rstrip()}" if traceback else ""
        super().__init__(f"rank {rank} {reason}; the other processes were stopped{shown}")


class RemoteError(SFMError):
    """A remote call raised: the cause of what is raised here, with the remote traceback.

    It is raised itself where the error could not be brought here, or nothing was called.
    """


class JobFailed(SFMError):
    """A MapReduce job has ended without results: where, why, and with which traceback."""


class SpillError(SFMError, OSError):
    """What does not fit into memory could not be written to ``folder``, of which nothing is left.

    ``nbytes``: how much there was to keep, so far.
    """

    def __init__(self, folder: str, nbytes: int, why: str) -> None:
        self.folder, self.nbytes = folder, nbytes
        super().__init__(
            f"{nbytes:,} bytes are more than the memory allowed, and cannot be spilled to "
            f"{folder!r}: {why}. Give another folder (spill=), more memory (memory=), or more "
            f"workers"
        )


class CompileError(SFMError):
    """A C or C++ source could not be made a program; nothing was run.

    The text is the compiler's, with the names and lines of the sources, and what to do about it
    where that is known.
    """


class TaskFailed(SFMError):
    """A task of a farm raised on its worker, or could not be sent there or back; others go on.

    ``task`` is its function and arguments, ``worker`` its worker's name (None: it was not sent),
    ``traceback`` the text of the remote one; ``__cause__`` what it raised, where that could be
    brought here. ``tasks`` are those that it was mapped with, if any: iteration goes on with the
    next, ``tasks.finish()`` gives the results of all that have not failed.
    """

    tasks: object = None

    def __init__(self, task: str, worker: object, what: str, traceback: str = "") -> None:
        self.task, self.worker, self.traceback = task, worker, traceback
        where = "" if worker is None else f" on worker {worker!r}"
        shown = f"\n\n{traceback}" if traceback else ""
        super().__init__(f"{task} failed{where}: {what}{shown}")
        self._given = task, worker, what, traceback

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self._given


class TaskPoisoned(TaskFailed):
    """A task of a farm has killed each worker that ran it; it is given to no other one.

    ``workers`` are their names.
    """

    def __init__(self, task: str, workers: Sequence[object]) -> None:
        self.workers = list(workers)
        names = ", ".join(map(repr, workers))
        what = (
            f"workers {names} died while they ran it, so that it is run no more. Run it alone to "
            f"see what it does; look at the memory that it takes, and at what it calls in C"
        )
        super().__init__(task, None, what)
        self._given = task, self.workers  # type: ignore[assignment]


class WorkersLost(SFMError):
    """No worker of a farm lives any more. What was done is kept; the rest was not."""
