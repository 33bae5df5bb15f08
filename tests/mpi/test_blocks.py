"""Blocks for several processes, and the sides of collective calls."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sfm_kernel.mpi.base.constants import ERR_COUNT, PROC_NULL, ROOT
from sfm_kernel.mpi.base.errors import MPIError
from sfm_kernel.mpi.buffers import BOTTOM, IN_PLACE, Elements, address, calls
from sfm_kernel.mpi.buffers.specs import block, vector, wide
from sfm_kernel.mpi.datatypes.datatype import Datatype
from sfm_kernel.mpi.datatypes.predefined import CHAR, DATATYPE_NULL, DOUBLE, INT

view_of: Any = memoryview  # NumPy tells type checkers of buffers from Python 3.12 on

DATA = np.arange(6, dtype=np.intc)

EVERY_OTHER = INT.Create_vector(3, 1, 2).Commit()
"""Items 0, 2 and 4."""


def values(elements: Elements) -> list[Any]:
    found: list[Any] = elements.array().tolist()
    return found


def alone(rank: int = 0, size: int = 1, remote: tuple[str, ...] | None = None) -> Any:
    """What a process of this rank knows of its communicator."""
    return SimpleNamespace(rank=rank, size=size, remote=remote)


# ---- several buffers ----


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (DATA, [[0, 1], [2, 3], [4, 5]]),
        ([DATA, 1], [[0], [1], [2]]),
        ([DATA, INT], [[0, 1], [2, 3], [4, 5]]),
        ([DATA, (1, 3)], [[3], [4], [5]]),
        ([None, 0, INT], [[], [], []]),
    ],
)
def test_equal_blocks(spec: Any, expected: list[list[int]]) -> None:
    blocks = block(spec, 3, into=False)
    assert [values(one) for one in blocks] == expected
    assert blocks.whole is not None and values(blocks.whole) == list(chain.from_iterable(expected))


def test_data_that_cannot_be_divided() -> None:
    with pytest.raises(ValueError, match="multiple of 4"):
        block(DATA, 4, into=False)


@pytest.mark.parametrize(
    ("spec", "expected", "is_whole"),
    [
        (DATA, [[0, 1], [2, 3], [4, 5]], True),
        (DATA[:4], [[0, 1], [2], [3]], True),
        ([DATA, [1, 2, 3]], [[0], [1, 2], [3, 4, 5]], True),
        ([DATA, (1, 2, 3)], None, False),
        ([DATA, ([1, 2, 3], None)], [[0], [1, 2], [3, 4, 5]], True),
        ([DATA, ((1, 2, 3), [0, 1, 3])], [[0], [1, 2], [3, 4, 5]], True),
        ([DATA, ([1, 1, 2], [5, 0, 1])], [[5], [0], [1, 2]], False),
        ([DATA, 1], [[0], [1], [2]], True),
        ([DATA, (1, 2)], [[0], [2], [4]], False),
        ([DATA, (np.array([1, 1, 1]), np.array([4, 2, 0])), INT], [[4], [2], [0]], False),
        ([DATA, [1, 0, 2], [3, 3, 1], "i"], [[3], [], [1, 2]], False),
        ([DATA, 2, 2, INT], [[0, 1], [2, 3], [4, 5]], True),
        ([None, (0, None), INT], [[], [], []], True),
        ([BOTTOM, 0, [0, 0, 0], INT], [[], [], []], True),
    ],
)
def test_blocks_of_different_sizes(
    spec: Any, expected: list[list[int]] | None, is_whole: bool
) -> None:
    if expected is None:
        with pytest.raises(ValueError):
            vector(spec, 3, into=False)
        return
    blocks = vector(spec, 3, into=False)
    assert [values(one) for one in blocks] == expected
    assert (blocks.whole is not None) == is_whole
    if blocks.whole is not None:
        assert values(blocks.whole) == list(chain.from_iterable(expected))


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ([DATA, [1, 2]], ValueError),
        ([DATA, ([1, 2, 3], [0])], ValueError),
        ([DATA, [1.0, 2.0, 3.0]], TypeError),
        ([DATA, np.array(3.0)], TypeError),
        ([DATA, (1, [0, 1, 2.5])], TypeError),
        ([bytes(5), None, [0, 1, 2], INT], ValueError),
        ([DATA, None, [0, 1, 2], DATATYPE_NULL], ValueError),
        ([DATA, 1, 2, 3, INT], ValueError),
        (None, TypeError),
    ],
)
def test_what_are_no_blocks(spec: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        vector(spec, 3, into=False)


def test_a_negative_count_of_a_block() -> None:
    with pytest.raises(MPIError) as caught:
        vector([DATA, [1, -1, 1]], 3, into=False)
    assert caught.value.Get_error_class() == ERR_COUNT


def test_blocks_with_types_of_their_own() -> None:
    types = [INT, CHAR, EVERY_OTHER]
    for spec in ([DATA, ([1, 4, 1], [4, 8, 0]), types], [DATA, [1, 4, 1], [4, 8, 0], types]):
        one, two, three = wide(spec, 3, into=False)
        assert values(one) == [1] and two.get().tobytes() == DATA[2].tobytes()
        assert values(three) == [0, 2, 4]
    assert [one.count for one in wide([DATA, types], 3, into=False)] == [1, 1, 1]
    where = Datatype.Create_struct([6], [address(DATA)], [INT]).Commit()
    assert values(wide([BOTTOM, [1], [0], [where]], 1, into=False)[0]) == DATA.tolist()


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (DATA, TypeError),
        ([DATA], ValueError),
        ([DATA, [1], [0], [INT], None], ValueError),
        ([DATA, [INT, INT]], ValueError),
        ([DATA, [1, 2], [0], [INT]], ValueError),
        ([DATA, ["i"]], TypeError),
        ([BOTTOM, None, [0], [INT]], ValueError),
        ([BOTTOM, [0], None, [INT]], ValueError),
        ([None, [INT]], ValueError),
        ([DATA, [1], None, [INT]], TypeError),
    ],
)
def test_what_are_no_blocks_with_types_of_their_own(spec: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        wide(spec, 1, into=False)


# ---- collective calls ----

ANY: Any = object()
"""What must not be looked at."""


def test_only_the_root_has_blocks() -> None:
    into = np.zeros(8, np.intc)
    send, receive = calls.gather(DATA[:2], into, 1, alone(1, 4))
    assert send is not None and receive is not None
    assert values(send) == [0, 1] and [one.count for one in receive] == [2, 2, 2, 2]
    send, receive = calls.gather(DATA[:2], ANY, 1, alone(0, 4))
    assert send is not None and receive is None
    blocks, part = calls.scatter(into, DATA[:2].copy(), 1, alone(1, 4))
    assert blocks is not None and part is not None and len(blocks) == 4
    blocks, part = calls.scatter(ANY, DATA[:2].copy(), 1, alone(0, 4))
    assert blocks is None and part is not None
    with pytest.raises(BufferError):
        calls.bcast(b"abc", 1, alone(0, 4))
    assert calls.bcast(b"abc", 0, alone(0, 4)) is not None


@pytest.mark.parametrize("mark", [IN_PLACE, None], ids=repr)
def test_in_place(mark: Any) -> None:
    data, here = np.arange(8.0), alone(2, 4)
    send, receive = calls.gather(mark, data, 2, here)
    assert receive is not None and send is receive[2]
    blocks, part = calls.scatter(data, mark, 2, here)
    assert blocks is not None and part is blocks[2]
    for is_vector in (False, True):
        one, several = calls.allgather(mark, data, here, vector=is_vector)
        assert one is several[2]
        sends, receives = calls.alltoall(mark, data, here, vector=is_vector)
        assert sends is receives
    sends, receives = calls.alltoallw(mark, [data, [1] * 4, [0] * 4, [DOUBLE] * 4], here)
    assert sends is receives
    for result in (
        calls.reduce(mark, data, 2, here),
        calls.allreduce(mark, data, here),
        calls.scan(mark, data, here),
        calls.allreduce(data, data, here),
        calls.allreduce([data, DOUBLE], view_of(data), here),
    ):
        assert result[0] is result[1]
    sends, own = calls.reduce_scatter_block(mark, data, here)
    assert [one.count for one in sends] == [2] * 4 and values(own) == [0, 1]
    sends, own = calls.reduce_scatter(mark, data, [1, 2, 3, 2], here, ANY)
    assert [values(one) for one in sends] == [[0], [1, 2], [3, 4, 5], [6, 7]]
    assert values(own) == [0, 1, 2]


def test_reductions_with_two_buffers() -> None:
    data, result, here = np.arange(4.0), np.zeros(4), alone(1, 2)
    send, receive = calls.allreduce(data, result, here)
    assert values(send) == data.tolist() and send is not receive
    assert calls.reduce(data, ANY, 0, here)[1] is None
    sends, own = calls.reduce_scatter_block(data, result[:2], here)
    assert len(sends) == 2 and own.count == 2
    sends, own = calls.reduce_scatter(data, result[:3], None, here, lambda own: [1, own])
    assert [one.count for one in sends] == [1, 3] and own.count == 3


@pytest.mark.parametrize(
    "call",
    [
        lambda: calls.allreduce([DATA, 1, INT], [bytearray(4), 1, "f"], alone()),
        lambda: calls.allreduce([DATA, 1, INT], [bytearray(8), 2, INT], alone()),
        lambda: calls.reduce_scatter_block(DATA, np.zeros(2, "i"), alone(0, 2)),
        lambda: calls.reduce_scatter(DATA, np.zeros(2, "d"), [2, 4], alone(0, 2), ANY),
        lambda: calls.reduce_scatter(DATA, np.zeros(2, "i"), [2, 3], alone(0, 2), ANY),
        lambda: calls.reduce_scatter(DATA, np.zeros(2, "i"), [3, 3], alone(0, 2), ANY),
        lambda: calls.reduce_scatter(DATA, np.zeros(2, "i"), [6], alone(0, 2), ANY),
        lambda: calls.reduce_scatter(IN_PLACE, np.zeros(2, "i"), [2, 1], alone(0, 2), ANY),
    ],
)
def test_reductions_that_do_not_fit(call: Callable[[], Any]) -> None:
    with pytest.raises(ValueError):
        call()


def test_intercommunicators() -> None:
    here, data = alone(0, 2, ("A", "B", "C")), np.zeros(6)
    assert calls.bcast(ANY, PROC_NULL, here) is None
    assert calls.bcast(b"a", ROOT, here) is not None
    with pytest.raises(BufferError):
        calls.bcast(b"a", 0, here)
    assert calls.gather(ANY, ANY, PROC_NULL, here) == (None, None)
    send, receive = calls.gather(ANY, data, ROOT, here)
    assert send is None and receive is not None and len(receive) == 3
    send, receive = calls.gather(data, ANY, 0, here)
    assert send is not None and receive is None
    blocks, part = calls.scatter(data, ANY, ROOT, here)
    assert blocks is not None and len(blocks) == 3 and part is None
    assert calls.scatter(ANY, ANY, PROC_NULL, here) == (None, None)
    assert calls.reduce(ANY, ANY, PROC_NULL, here) == (None, None)
    assert calls.reduce(ANY, data, ROOT, here)[0] is None
    sends, receives = calls.alltoall(data, data.copy(), here)
    assert len(sends) == len(receives) == 3
    with pytest.raises(MPIError, match="IN_PLACE"):
        calls.allgather(IN_PLACE, data, here)
    sends, own = calls.reduce_scatter_block(data, np.zeros(3), here)
    assert len(sends) == 2 and own.count == 3


def test_neighbours() -> None:
    data = np.zeros(6)
    send, receive = calls.neighbor_allgather(data[:2], data, 3)
    assert send.count == 2 and len(receive) == 3
    sends, receive = calls.neighbor_alltoall(data[:4], data, 3, 2, vector=True)
    assert [one.count for one in sends] == [2, 2] and len(receive) == 3
    sends, receive = calls.neighbor_alltoallw([data, [DOUBLE]], [data, [DOUBLE, INT]], 2, 1)
    assert len(sends) == 1 and len(receive) == 2
    sends, receive = calls.neighbor_alltoall([None, DOUBLE], [None, DOUBLE], 0, 0)
    assert len(sends) == len(receive) == 0
