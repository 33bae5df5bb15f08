"""MPI on the queue of ``send`` and ``recv``: mpi4py and programs in C run on it.

The library itself is native/mpi, and the compiled core carries it: ``from mpi4py import MPI`` in an
engine, or in a program that the launcher has started, is the real mpi4py, with no other MPI
installed and no mpiexec (MPI 4.1; mpi4py's documentation is its manual).

library     what a call of mpi4py does that Python has to know of
engines     MPI in a process that has an endpoint
launch      python -m sfm_kernel.mpi -n 4 prog.py

chunks      mpi_send_buf, mpi_recv_buf: small sends eagerly, large ones in acknowledged chunks
items       what is sent and received: items of lists, arrays and other buffers
namespace   which rank is which process

Source: SFM paper, section 3, Example 3.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfm_kernel.errors import TransferError
    from sfm_kernel.mpi.chunks import (
        ANY,
        CHUNK_BYTES,
        WINDOW,
        Received,
        mpi_getchunksize,
        mpi_recv_buf,
        mpi_send_buf,
        plan,
    )
    from sfm_kernel.mpi.engines import use
    from sfm_kernel.mpi.library import buffering
    from sfm_kernel.mpi.namespace import Namespace

__all__ = [
    "ANY",
    "CHUNK_BYTES",
    "WINDOW",
    "Namespace",
    "Received",
    "TransferError",
    "buffering",
    "mpi_getchunksize",
    "mpi_recv_buf",
    "mpi_send_buf",
    "plan",
    "use",
]

_PLACE = {
    "Namespace": "sfm_kernel.mpi.namespace",
    "TransferError": "sfm_kernel.errors",
    "buffering": "sfm_kernel.mpi.library",
    "use": "sfm_kernel.mpi.engines",
}


def __getattr__(name: str) -> Any:
    """Import what a name stands for when it is first used: the launcher needs none of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_PLACE.get(name, f"{__name__}.chunks")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
