"""Collectives between the members of one group."""

from __future__ import annotations

from sfm_kernel.mpi.comm.intra_blocks import IntraBlocks
from sfm_kernel.mpi.comm.intra_objects import IntraObjects
from sfm_kernel.mpi.comm.intra_reductions import IntraReductions


class IntraDriver(IntraBlocks, IntraReductions, IntraObjects):
    """What the collectives of an intracommunicator are made of; see ``Driver``."""
