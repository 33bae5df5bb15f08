"""Reductions of buffers between the members of one group.

The elements become arrays, and an operation of MPI a function of two arrays. Members are combined
in the order of their ranks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from sfm_kernel.collectives import Group
from sfm_kernel.collectives.operations import combine
from sfm_kernel.mpi.base.constants import ERR_OTHER
from sfm_kernel.mpi.base.errors import MPIError
from sfm_kernel.mpi.comm.driver import Driver, PyOp

if TYPE_CHECKING:
    from sfm_kernel.mpi.buffers import Blocks, Elements

Array = NDArray[Any]

SMALL = 1 << 11
"""Bytes of all blocks up to which everybody reduces all of them: the board does that in a round."""


class IntraReductions(Driver):
    """Reductions of elements."""

    def reduce(self, send: Elements | None, receive: Elements | None, op: PyOp, root: int) -> None:
        assert send is not None
        if self.rank != root:
            self.group.reduce(values(send), op, root)
            return
        assert receive is not None
        value, out = both(send, receive)
        self.group.reduce(value, op, root, out=out)
        put_values(receive, out)

    def allreduce(self, send: Elements, receive: Elements, op: PyOp) -> None:
        value, out = both(send, receive)
        self.group.allreduce(value, op, out=out)
        put_values(receive, out)

    def reduce_scatter(self, send: Blocks, receive: Elements, op: PyOp) -> None:
        if send.whole is not None and send.whole.nbytes <= SMALL:
            total = self.group.allreduce(values(send.whole), op)
            first = sum(block.nbytes for block in send[: self.rank]) // total.itemsize
            size = send[self.rank].nbytes // total.itemsize
            put_values(receive, total[first : first + size])
            return
        # Everybody gets all parts of his own block: as few bytes as any algorithm moves.
        parts: list[Array] = self.group.alltoall([values(block) for block in send])
        kinds = {(part.dtype, part.size) for part in parts}
        if len(kinds) > 1:
            given = ", ".join(f"{size} x {dtype}" for dtype, size in sorted(kinds, key=str))
            raise MPIError(
                ERR_OTHER,
                f"Reduce_scatter: the members have sent rank {self.rank} different blocks "
                f"({given}): give the same counts and datatypes everywhere",
            )
        total = parts[0]
        for rank, part in enumerate(parts[1:], 1):
            # What was received may be written to; the own part is the program's.
            total = combine(op, total, part, total if rank == self.rank else part)
        put_values(receive, total)

    def scan(self, send: Elements, receive: Elements, op: PyOp) -> None:
        put_values(receive, self.group.scan(values(send), op))

    def exscan(self, send: Elements, receive: Elements, op: PyOp) -> None:
        """As ``scan`` of the members before this one; the first receives nothing."""
        for before in from_before(self.group, self.group.scan(values(send), op)):
            put_values(receive, before)


def from_before(group: Group, value: Any) -> list[Any]:
    """Give a value to the next member; what the one before has given, if there is one."""
    rank = group.rank
    values = [(rank + 1, value)] if rank + 1 < group.size else []
    return group.exchange(values, [rank - 1] if rank > 0 else [])


def both(send: Elements, receive: Elements) -> tuple[Array, Array]:
    """The arrays of both sides; one and the same in place."""
    out = values(receive)
    return (out if send is receive else values(send)), out


def values(elements: Elements) -> Array:
    """What an operation is given: an array of the elements' basic type.

    Where they have different types, it is of bytes, which only operations of programs understand.
    """
    mixed = elements.datatype._live.base is None
    return elements.get() if mixed else elements.array()


def put_values(elements: Elements, array: Array) -> None:
    """Replace the elements by an array such as ``values`` gives."""
    if elements.datatype._live.base is None:
        elements.put(0, array)
    else:
        elements.put_array(array)
