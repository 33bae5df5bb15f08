"""Tasks and what becomes of them, as attributes of messages.

What has a name in a module is pickled by its name, and found by that name at the other end. What
has none there (a lambda, or a function of a notebook) is sent by value. Buffers of arrays travel as
their memory.
"""

from __future__ import annotations

import pickle
import socket
import traceback
from collections.abc import Callable
from typing import Any

import cloudpickle
import numpy as np

from sfm_kernel.mpi.base.pickles import pickle as mpi_pickle

Packed = dict[str, Any]
"""Attributes of a message that stand for one object."""


class RemoteTraceback(Exception):
    """Where in a worker an error was raised: the ``__cause__`` of that error."""


def pack(value: Any, *, by_value: bool = False) -> Packed:
    """The attributes that stand for an object. Raises what the object raises when it is pickled.

    Args:
        by_value: functions and classes of ``__main__`` are sent by value, since the other end
            has another ``__main__``.
    """
    if not by_value:
        try:
            data, buffers = mpi_pickle.dumps_oob(value)
            return {"data": data, "buffers": [_memory_of(one) for one in buffers]}
        except (pickle.PicklingError, AttributeError, TypeError):
            pass  # something in it has no name in a module
    found: list[pickle.PickleBuffer] = []
    data = cloudpickle.dumps(value, protocol=5, buffer_callback=found.append)
    return {"data": data, "buffers": [_memory_of(one.raw()) for one in found]}


def _memory_of(buffer: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.frombuffer(buffer, np.uint8)


def unpack(message: Any) -> Any:
    """The object that these attributes of a message stand for. Raises what unpickling raises."""
    return mpi_pickle.loads_oob(message["data"], message["buffers"])


def outcome(function: Callable[[], Any], rank: int, size: int) -> Packed:
    """Call the function: what to send of its result, or of what it raised.

    Args:
        rank, size: of the worker, for the traceback.
    """
    try:
        return {"good": True, **pack(function())}
    except BaseException as error:  # noqa: BLE001 - whatever the task raises is for its future
        return {"good": False, **_pack_error(error, rank, size)}


def read_outcome(message: Any) -> Any:
    """The result of which a message tells. Raises the error instead, if it is one."""
    value = unpack(message)
    if message["good"]:
        return value
    error, trace = value
    error.__cause__ = RemoteTraceback(trace)
    raise error


def _pack_error(error: BaseException, rank: int, size: int) -> Packed:
    where = f"in worker {rank} of {size} on {socket.gethostname()}"
    trace = f'\n"""{where}\n{"".join(traceback.format_exception(error))}"""'
    error.__traceback__ = error.__cause__ = error.__context__ = None
    try:
        packed = pack((error, trace))
        unpack(packed)  # many exceptions can be pickled, and then not be made again
    except Exception as why:  # noqa: BLE001 - whatever its class raises
        text = f"the task raised {type(error).__name__}: {error}; this cannot be sent: {why!r}"
        return pack((RuntimeError(text), trace))
    return packed
