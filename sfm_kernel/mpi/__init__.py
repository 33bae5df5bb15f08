"""MPI for mpi4py and programs in C, on the same queue as ``send`` and ``recv``.

The library is native/mpi, a part of the compiled core (MPI 4.1). In an engine, and in a program
that the launcher has started, ``from mpi4py import MPI`` imports the real mpi4py, whose
documentation is the manual. No other MPI and no mpiexec is needed.

library     connects mpi4py with this process's MPI
alias       the core as libmpi.so.12
discovery   answers build tools and extensions that look for an MPI
alone       MPI in a process that no launcher has started
engines     MPI in a process that has an endpoint
launch      python -m sfm_kernel.mpi -n 4 prog.py

chunks      mpi_send_buf, mpi_recv_buf: eager sends, and large ones in acknowledged chunks
items       items of lists, arrays and other buffers
namespace   ranks of processes

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

_MODULES = {
    "Namespace": "sfm_kernel.mpi.namespace",
    "TransferError": "sfm_kernel.errors",
    "buffering": "sfm_kernel.mpi.library",
    "use": "sfm_kernel.mpi.engines",
}


def __getattr__(name: str) -> Any:
    """Import a name's module when the name is first used: the launcher needs none of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULES.get(name, f"{__name__}.chunks")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
