"""Every exception of sfm-kernel. Each message says what happened, to which process, and what to do.

``except SFMError`` catches all of them. If Python has a well-known class for the same situation
(``TimeoutError``, ``TypeError``, ``LookupError``), the error is of that class too.
"""

from __future__ import annotations

import contextlib
import errno
import re
import resource
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

_LONG_WORD = re.compile(r"(\S{80})(\S{920,}?)([^\w\s]{0,3})(?!\S)")


def printable(text: str) -> str:
    """The text with control characters escaped: a text from others must not control a terminal.

    Of a word of a thousand letters or more, such as a path, only the beginning and the length.
    """
    text = "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode()
        for char in text
    )
    return _LONG_WORD.sub(_cut, text)


def _cut(word: re.Match[str]) -> str:
    """The beginning of a long word, its length, and what ends a quotation or a sentence."""
    return f"{word[1]}… ({80 + len(word[2]):,} characters){word[3]}"


def pip_install(requirement: str) -> str:
    """The command that installs a package for this Python, for the text of an error.

    Not ``pip install``: the ``pip`` on the PATH may be that of another Python. Not an extra of this
    package either: it may be a clone, which no index knows.
    """
    return f"{shlex.quote(sys.executable or 'python')} -m pip install {shlex.quote(requirement)}"


class SFMError(Exception):
    """The base class of every error that sfm-kernel raises on purpose."""

    def __str__(self) -> str:
        return printable(super().__str__())


class WouldBlock(SFMError):
    """``recv_nb`` found no matching message. The inbox is unchanged."""


class RecvTimeout(SFMError, TimeoutError):
    """No matching message arrived within the given time. The inbox is unchanged."""


class PeerLost(SFMError, ConnectionError):
    """The process that the call depends on has died or left.

    Messages that it sent before are still in the inbox and can be received. ``peer`` is its name.
    """

    def __init__(self, peer: object, what: str = "") -> None:
        self.peer = peer
        detail = f" {what}" if what else ""
        super().__init__(
            f"process {peer!r} has ended{detail}. What it sent before is still received; "
            f"restart it, and it takes its old name and rank"
        )


class MessagesLost(PeerLost):
    """``peer`` lives, but could not read messages that this process sent it. Later ones arrive."""

    def __init__(self, peer: object) -> None:
        super().__init__(peer)
        self.args = (
            f"process {peer!r} could not read what this one has sent it, and has lost what it had "
            f"not received: the memory between them was damaged. What is sent from now on arrives",
        )


class MessageTooLarge(SFMError, MemoryError):
    """The receiver has no memory for the message. Nothing was sent; smaller messages may still fit.

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
    """A collective call could not be completed. Every member of the group gets this error once.

    The group can be used again when all of them have got it.
    """


class CollectiveMismatch(CollectiveError):
    """The members of a group made different calls, or their arguments do not fit together.

    ``calls`` maps the names of members to their calls and the lines of these, as far as they are
    known. ``group`` is the group's title.
    """

    def __init__(self, calls: Mapping[object, str], group: str = "a group") -> None:
        self.calls, self.group = dict(calls), group
        members: dict[str, list[str]] = {}
        for name, call in self.calls.items():
            members.setdefault(call, []).append(repr(name))
        made = "; ".join(f"{', '.join(names)}: {call}" for call, names in members.items())
        super().__init__(
            f"the members of {group} have to make the same calls in the same order, with the same "
            f"root, operation, shape and type of numbers. They called: {made}"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.calls, self.group)


class TransferError(SFMError):
    """The two sides of a transfer do not fit together, or the other side has cancelled it.

    The transfer is over on both sides; the data that had arrived before are in the destination.
    """


class DeadlockDetected(SFMError):
    """The processes of ``cycle`` wait for each other, and no message is on its way."""

    def __init__(self, cycle: Sequence[object], why: str = "") -> None:
        self.cycle = list(cycle)
        names = " -> ".join(repr(name) for name in [*self.cycle, *self.cycle[:1]])
        super().__init__(why or f"deadlock: {names}: each waits for the next, no message is coming")


class SegmentFull(SFMError, OSError):
    """Shared memory has no room for a message or a segment. Nothing was sent or mapped.

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
    """A template's value cannot be compared with the message's: ``==`` has no truth value.

    The message stays queued. ``attribute`` is the template's attribute.
    """

    def __init__(self, attribute: str, why: str = "") -> None:
        self.attribute = attribute
        super().__init__(
            f"template attribute {attribute!r} cannot be matched with ==: "
            f"{why or 'the comparison has no truth value'}. Match it with a predicate, "
            f"such as recv({attribute}=lambda value: (value == expected).all())"
        )


class PacketError(SFMError, ValueError):
    """Bytes that are not a valid packet: wrong magic, version, length or a damaged table."""


class EncodeError(SFMError, TypeError):
    """An attribute's value cannot be pickled, or its receiver reads no pickled values.

    Nothing was sent. ``attribute`` names it.
    """

    def __init__(
        self,
        attribute: str,
        why: str = "",
        hint: str = "Send data instead (numbers, strings, lists, arrays, or objects of classes "
        "that both sides can import)",
    ) -> None:
        self.attribute = attribute
        super().__init__(
            f"attribute {attribute!r} cannot be sent: {why or 'it cannot be pickled'}. "
            f"Nothing was sent. {hint}"
        )


class AddressError(SFMError, TypeError):
    """``dest`` is missing, or a reserved attribute (``src``) was given. Nothing was sent."""


class UnknownName(SFMError, LookupError):
    """No process of the world has this name or rank. Nothing was sent."""

    def __init__(self, name: object, known: Iterable[object], world: str = "") -> None:
        self.name, self.known = name, list(known)
        in_world = f" in world {world!r}" if world else ""
        names = ", ".join(map(repr, self.known)) or "nobody yet"
        super().__init__(f"no process is named {name!r}{in_world}. There: {names}")


class WorldError(SFMError):
    """A world cannot be joined or used."""


class BadName(WorldError, ValueError):
    """The argument cannot be the name of a world or a process, or a rank."""


class WorldFull(WorldError):
    """The world has no room for another process."""


class WorldGone(WorldError):
    """The world does not exist, or its directory does not answer."""


class NameInUse(WorldError):
    """A living process of the world already has this name or rank."""


class WorldAccess(WorldError, PermissionError):
    """The world's folder or key belongs to another user, or others could read it."""


class LimitReached(SFMError):
    """A limit that the administrator has set is reached. Nothing was started."""


class SystemLimit(SFMError, OSError):
    """A limit of the system, for files, does not let this process go on. Nothing was started."""


def limit_named(problem: OSError) -> OSError:
    """The error that names the limit which has caused ``problem``; without one, ``problem``."""
    if problem.errno == errno.EMFILE:
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        why = f"this process may have {most} files open, and needs more", "ulimit -n 4096"
    elif problem.errno == errno.EFBIG:
        most, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
        why = f"a file may have {most} bytes, and this process needs more", "ulimit -f unlimited"
    else:
        return problem
    return SystemLimit(f"{why[0]}: raise the limit (`{why[1]}`) in the shell that starts it")


@contextlib.contextmanager
def limits_named() -> Iterator[None]:
    """Raise SystemLimit in place of an OSError that a limit has caused."""
    try:
        yield
    except OSError as problem:
        named = limit_named(problem)
        if named is problem:
            raise
        raise named from problem


class BadSetting(SFMError, ValueError):
    """A configuration, or an environment variable, has an invalid value."""


class ProcessFailed(SFMError):
    """A process of ``run`` raised an exception or died; the others were stopped.

    ``rank`` is its rank, ``traceback`` the text of its traceback (empty if it was killed).
    """

    def __init__(self, rank: int, reason: str, traceback: str = "") -> None:
        self.rank, self.traceback = rank, traceback
        shown = f"\n\n{traceback.rstrip()}" if traceback else ""
        super().__init__(f"rank {rank} {reason}; the other processes were stopped{shown}")


class RemoteError(SFMError):
    """A remote call raised: the cause of the local exception, with the remote traceback.

    It is itself raised if the remote exception could not be sent back, or if nothing was called.
    """


class JobFailed(SFMError):
    """A MapReduce job has ended without results; the message has the traceback."""


class SpillError(SFMError, OSError):
    """Data that do not fit into memory could not be written to ``folder``, which was removed.

    ``nbytes``: the bytes of data so far.
    """

    def __init__(self, folder: str, nbytes: int, why: str) -> None:
        self.folder, self.nbytes = folder, nbytes
        super().__init__(
            f"{nbytes:,} bytes are more than the memory limit, and cannot be spilled to "
            f"{folder!r}: {why}. Give another folder (spill=), more memory (memory=), or more "
            f"workers"
        )


class CompileError(SFMError):
    """A C or C++ source could not be compiled or linked; nothing was run.

    The text is the compiler's, with the names and lines of the sources, and advice if there is any.
    """


class TaskFailed(SFMError):
    """A task of a farm raised on its worker, or could not be sent there or back; others go on.

    ``task`` is its function and arguments, ``worker`` its worker's name (None: it was not sent),
    ``traceback`` the text of the remote traceback; ``__cause__`` the remote exception, if it could
    be sent back. ``tasks`` are the tasks that it was mapped with, if any: iteration goes on with
    the next one, ``tasks.finish()`` gives the results of all that have not failed.
    """

    tasks: object = None

    def __init__(self, task: str, worker: object, what: str, traceback: str = "") -> None:
        self.task, self.worker, self.traceback = task, worker, traceback
        on_worker = "" if worker is None else f" on worker {worker!r}"
        shown = f"\n\n{traceback}" if traceback else ""
        super().__init__(f"{task} failed{on_worker}: {what}{shown}")
        self._given = task, worker, what, traceback

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self._given


class TaskPoisoned(TaskFailed):
    """A task of a farm has killed each worker that ran it; no other worker gets it.

    ``workers`` are their names.
    """

    def __init__(self, task: str, workers: Sequence[object]) -> None:
        self.workers = list(workers)
        names = ", ".join(map(repr, workers))
        what = (
            f"workers {names} ended while they ran it, so it is not run again. Run it alone to see "
            f"what it does; check the memory that it takes, and the C functions that it calls"
        )
        super().__init__(task, None, what)
        self._given = task, self.workers  # type: ignore[assignment]


class WorkersLost(SFMError):
    """All workers of a farm have died. Finished results are kept; the other tasks were not run."""
