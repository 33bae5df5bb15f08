"""Collectives between the two groups of an intercommunicator.

What moves goes from each process straight to those of the other group that get it. What has to be
combined, or told to all of a group, goes through its *leader*, rank 0. Sends never wait, so two
processes may send to each other at once.

A process that fails in a call tells those of the other group that wait for something from it, and
a leader tells its own group: whoever could not go on raises an error that says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfm_kernel.collectives import Group
from sfm_kernel.errors import CollectiveError, PeerLost, SFMError
from sfm_kernel.mpi.base.constants import ERR_TRUNCATE, PROC_NULL, ROOT
from sfm_kernel.mpi.base.errors import fail
from sfm_kernel.mpi.comm.driver import Driver, Round
from sfm_kernel.mpi.comm.intra import IntraDriver
from sfm_kernel.mpi.comm.intra_blocks import packed
from sfm_kernel.mpi.comm.intra_objects import dressed, undressed
from sfm_kernel.mpi.comm.intra_reductions import put_values, values
from sfm_kernel.mpi.engine.communicator import CommState

if TYPE_CHECKING:
    from sfm_kernel.mpi.buffers import Blocks, Elements

Array = NDArray[Any]
PyOp = Callable[[Any, Any], Any]


class InterDriver(Driver):
    """What the collectives of an intercommunicator are made of; see ``Driver``."""

    def __init__(self, state: CommState, purpose: str = "") -> None:
        super().__init__(state, purpose)
        self._is_leader = self.rank == 0
        self._others = range(len(state.peers))
        self._local = _Local(self)

    def barrier(self) -> None:
        with self._talk([0] if self._is_leader else []) as talk:
            self.group.barrier()
            self._from_leader(lambda: talk.swap(None))

    # ---- elements ----

    def bcast(self, data: Elements | None, root: int) -> None:
        with self._talk([0] if root == ROOT else []) as talk:
            if root == ROOT:
                assert data is not None
                talk.send(0, packed(data))
            elif root != PROC_NULL:
                assert data is not None
                self._put(data, self._from_leader(lambda: talk.recv(root)), root)

    def gather(self, send: Elements | None, receive: Blocks | None, root: int, even: bool) -> None:
        with self._talk([] if root in (ROOT, PROC_NULL) else [root]) as talk:
            if root == ROOT:
                assert receive is not None
                self._receive_all(talk, receive)
            elif root != PROC_NULL:
                assert send is not None
                talk.send(root, packed(send))

    def scatter(self, send: Blocks | None, receive: Elements | None, root: int, even: bool) -> None:
        with self._talk(self._others if root == ROOT else []) as talk:
            if root == ROOT:
                assert send is not None
                for rank, block in enumerate(send):
                    talk.send(rank, packed(block))
            elif root != PROC_NULL:
                assert receive is not None
                self._put(receive, talk.recv(root), root)

    def allgather(self, send: Elements, receive: Blocks) -> None:
        with self._talk(self._others) as talk:
            data = packed(send)
            for rank in self._others:
                talk.send(rank, data)
            self._receive_all(talk, receive)

    def alltoall(self, send: Blocks, receive: Blocks) -> None:
        with self._talk(self._others) as talk:
            for rank, block in enumerate(send):
                talk.send(rank, packed(block))
            self._receive_all(talk, receive)

    def reduce(self, send: Elements | None, receive: Elements | None, op: PyOp, root: int) -> None:
        gives = root not in (ROOT, PROC_NULL)
        with self._talk([root] if gives and self._is_leader else []) as talk:
            if root == ROOT:
                assert receive is not None
                self._put_array(receive, talk.recv(0))
            elif gives:
                assert send is not None
                total = self.group.reduce(values(send), op, 0)
                if self._is_leader:
                    talk.send(root, total)

    def allreduce(self, send: Elements, receive: Elements, op: PyOp) -> None:
        with self._talk([0] if self._is_leader else []) as talk:
            total = self.group.reduce(values(send), op, 0)
            self._put_array(receive, self._from_leader(lambda: talk.swap(total)))

    def reduce_scatter(self, send: Blocks, receive: Elements, op: PyOp) -> None:
        with self._talk([0] if self._is_leader else []) as talk:
            given = [values(block) for block in send]
            total = self.group.reduce(np.concatenate(given), op, 0)
            ends = np.cumsum([block.size for block in given])[:-1]
            own = self._from_leader(lambda: np.split(talk.swap(total), ends), parts=True)
            self._put_array(receive, own)

    # ---- objects ----

    def bcast_object(self, value: Any, root: int) -> Any:
        with self._talk([0] if root == ROOT else []) as talk:
            if root == ROOT:
                talk.send(0, dressed(value))
            elif root != PROC_NULL:
                return undressed(self._from_leader(lambda: talk.recv(root)))
            return None

    def gather_objects(self, value: Any, root: int) -> list[Any] | None:
        with self._talk([] if root in (ROOT, PROC_NULL) else [root]) as talk:
            if root == ROOT:
                return [undressed(talk.recv(rank)) for rank in self._others]
            if root != PROC_NULL:
                talk.send(root, dressed(value))
            return None

    def scatter_objects(self, values: Sequence[Any] | None, root: int) -> Any:
        with self._talk(self._others if root == ROOT else []) as talk:
            if root == ROOT:
                assert values is not None
                for rank, value in enumerate(values):
                    talk.send(rank, dressed(value))
            elif root != PROC_NULL:
                return undressed(talk.recv(root))
            return None

    def allgather_objects(self, value: Any) -> list[Any]:
        return self.alltoall_objects([value] * len(self._others))

    def alltoall_objects(self, values: Sequence[Any]) -> list[Any]:
        with self._talk(self._others) as talk:
            for rank, value in enumerate(values):
                talk.send(rank, dressed(value))
            return [undressed(talk.recv(rank)) for rank in self._others]

    def reduce_objects(self, value: Any, op: PyOp, root: int) -> Any:
        gives = root not in (ROOT, PROC_NULL)
        with self._talk([root] if gives and self._is_leader else []) as talk:
            if root == ROOT:
                return undressed(talk.recv(0))
            if gives:
                total = self._local.reduce_objects(value, op, 0)
                if self._is_leader:
                    talk.send(root, dressed(total))
            return None

    def allreduce_objects(self, value: Any, op: PyOp) -> Any:
        with self._talk([0] if self._is_leader else []) as talk:
            total = self._local.reduce_objects(value, op, 0)
            return undressed(self._from_leader(lambda: talk.swap(dressed(total))))

    # ---- parts ----

    @contextmanager
    def _talk(self, owed: Iterable[int]) -> Iterator[_Talk]:
        """The messages of one call; ``owed``: to whom of the other group one must be sent."""
        talk = _Talk(self.round(), owed)
        try:
            yield talk
        except BaseException as failure:
            talk.tell(_Failure.of(failure, self.state))
            raise

    def _from_leader(self, get: Callable[[], Any], parts: bool = False) -> Any:
        """What the leader gets, on all members of the group; or of its ``parts`` the own one.

        If it gets nothing, all raise why.
        """
        if not self._is_leader:
            return self._share(None, parts)
        try:
            got = get()
        except BaseException as failure:
            note = _Failure.of(failure, self.state)
            with suppress(SFMError):
                self._share([note] * self.size if parts else note, parts)
            raise
        return self._share(got, parts)

    def _share(self, got: Any, parts: bool) -> Any:
        return _checked(self.group.scatter(got, 0) if parts else self.group.bcast(got, 0))

    def _receive_all(self, talk: _Talk, receive: Blocks) -> None:
        for rank, block in enumerate(receive):
            self._put(block, talk.recv(rank), rank)

    def _put(self, into: Elements, data: NDArray[np.uint8], rank: int) -> None:
        """Put what a process has sent where it belongs; the start of it if there is no room."""
        into.put(0, data[: into.nbytes])
        if len(data) > into.nbytes:
            self._fail_for_room(rank, len(data), into.nbytes, "bytes")

    def _put_array(self, into: Elements, result: Array) -> None:
        room = values(into).size
        put_values(into, result[:room])
        if len(result) > room:
            self._fail_for_room(0, len(result), room, "numbers")

    def _fail_for_room(self, rank: int, sent: int, room: int, what: str) -> None:
        fail(
            ERR_TRUNCATE,
            f"rank {rank} of the other group has sent {sent:,} {what}, and rank {self.rank} "
            f"receives {room:,} from it: the counts of both sides must agree",
            self.state,
        )


class _Local(IntraDriver):
    """The collectives of the own group."""

    def __init__(self, driver: InterDriver) -> None:
        super().__init__(driver.state)
        self._driver = driver

    @property
    def group(self) -> Group:
        return self._driver.group


class _Failure:
    """Sent in place of what was expected: the sender could not go on."""

    def __init__(self, text: str, lost: Any) -> None:
        self.text, self.lost = text, lost

    @classmethod
    def of(cls, failure: BaseException, state: CommState) -> _Failure:
        if isinstance(failure, PeerLost):
            return cls(str(failure), failure.peer)
        text = f"{type(failure).__name__}: {failure}".rstrip(": ")
        if not isinstance(failure, CollectiveError):
            name = state.process.sfm.name
            text = f"{name!r} could not go on in a collective call: {text}"
        return cls(text, None)

    def error(self) -> Exception:
        """What is raised for it here."""
        if self.lost is not None:
            return PeerLost(self.lost, "and a collective call cannot go on without it")
        return CollectiveError(self.text)


def _checked(value: Any) -> Any:
    """What was received, unless it tells of a failure, which is raised."""
    if isinstance(value, _Failure):
        raise value.error()
    return value


class _Talk:
    """The messages of one call, some of which must be sent in any case."""

    def __init__(self, messages: Round, owed: Iterable[int]) -> None:
        self._messages, self._owed = messages, set(owed)

    def send(self, rank: int, value: Any = None) -> None:
        """Send a value to a rank of the other group."""
        self._messages.send(rank, value)
        self._owed.discard(rank)

    def recv(self, rank: int) -> Any:
        """What a rank of the other group has sent; raises what it tells if it has failed."""
        return _checked(self._messages.recv(rank))

    def swap(self, value: Any) -> Any:
        """What the leader of the other group gives for what this one gives."""
        self.send(0, value)
        return self.recv(0)

    def tell(self, failure: _Failure) -> None:
        """Send that instead of what is owed."""
        for rank in self._owed:
            with suppress(SFMError):
                self._messages.send(rank, failure)
