"""This process in MPI: which endpoint it speaks through, and who is in COMM_WORLD.

In order: the endpoint given to ``use``; the world that a launcher has named in the environment;
the one endpoint with a rank that this process has open (in an engine, and in ``sfm_kernel.run``);
else a world of its own, in which it is alone.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import secrets
import threading
from collections.abc import Callable
from typing import Any

import sfm_kernel
from sfm_kernel.endpoint import BUFFERING, Endpoint, ending
from sfm_kernel.endpoint.endpoint import open_endpoints
from sfm_kernel.errors import SFMError
from sfm_kernel.mpi.base.constants import ERR_OTHER
from sfm_kernel.mpi.base.errors import fail
from sfm_kernel.mpi.engine.communicator import CommState
from sfm_kernel.mpi.engine.progress import Engine
from sfm_kernel.mpi.launch.rank import finish
from sfm_kernel.transport.base import Name

WORLD, RANK, SIZE = "SFM_MPI_WORLD", "SFM_MPI_RANK", "SFM_MPI_SIZE"
"""What a launcher says in the environment."""

PID = "SFM_MPI_PID"
"""The process about which it says that: those that a rank starts inherit it all."""

JOIN_SECONDS = 120.0
"""How long a launched process waits for the others to join."""


class Process:
    """This process in MPI.

    Attributes:
        sfm: its endpoint.
        engine: what moves its sends and receives on.
        names: of COMM_WORLD's processes, by rank.
        rank, size: in COMM_WORLD.
        buffering: bytes of standard sends that one receiver may leave unreceived before they wait;
            0: they are synchronous.
        world, self: the states of COMM_WORLD and COMM_SELF.
    """

    def __init__(self, sfm: Endpoint, own: bool) -> None:
        self.sfm, self.own = sfm, own
        self.engine = Engine(sfm)
        self.buffering = BUFFERING
        self.names, self._uids = self._members()
        self.rank, self.size = self.names.index(sfm.name), len(self.names)
        self.world = CommState(self, f"world {self._uids}", self.names)
        self.world.name = "MPI_COMM_WORLD"
        self.self = CommState(self, f"self {sfm.uid}", (sfm.name,))
        self.self.name = "MPI_COMM_SELF"

    def _members(self) -> tuple[tuple[Name, ...], str]:
        """The ranked processes of the world, by rank, and a hash of who they are."""
        living = [one for one in self.sfm.members() if self.sfm.alive(one)]
        ranked = {one.rank: one for one in living if one.rank is not None}
        by_rank = [ranked[rank] for rank in sorted(ranked)]
        uids = hashlib.blake2b("".join(one.uid for one in by_rank).encode(), digest_size=8)
        return tuple(one.name for one in by_rank), uids.hexdigest()

    def refresh(self) -> bool:
        """Whether the members of the world are those of COMM_WORLD still."""
        return self._members()[1] == self._uids

    def close(self) -> None:
        """Let what is under way reach its receivers; then leave the world, if MPI has joined it."""
        outgoing = list(self.engine.outgoing.values())
        with contextlib.suppress(SFMError):
            self.engine.wait(outgoing, "MPI_Finalize: what was sent is still being received")
        if self.own:
            finish()  # nobody leaves while another rank may still send to it
            self.sfm.close()


_current: Process | None = None
_finalized = False
"""MPI has left the world that it had joined: a process does that once."""

_lock = threading.Lock()
_watchers: list[Callable[[], object]] = []


def process() -> Process:
    """This process in MPI; joins its world the first time.

    Blocks: until all processes of the job have joined.
    Raises:
        SFMError: the world cannot be joined.
    """
    here = _current
    if here is None or here.sfm.closed:
        return _begin()
    return here


def _begin() -> Process:
    with _lock:
        if _finalized:
            fail(ERR_OTHER, "MPI was finalized: nothing can be called after that")
        here = _current
        if here is None or here.sfm.closed:
            here = Process(*_endpoint())
            _become(here)
        return here


def use(sfm: Endpoint) -> Process:
    """Let MPI speak through this endpoint, whose world's ranked processes are COMM_WORLD."""
    with _lock:
        here = Process(sfm, own=False)
        _become(here)
        return here


def _become(here: Process | None) -> None:
    global _current
    _current = here
    for function in _watchers:
        function()


def watch(function: Callable[[], object]) -> None:
    """Call this whenever the process is in another world than before, or in none."""
    _watchers.append(function)


def current() -> Process | None:
    """This process in MPI, if it has joined."""
    return _current


def refresh() -> None:
    """Forget COMM_WORLD if other processes are in the world now than when it was made.

    For notebooks: after an engine was restarted, or some were added, the next call of MPI on each
    engine makes COMM_WORLD of those that live.
    """
    with _lock:
        here = _current
        if here is not None and not here.own and (here.sfm.closed or not here.refresh()):
            _become(None)


def finalize() -> None:
    """Let what is under way reach its receivers, and leave the world. Idempotent."""
    global _finalized
    ending.begin_at_exit()
    with _lock:
        here = _current
        _finalized = _finalized or (here is not None and here.own)
        _become(None)
    if here is not None and not here.sfm.closed:
        here.close()


def _endpoint() -> tuple[Endpoint, bool]:
    world = os.environ.get(WORLD)
    if world is not None and os.environ.setdefault(PID, str(os.getpid())) == str(os.getpid()):
        size = int(os.environ[SIZE])
        sfm = sfm_kernel.join(world, rank=int(os.environ[RANK]), size=size)
        sfm.wait_for(*range(size), timeout=JOIN_SECONDS)
        return sfm, True
    ranked = [one for one in open_endpoints() if one.rank is not None]
    if len(ranked) == 1:
        return ranked[0], False
    alone = f"mpi-{os.getpid()}-{secrets.token_hex(4)}"
    return sfm_kernel.join(alone, rank=0, size=1), True


def buffering(nbytes: int) -> None:
    """How many bytes of standard sends may wait unreceived at one process before a send waits.

    With 0, ``send`` and ``Send`` return when a receive has matched, and ``isend`` is complete then.
    That shows what buffering hides: programs that are wrong, and work while messages are small. It
    holds for this process's later sends, in all communicators. (``from sfm_kernel import mpi``.)
    """
    here = process()
    here.world.context.buffering = nbytes  # checks it
    here.buffering = nbytes
    for state in here.engine.communicators:
        state.context.buffering = nbytes


def _forked() -> None:
    global _lock, _finalized
    _lock, _finalized = threading.Lock(), False
    _become(None)


atexit.register(finalize)
os.register_at_fork(after_in_child=_forked)
__all__: Any = ["Process", "buffering", "current", "finalize", "process", "refresh", "use", "watch"]
