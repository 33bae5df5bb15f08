"""C and C++ programs: compiled behind the scenes, and linked with this package's libraries.

compiler   builds a program or a library from sources, and compiles nothing twice
tools      finds a compiler, and its options
cache      compiled programs, by the contents of their sources
advice     hints on compilers' errors
support    checks.c, which is linked with every program and library
include    sfm.h and mpi.h
lib        libsfm.so, libmpi.so.12 and libmpi_abi.so.1, which the installation builds

``python -m sfm_kernel.c --cflags --libs`` prints the options for compiling by hand.
"""

from __future__ import annotations

import os

FOLDER = os.path.dirname(os.path.abspath(__file__))
INCLUDE = os.path.join(FOLDER, "include")
"""The folder of sfm.h and mpi.h."""

LIB = os.path.join(FOLDER, "lib")
"""The folder of libsfm.so, libmpi.so.12 and libmpi_abi.so.1."""

LIBMPI = os.path.join(LIB, "libmpi.so.12")
LIBMPI_ABI = os.path.join(LIB, "libmpi_abi.so.1")
"""Like LIBMPI, in the ABI of MPI 5.0; a process loads one of the two."""
LIBSFM = os.path.join(LIB, "libsfm.so")

__all__ = ["INCLUDE", "LIB", "LIBMPI", "LIBMPI_ABI", "LIBSFM"]
