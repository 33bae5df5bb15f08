"""MPI on ``send`` and ``recv``.

chunks      mpi_send_buf, mpi_recv_buf: small sends eagerly, large ones in acknowledged chunks
items       what is sent and received: items of lists, arrays and other buffers
namespace   which rank is which process

Source: SFM paper, section 3, Example 3.
"""

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
from sfm_kernel.mpi.namespace import Namespace

__all__ = [
    "ANY",
    "CHUNK_BYTES",
    "WINDOW",
    "Namespace",
    "Received",
    "TransferError",
    "mpi_getchunksize",
    "mpi_recv_buf",
    "mpi_send_buf",
    "plan",
]
