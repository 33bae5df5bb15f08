"""The collective calls of ``Comm`` and ``Intracomm``, by their kinds.

driver       how each of them is written once, and called in three ways
plans        what is done with what a program gave
intra        the work between the members of one group: intra_objects, intra_blocks,
             intra_reductions
worker       the thread that does what was started
objects, buffers, nonblocking, persistent, scans    the calls
"""

from __future__ import annotations

from sfm_kernel.mpi.comm.buffers import BufferCollectives
from sfm_kernel.mpi.comm.nonblocking import NonBlockingCollectives
from sfm_kernel.mpi.comm.objects import ObjectCollectives
from sfm_kernel.mpi.comm.persistent import PersistentCollectives
from sfm_kernel.mpi.comm.scans import Scans

__all__ = [
    "BufferCollectives",
    "NonBlockingCollectives",
    "ObjectCollectives",
    "PersistentCollectives",
    "Scans",
]
