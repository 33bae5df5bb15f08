"""MPI in a process that no launcher has started: a world of one, if mpi4py finds no other MPI.

``import sfm_kernel`` has mpi4py's module ask ``offer`` when it is imported. Another MPI that is
installed or chosen stands.
"""

from __future__ import annotations

import os
import sys

from sfm_kernel.c import LIBMPI_ABI
from sfm_kernel.errors import SFMError
from sfm_kernel.mpi import library

_CHOSEN = ("MPI4PY_MPIABI", "MPI4PY_LIBMPI")
_STARTED = ("PMI_RANK", "PMI_FD", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK")
"""Variables by which a user chooses another MPI, and those of other MPIs' launchers."""


def offer() -> None:
    """Let mpi4py use this MPI, unless it would find another one. Called before it is imported."""
    if any(os.environ.get(name) for name in (*_CHOSEN, *_STARTED)):
        return
    try:
        _, needed = library.module()
    except SFMError:  # it was built for another MPI
        return
    if _finds_another(needed):
        return
    if LIBMPI_ABI.endswith(needed):
        import ctypes

        ctypes.CDLL(LIBMPI_ABI)
    else:
        library.connect()
        if (search := sys.modules.get("mpi4py._mpiabi")) is not None:
            search.MPIABI = "mpich"  # type: ignore[attr-defined] # for this process alone


def _finds_another(needed: str) -> bool:
    """Whether mpi4py finds the library of an MPI that is installed, and which it then loads."""
    search = sys.modules.get("mpi4py._mpiabi")
    try:
        if search is not None:
            search._get_mpiabi()  # the first call decides
        else:
            import ctypes

            ctypes.CDLL(needed)
    except (RuntimeError, OSError):  # "cannot load MPI library"
        return False
    return True
