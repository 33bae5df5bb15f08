"""Calls that are so short that looking over what they were given would take longer.

What is done here is what the plans and drivers do, for the most common arguments: one process of
a group that shares memory reduces a small array in about a microsecond.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from numpy import dtype, ndarray
from numpy.typing import NDArray

from sfm_kernel.errors import SFMError
from sfm_kernel.mpi.buffers import for_send
from sfm_kernel.mpi.comm import plans
from sfm_kernel.mpi.comm.driver import PyOp, blocking, members_at_once, tell
from sfm_kernel.mpi.ops.op import Op, UserOperation


def barrier(comm: Any) -> None:
    """Return when all members have called it."""
    try:
        members = members_at_once(comm)
        if members is not None:
            members.barrier()
            return
    except SFMError as error:
        tell(comm, error)
    blocking(comm, plans.barrier)


# Another function with the same code, by whose name observers know what a program has called.
Barrier: Any = FunctionType(barrier.__code__.replace(co_name="Barrier"), globals(), "Barrier")
Barrier.__doc__ = barrier.__doc__

_functions: dict[tuple[Any, dtype[Any]], PyOp] = {}
"""What an operation of MPI does with arrays of a type of NumPy."""


def two_arrays(send: Any, receive: Any, op: Op) -> tuple[NDArray[Any], NDArray[Any], PyOp] | None:
    """Two arrays of one type, size and layout, flat, and what is done with them; else None."""
    if send.__class__ is not ndarray or receive.__class__ is not ndarray or op.__class__ is not Op:
        return None
    kind = send.dtype
    if receive.dtype is not kind or receive.size != send.size:
        return None
    if not (receive.flags.carray and send.flags.c_contiguous):
        return None
    function = _functions.get((op._state, kind))
    if function is None:
        operation = op._live
        if isinstance(operation, UserOperation) or not kind.isbuiltin:
            return None
        function = operation.on_arrays(for_send(send).datatype)
        _functions[operation, kind] = function
    if send.ndim == 1 == receive.ndim:
        return send, receive, function
    return send.reshape(-1), receive.reshape(-1), function
