"""Collectives of objects between the members of one group.

What a call returns is a copy, also on the member that gave it: mpi4py's objects are pickled and
read again, and programs change what they were given. Numbers and texts need no copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from sfm_kernel.mpi.base.pickles import pickle
from sfm_kernel.mpi.comm.driver import Driver, PyOp
from sfm_kernel.mpi.comm.intra_reductions import from_before

UNCHANGING = frozenset({bool, bytes, complex, float, int, str, type(None)})
"""Types of values that nobody can change."""


class IntraObjects(Driver):
    """Collectives of objects."""

    def bcast_object(self, value: Any, root: int) -> Any:
        if self.rank != root:
            return undressed(self.group.bcast(None, root))
        self.group.bcast(dressed(value), root)
        return own_copy(value)

    def gather_objects(self, value: Any, root: int) -> list[Any] | None:
        return self._received(self.group.gather(dressed(value), root), value)

    def scatter_objects(self, values: Sequence[Any] | None, root: int) -> Any:
        if self.rank != root:
            return undressed(self.group.scatter(None, root))
        assert values is not None
        self.group.scatter([dressed(one) for one in values], root)
        return own_copy(values[root])

    def allgather_objects(self, value: Any) -> list[Any]:
        received = self._received(self.group.allgather(dressed(value)), value)
        assert received is not None
        return received

    def alltoall_objects(self, values: Sequence[Any]) -> list[Any]:
        given = [dressed(one) for one in values]
        received = self._received(self.group.alltoall(given), values[self.rank])
        assert received is not None
        return received

    def reduce_objects(self, value: Any, op: PyOp, root: int) -> Any:
        if not pickle.is_default:
            values = self.gather_objects(value, root)
            return None if values is None else reduce(op, values)
        return plain(self.group.reduce(operand(value), op, root))

    def allreduce_objects(self, value: Any, op: PyOp) -> Any:
        if not pickle.is_default:
            return reduce(op, self.allgather_objects(value))
        return plain(self.group.allreduce(operand(value), op))

    def scan_objects(self, value: Any, op: PyOp) -> Any:
        if not pickle.is_default:
            return reduce(op, self.allgather_objects(value)[: self.rank + 1])
        return plain(self.group.scan(operand(value), op))

    def exscan_objects(self, value: Any, op: PyOp) -> Any:
        """As ``scan_objects`` of the members before this one; None on the first."""
        before = from_before(self.group, dressed(self.scan_objects(value, op)))
        return undressed(before[0]) if before else None

    def _received(self, values: list[Any] | None, own: Any) -> list[Any] | None:
        if values is None:
            return None
        return [
            own_copy(own) if rank == self.rank else undressed(one)
            for rank, one in enumerate(values)
        ]


def dressed(value: Any) -> Any:
    """As it travels: pickled by ``MPI.pickle`` if the program has changed that."""
    return value if pickle.is_default else bytes(pickle.dumps(value))


def undressed(value: Any) -> Any:
    """What has travelled."""
    return value if pickle.is_default else pickle.loads(value)


def own_copy(value: Any) -> Any:
    """What the others get of a value."""
    if type(value) in UNCHANGING and pickle.is_default:
        return value
    return pickle.loads(pickle.dumps(value))


class _AsObject(np.ndarray[Any, Any]):
    """An array that a reduction takes as an object: others may have another shape, or a number.

    It arrives as an array.
    """

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.view(np.ndarray).__reduce_ex__(protocol)


def operand(value: Any) -> Any:
    """What a reduction of objects is given: nothing that the program sees changed by it."""
    if type(value) is np.ndarray:
        return value.copy(order="K").view(_AsObject)
    return own_copy(value)


def plain(result: Any) -> Any:
    """The result of a reduction of objects."""
    return result.view(np.ndarray) if type(result) is _AsObject else result
