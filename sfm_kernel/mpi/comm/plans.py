"""Plans of the collectives: what a program gave is looked over, and becomes work for a driver.

See ``comm.driver``. They serve intracommunicators and intercommunicators: ``buffers.calls`` knows
which side a process is on, and the driver what is done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from sfm_kernel.mpi.base.constants import ERR_ROOT, PROC_NULL, ROOT
from sfm_kernel.mpi.base.errors import MPIError
from sfm_kernel.mpi.base.scalars import scalar
from sfm_kernel.mpi.buffers import Blocks, Elements, calls
from sfm_kernel.mpi.comm.driver import PyOp, Work
from sfm_kernel.mpi.engine.communicator import CommState
from sfm_kernel.mpi.ops.op import Op

Spec = Any
"""What a program gives as a buffer: see ``buffers``."""

Counts = Sequence[int] | None


def root_of(state: CommState, root: int) -> int:
    """The root's rank, or ROOT or PROC_NULL; raises ERR_ROOT where it is nobody."""
    place = scalar(root)
    if 0 <= place < len(state.peers) or (state.remote is not None and place in (ROOT, PROC_NULL)):
        return place
    also = "" if state.remote is None else ", or ROOT or PROC_NULL in the root's own group"
    raise MPIError(
        ERR_ROOT,
        f"there is no rank {place} to be the root: ranks are 0 to {len(state.peers) - 1}{also}",
    )


def barrier(state: CommState) -> Work:
    return lambda driver: driver.barrier()


# ---- elements ----


def bcast(state: CommState, buf: Spec, root: int) -> Work:
    root = root_of(state, root)
    data = calls.bcast(buf, root, state)
    return lambda driver: driver.bcast(data, root)


def gather(state: CommState, sendbuf: Spec, recvbuf: Spec, root: int, vector: bool) -> Work:
    root = root_of(state, root)
    send, receive = calls.gather(sendbuf, recvbuf, root, state, vector=vector)
    return lambda driver: driver.gather(send, receive, root, not vector)


def scatter(state: CommState, sendbuf: Spec, recvbuf: Spec, root: int, vector: bool) -> Work:
    root = root_of(state, root)
    send, receive = calls.scatter(sendbuf, recvbuf, root, state, vector=vector)
    return lambda driver: driver.scatter(send, receive, root, not vector)


def allgather(state: CommState, sendbuf: Spec, recvbuf: Spec, vector: bool) -> Work:
    send, receive = calls.allgather(sendbuf, recvbuf, state, vector=vector)
    return lambda driver: driver.allgather(send, receive)


def alltoall(state: CommState, sendbuf: Spec, recvbuf: Spec, vector: bool) -> Work:
    send, receive = calls.alltoall(sendbuf, recvbuf, state, vector=vector)
    return lambda driver: driver.alltoall(send, receive)


def alltoallw(state: CommState, sendbuf: Spec, recvbuf: Spec) -> Work:
    send, receive = calls.alltoallw(sendbuf, recvbuf, state)
    return lambda driver: driver.alltoall(send, receive)


def reduce(state: CommState, sendbuf: Spec, recvbuf: Spec, op: Op, root: int) -> Work:
    root = root_of(state, root)
    send, receive = calls.reduce(sendbuf, recvbuf, root, state)
    function = on_elements(op, send or receive)
    return lambda driver: driver.reduce(send, receive, function, root)


def allreduce(state: CommState, sendbuf: Spec, recvbuf: Spec, op: Op) -> Work:
    send, receive = calls.allreduce(sendbuf, recvbuf, state)
    function = on_elements(op, receive)
    return lambda driver: driver.allreduce(send, receive, function)


def reduce_scatter_block(state: CommState, sendbuf: Spec, recvbuf: Spec, op: Op) -> Work:
    send, receive = calls.reduce_scatter_block(sendbuf, recvbuf, state)
    function = on_elements(op, receive)
    return lambda driver: driver.reduce_scatter(send, receive, function)


def reduce_scatter(
    state: CommState, sendbuf: Spec, recvbuf: Spec, recvcounts: Counts, op: Op
) -> Work:
    def parsed(ask: Callable[[int], list[int]]) -> tuple[Blocks, Elements, PyOp]:
        send, receive = calls.reduce_scatter(sendbuf, recvbuf, recvcounts, state, ask)
        return send, receive, on_elements(op, receive)

    if recvcounts is None:  # the members tell each other theirs, when it is their turn
        return lambda driver: driver.reduce_scatter(*parsed(driver.allgather_objects))
    given = parsed(lambda count: [count])
    return lambda driver: driver.reduce_scatter(*given)


def scan(state: CommState, sendbuf: Spec, recvbuf: Spec, op: Op) -> Work:
    send, receive = calls.scan(sendbuf, recvbuf, state)
    function = on_elements(op, receive)
    return lambda driver: driver.scan(send, receive, function)


def exscan(state: CommState, sendbuf: Spec, recvbuf: Spec, op: Op) -> Work:
    send, receive = calls.scan(sendbuf, recvbuf, state)
    function = on_elements(op, receive)
    return lambda driver: driver.exscan(send, receive, function)


# ---- objects ----


def bcast_object(state: CommState, value: Any, root: int) -> Work:
    root = root_of(state, root)
    return lambda driver: driver.bcast_object(value, root)


def gather_objects(state: CommState, value: Any, root: int) -> Work:
    root = root_of(state, root)
    return lambda driver: driver.gather_objects(value, root)


def scatter_objects(state: CommState, values: Sequence[Any] | None, root: int) -> Work:
    root = root_of(state, root)
    gives = root == (state.rank if state.remote is None else ROOT)
    given = one_for_each(state, values) if gives else None
    return lambda driver: driver.scatter_objects(given, root)


def allgather_objects(state: CommState, value: Any) -> Work:
    return lambda driver: driver.allgather_objects(value)


def alltoall_objects(state: CommState, values: Sequence[Any] | None) -> Work:
    given = one_for_each(state, values)
    return lambda driver: driver.alltoall_objects(given)


def reduce_objects(state: CommState, value: Any, op: Op | PyOp, root: int) -> Work:
    root = root_of(state, root)
    function = on_objects(op)
    return lambda driver: driver.reduce_objects(value, function, root)


def allreduce_objects(state: CommState, value: Any, op: Op | PyOp) -> Work:
    function = on_objects(op)
    return lambda driver: driver.allreduce_objects(value, function)


def scan_objects(state: CommState, value: Any, op: Op | PyOp) -> Work:
    function = on_objects(op)
    return lambda driver: driver.scan_objects(value, function)


def exscan_objects(state: CommState, value: Any, op: Op | PyOp) -> Work:
    function = on_objects(op)
    return lambda driver: driver.exscan_objects(value, function)


def on_objects(op: Op | PyOp) -> PyOp:
    """What an operation, or the function that a program gave instead, does with two objects."""
    if isinstance(op, Op):
        return op if op._state is None else op._state.python  # the null operation says what it is
    return op


def on_elements(op: Op, elements: Elements | None) -> PyOp:
    """What an operation does with two arrays of such elements. Raises ERR_OP: it does nothing."""
    if not isinstance(op, Op):
        raise TypeError(f"op is an operation of MPI, such as MPI.SUM, and not {op!r}")
    state = op._live
    return unused if elements is None else state.on_arrays(elements.datatype)


def unused(_: Any, __: Any) -> NoReturn:
    """The operation of a process that has no part in a reduction."""
    raise AssertionError("a process that has no elements has nothing to combine")


def one_for_each(state: CommState, values: Sequence[Any] | None) -> list[Any]:
    """One value for each process that gets one; as in mpi4py, None stands for nothing but None."""
    wanted = len(state.peers)
    given = [None] * wanted if values is None else list(values)
    if len(given) != wanted:
        raise ValueError(f"one item for each of {wanted} ranks is needed, not {len(given)}")
    return given
