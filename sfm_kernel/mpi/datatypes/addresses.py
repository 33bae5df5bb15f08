"""Addresses in memory, for displacements."""

from __future__ import annotations

from typing import Any

from sfm_kernel.mpi.datatypes.arguments import whole


def Get_address(location: Any) -> int:
    """Where the memory of an object begins; 0 of BOTTOM and None."""
    from sfm_kernel.mpi.buffers import address  # it imports datatypes

    return address(location)


def Aint_add(base: int, disp: int) -> int:
    """An address and a displacement, added."""
    return whole(base) + whole(disp)


def Aint_diff(addr1: int, addr2: int) -> int:
    """How many bytes the first address is behind the second."""
    return whole(addr1) - whole(addr2)
