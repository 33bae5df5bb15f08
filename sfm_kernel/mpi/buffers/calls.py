"""What each collective call sends and receives, from the arguments that a program gives.

The package's description has the table of these functions, and says how IN_PLACE is given back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from sfm_kernel.mpi.base.constants import PROC_NULL, ROOT
from sfm_kernel.mpi.buffers.blocks import Blocks
from sfm_kernel.mpi.buffers.elements import Elements
from sfm_kernel.mpi.buffers.memory import address_of
from sfm_kernel.mpi.buffers.special import IN_PLACE
from sfm_kernel.mpi.buffers.specs import block, for_recv, for_send, integers, vector, wide

ForRoot: TypeAlias = tuple[Elements | None, Blocks | None]
FromRoot: TypeAlias = tuple[Blocks | None, Elements | None]


class Here(Protocol):
    """What is known of a communicator and of this process in it."""

    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def remote(self) -> Sequence[Any] | None: ...


def bcast(spec: Any, root: int, here: Here) -> Elements | None:
    """What the root sends, or where another process receives."""
    if here.remote is None:
        return for_send(spec) if root == here.rank else for_recv(spec)
    if root == PROC_NULL:
        return None
    return for_send(spec) if root == ROOT else for_recv(spec)


def gather(send: Any, receive: Any, root: int, here: Here, *, vector: bool = False) -> ForRoot:
    """What this process sends, and the root's blocks to receive."""
    if not _is_root(root, here):
        return (None if _is_idle(root, here) else for_send(send)), None
    blocks = _blocks(receive, _peers(here), vector, into=True)
    if here.remote is not None:
        return None, blocks
    return (blocks[here.rank] if _in_place(send) else for_send(send)), blocks


def scatter(send: Any, receive: Any, root: int, here: Here, *, vector: bool = False) -> FromRoot:
    """The root's blocks to send, and where this process receives."""
    if not _is_root(root, here):
        return None, (None if _is_idle(root, here) else for_recv(receive))
    blocks = _blocks(send, _peers(here), vector, into=False)
    if here.remote is not None:
        return blocks, None
    return blocks, (blocks[here.rank] if _in_place(receive) else for_recv(receive))


def allgather(
    send: Any, receive: Any, here: Here, *, vector: bool = False
) -> tuple[Elements, Blocks]:
    """What this process sends, and a block to receive of each."""
    blocks = _blocks(receive, _peers(here), vector, into=True)
    if here.remote is None and _in_place(send):
        return blocks[here.rank], blocks
    return for_send(send), blocks


def alltoall(send: Any, receive: Any, here: Here, *, vector: bool = False) -> tuple[Blocks, Blocks]:
    """A block to send to, and one to receive of, each process."""
    peers = _peers(here)
    blocks = _blocks(receive, peers, vector, into=True)
    if here.remote is None and _in_place(send):
        return blocks, blocks
    return _blocks(send, peers, vector, into=False), blocks


def alltoallw(send: Any, receive: Any, here: Here) -> tuple[Blocks, Blocks]:
    """As ``alltoall``, with a datatype for each block."""
    peers = _peers(here)
    blocks = wide(receive, peers, into=True)
    if here.remote is None and _in_place(send):
        return blocks, blocks
    return wide(send, peers, into=False), blocks


# ---- neighbours ----


def neighbor_allgather(
    send: Any, receive: Any, sources: int, *, vector: bool = False
) -> tuple[Elements, Blocks]:
    """What goes to all neighbours, and a block to receive of each source."""
    return for_send(send), _blocks(receive, sources, vector, into=True)


def neighbor_alltoall(
    send: Any, receive: Any, sources: int, targets: int, *, vector: bool = False
) -> tuple[Blocks, Blocks]:
    """A block to send to each target, and one to receive of each source."""
    return (
        _blocks(send, targets, vector, into=False),
        _blocks(receive, sources, vector, into=True),
    )


def neighbor_alltoallw(
    send: Any, receive: Any, sources: int, targets: int
) -> tuple[Blocks, Blocks]:
    """As ``neighbor_alltoall``, with a datatype for each block."""
    into = wide(receive, sources, into=True)
    return wide(send, targets, into=False), into


# ---- reductions ----


def reduce(
    send: Any, receive: Any, root: int, here: Here
) -> tuple[Elements | None, Elements | None]:
    """This process's values, and where the root has the result."""
    if not _is_root(root, here):
        return (None if _is_idle(root, here) else for_send(send)), None
    if here.remote is not None:
        return None, for_recv(receive)
    return allreduce(send, receive, here)


def allreduce(send: Any, receive: Any, here: Here) -> tuple[Elements, Elements]:
    """This process's values, and where it has the result; of one type and count."""
    result = for_recv(receive)
    if here.remote is None and _in_place(send):
        return result, result
    values = for_send(send)
    _check_types(values, result)
    if values.count != result.count:
        raise ValueError(
            f"{values.count} elements to send, but {result.count} to receive: give as many"
        )
    if here.remote is None and _begin_alike(values, result):
        return result, result
    return values, result


scan = allreduce


def reduce_scatter_block(send: Any, receive: Any, here: Here) -> tuple[Blocks, Elements]:
    """A block of values for each process, and where the own block of the result goes."""
    if here.remote is None and _in_place(send):
        blocks = block(receive, here.size, into=True)
        return blocks, blocks[0]
    result = for_recv(receive)
    blocks = block(send, here.size, into=False)
    _check_types(blocks[0], result)
    if blocks[0].count != result.count:
        raise ValueError(
            f"blocks of {blocks[0].count} elements to send, but {result.count} to receive: give "
            "as many"
        )
    return blocks, result


def reduce_scatter(
    send: Any,
    receive: Any,
    counts: Any,
    here: Here,
    ask: Callable[[int], Sequence[int]],
) -> tuple[Blocks, Elements]:
    """As ``reduce_scatter_block``, with a count for each process."""
    result = for_recv(receive)
    in_place = here.remote is None and _in_place(send)
    values = result if in_place else for_send(send)
    in_place = in_place or (here.remote is None and _begin_alike(values, result))
    if counts is None and here.remote is None and not in_place:
        counts = ask(result.count)
    numbers = integers(counts, here.size)
    total, own = sum(numbers), numbers[here.rank]
    _check_types(values, result)
    if values.count != total:
        raise ValueError(
            f"{values.count} elements, but the counts of all processes add up to {total}"
        )
    if in_place:
        result = result.part(0, own)
    elif result.count != own:
        raise ValueError(
            f"{result.count} elements to receive, but the count of rank {here.rank} is {own}"
        )
    return Blocks.of(values, numbers), result


# ---- who and where ----


def _blocks(spec: Any, blocks: int, of_vectors: bool, into: bool) -> Blocks:
    return vector(spec, blocks, into) if of_vectors else block(spec, blocks, into)


def _peers(here: Here) -> int:
    """How many processes this one sends to or receives from."""
    return here.size if here.remote is None else len(here.remote)


def _is_root(root: int, here: Here) -> bool:
    return root == (here.rank if here.remote is None else ROOT)


def _is_idle(root: int, here: Here) -> bool:
    """Whether this process is in the root's group of an intercommunicator, and not the root."""
    return here.remote is not None and root == PROC_NULL


def _in_place(spec: Any) -> bool:
    return spec is None or spec is IN_PLACE


def _begin_alike(one: Elements, other: Elements) -> bool:
    """Whether both have their element 0 at the same place."""
    if not np.may_share_memory(one.memory, other.memory):
        return False
    return address_of(one.memory) + one.origin == address_of(other.memory) + other.origin


def _check_types(send: Elements, receive: Elements) -> None:
    if send.datatype != receive.datatype:
        raise ValueError(
            f"elements of {send.datatype!r} to send, but of {receive.datatype!r} to receive: a "
            "reduction needs one type"
        )
