"""Start and end, versions, clocks, memory, and other calls that belong to no handle.

MPI is ready when ``MPI`` has been imported: this process joins its world at the first call that has
to know the others. A program that has set ``mpi4py.rc.initialize = False`` calls ``Init`` itself.

Only ``MPI`` imports this module: what it reads is what the program has set before it imported that.
"""

from __future__ import annotations

import atexit
import operator
import os
import threading
import time
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

import sfm_kernel
from sfm_kernel.mpi.base import info, pickles
from sfm_kernel.mpi.base.constants import (
    ERR_ARG,
    ERR_DIMS,
    ERR_OTHER,
    MAX_PROCESSOR_NAME,
    SUBVERSION,
    THREAD_MULTIPLE,
    VERSION,
)
from sfm_kernel.mpi.base.errors import fail, translated
from sfm_kernel.mpi.base.info import INFO_NULL, Info
from sfm_kernel.mpi.base.options import option, read_options
from sfm_kernel.mpi.buffers.buffer import buffer
from sfm_kernel.mpi.engine import process as engine

read_options()
pickles.read_environment()
info.read_environment()
_phase: Literal["before", "active", "after"] = "active" if option("initialize") else "before"
_main_thread = threading.get_ident()
_abort_status = 0


# ---- start and end ----


def Init() -> None:
    """MPI can be used. Blocks until all processes of the job have joined.

    Raises:
        Exception: ERR_OTHER: it could be used before: importing ``MPI`` is enough, unless
            ``mpi4py.rc.initialize`` is False.
    """
    Init_thread()


def Init_thread(required: int = THREAD_MULTIPLE) -> int:
    """As ``Init``. Returns THREAD_MULTIPLE: all threads may call MPI, whatever is ``required``."""
    global _phase, _main_thread
    if _phase != "before":
        fail(
            ERR_OTHER,
            "MPI is initialized already: importing MPI does that. To call Init yourself, set "
            "mpi4py.rc.initialize = False before the import"
            if _phase == "active"
            else "MPI was finalized, and cannot be initialized again in this process",
        )
    with translated():
        engine.process()
    _phase, _main_thread = "active", threading.get_ident()
    return THREAD_MULTIPLE


def Finalize() -> None:
    """End MPI in this process. Blocks until what it has sent is received.

    The attributes of COMM_SELF are deleted first, the youngest one first.
    """
    global _phase
    if _phase != "active":
        fail(ERR_OTHER, "MPI is not active here: it was finalized, or never initialized")
    if engine.current() is not None:
        from sfm_kernel.mpi.comm.comm import COMM_SELF  # it imports this package

        COMM_SELF._delete_attributes()
    with translated():
        engine.finalize()
    _phase = "after"


def Is_initialized() -> bool:
    """Whether ``Init`` was called, or done by the import."""
    return _phase != "before"


def Is_finalized() -> bool:
    """Whether ``Finalize`` was called."""
    return _phase == "after"


def Query_thread() -> int:
    """How threads may use MPI: THREAD_MULTIPLE, all of them at any time."""
    return THREAD_MULTIPLE


def Is_thread_main() -> bool:
    """Whether this is the thread that has initialized MPI."""
    return threading.get_ident() == _main_thread


def _set_abort_status(status: int) -> None:
    """End the other processes too, with this status, when this one ends."""
    global _abort_status
    _abort_status = operator.index(status)


def _at_exit() -> None:
    if _abort_status and _phase == "active":
        from sfm_kernel.mpi.comm.comm import COMM_WORLD  # it imports this package

        COMM_WORLD.Abort(_abort_status)


atexit.register(_at_exit)  # after engine.process has registered its own: it runs before that


# ---- versions ----


def Get_version() -> tuple[int, int]:
    """The version of MPI whose calls are here."""
    return VERSION, SUBVERSION


def get_vendor() -> tuple[str, tuple[int, int, int]]:
    """The name and version of what stands behind these calls."""
    version = sfm_kernel.__version__
    numbers = [int(part) for part in version.split(".")[:3] if part.isdigit()]
    major, minor, micro, *_ = [*numbers, 0, 0, 0]
    return "sfm-kernel", (major, minor, micro)


def Get_library_version() -> str:
    """The same as a text for people."""
    return f"sfm-kernel {sfm_kernel.__version__}, with the calls of MPI {VERSION}.{SUBVERSION}"


def Get_abi_version() -> tuple[int, int]:
    """The version of the binary interface: (-1, -1), for there is none."""
    return -1, -1


def Get_abi_info() -> Info:
    """The sizes of MPI's integers, in bytes."""
    size = str(np.dtype(np.intp).itemsize)
    return Info.Create({f"mpi_{name}_size": size for name in ("aint", "count", "offset")})


def Get_abi_fortran_info() -> Info:
    """The sizes of Fortran's types: empty, for nothing here is called by Fortran."""
    return Info.Create()


# ---- where this runs, and time ----


def Get_processor_name() -> str:
    """The name of this machine."""
    return os.uname().nodename[: MAX_PROCESSOR_NAME - 1]


def Get_hw_resource_info() -> Info:
    """On which resources this process runs, as ``Split_type`` names them: only its memory."""
    return Info.Create({"mpi_shared_memory": "true"})


def Wtime() -> float:
    """Seconds since some moment; equal on the processes of one machine."""
    return time.perf_counter()


def Wtick() -> float:
    """The resolution of ``Wtime``, in seconds."""
    return time.get_clock_info("perf_counter").resolution


def Pcontrol(level: int) -> None:
    """Nothing: there are no profiles of MPI whose detail could be set.

    Raises:
        Exception: ERR_ARG: the level is not 0, 1 or 2.
    """
    if not 0 <= operator.index(level) <= 2:
        fail(ERR_ARG, f"the level of profiling is 0, 1 or 2, not {level}")


# ---- grids ----


def Compute_dims(nnodes: int, dims: int | Sequence[int]) -> list[int]:
    """The extents of a grid of ``nnodes`` points, as close to each other as they can be.

    Args:
        nnodes: how many points.
        dims: how many dimensions; or their extents, where 0 stands for those to find.
    Returns:
        All extents; those that were found do not increase.
    Raises:
        Exception: ERR_DIMS: the given extents do not divide ``nnodes``; ERR_ARG: that is negative.
    """
    try:
        extents = [0] * operator.index(dims)  # type: ignore[arg-type]
    except TypeError:
        extents = [operator.index(one) for one in dims]  # type: ignore[union-attr]
    nnodes = operator.index(nnodes)
    if nnodes < 0:
        fail(ERR_ARG, f"a grid cannot have {nnodes} points")
    given = [one for one in extents if one != 0]
    rest, left_over = divmod(nnodes, int(np.prod(given, dtype=object)) if given else 1)
    to_find = len(extents) - len(given)
    too_few = given and not to_find and rest != 1
    if any(one < 0 for one in given) or left_over or too_few:
        fail(ERR_DIMS, f"{nnodes} points are no grid with the extents {given}: these must divide")
    found = iter(_balanced(rest, to_find))
    return [one or next(found) for one in extents]


def _balanced(nnodes: int, count: int) -> list[int]:
    """So many factors that do not increase, of which the first is the least possible, and so on."""
    if nnodes == 0 or count == 0:
        return [0] * count
    small = [one for one in range(1, int(nnodes**0.5) + 1) if nnodes % one == 0]
    divisors = sorted({*small, *(nnodes // one for one in small)})

    def factors(product: int, count: int, most: int) -> list[int] | None:
        if count == 1:
            return [product] if product <= most else None
        for first in divisors:
            if first <= most and first**count >= product and product % first == 0:
                others = factors(product // first, count - 1, first)
                if others is not None:
                    return [first, *others]
        return None

    return factors(nnodes, count, nnodes) or []


# ---- memory ----


def Alloc_mem(size: int, info: Info = INFO_NULL) -> buffer:
    """New memory of so many bytes, not initialized."""
    if operator.index(size) < 0:
        fail(ERR_ARG, f"memory cannot have {size} bytes")
    return buffer.allocate(size)


def Free_mem(mem: buffer) -> None:
    """Give memory of ``Alloc_mem`` back: the buffer is empty then."""
    if not isinstance(mem, buffer):
        raise TypeError(f"memory of Alloc_mem is an MPI.buffer, not {type(mem).__name__}")
    mem.release()


# ---- numbers of handles ----


def _sizeof(arg: Any) -> int:
    """The size of the number of a handle, in bytes; of a status, that of its memory."""
    cls = arg if isinstance(arg, type) else type(arg)
    if not hasattr(cls, "handle") and cls.__name__ != "Status":
        raise TypeError(f"a handle or status of MPI is expected, not {arg!r}")
    return np.dtype(np.uintp).itemsize


def _addressof(arg: Any) -> int:
    """A number that is unique to a handle or status while it lives."""
    _sizeof(arg)
    return id(arg)


def _handleof(arg: Any) -> int:
    """The number of what a handle stands for; of a status, ``_addressof``."""
    return int(getattr(arg, "handle", None) or _addressof(arg)) if arg is not None else _sizeof(arg)
