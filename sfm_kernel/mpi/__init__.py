"""MPI on ``send`` and ``recv``.

``from sfm_kernel.mpi import MPI`` is what ``from mpi4py import MPI`` is elsewhere, with no MPI
installed and no mpiexec (MPI 4.1; mpi4py's documentation is its manual).

MPI         every name of the interface
base        handles, constants, errors, info, attributes
datatypes   how elements lie in memory
buffers     what calls send and receive: from a specification to memory
ops         the operations of reductions
engine      posted receives, transfers under way, and who waits for them
requests    what is waited for and tested
comm        communicators: groups, messages, collectives, topologies
launch      python -m sfm_kernel.mpi -n 4 prog.py
standin     what programs get that import mpi4py
util, futures   the rest of mpi4py

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
    from sfm_kernel.mpi.engine.process import buffering
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
]

_PLACE = {
    "Namespace": "sfm_kernel.mpi.namespace",
    "TransferError": "sfm_kernel.errors",
    "buffering": "sfm_kernel.mpi.engine.process",
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
