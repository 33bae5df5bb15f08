"""C and C++ on the queue: compiled unseen, and linked with this package's libraries.

compiler   a program or a library from sources; nothing is compiled twice
tools      which compiler there is, and how it is called
cache      what was compiled, by its contents
advice     what to do where a compiler says no
support    checks.c, which is linked with all that is compiled here
include    sfm.h and mpi.h
lib        libsfm.so, libmpi.so.12 and libmpi_abi.so.1, which the installation builds

``python -m sfm_kernel.c --cflags --libs`` prints what those need who compile themselves.
"""

from __future__ import annotations

import os

FOLDER = os.path.dirname(os.path.abspath(__file__))
INCLUDE = os.path.join(FOLDER, "include")
"""Where sfm.h and mpi.h are."""

LIB = os.path.join(FOLDER, "lib")
"""Where libsfm.so, libmpi.so.12 and libmpi_abi.so.1 are."""

LIBMPI = os.path.join(LIB, "libmpi.so.12")
LIBMPI_ABI = os.path.join(LIB, "libmpi_abi.so.1")
"""The same as LIBMPI in the ABI of MPI 5.0; a process has one of the two."""
LIBSFM = os.path.join(LIB, "libsfm.so")

__all__ = ["INCLUDE", "LIB", "LIBMPI", "LIBMPI_ABI", "LIBSFM"]
