"""Hints on compilers' errors: the package of a missing header, the cause of a linker's error."""

from __future__ import annotations

import re

_SYSTEMS = ("libc6-dev", "c-compiler")
_PACKAGES = {
    # header, or the beginning of its path: Debian's package, conda's package
    "Eigen/": ("libeigen3-dev", "eigen"),
    "GL/": ("libgl1-mesa-dev freeglut3-dev", "freeglut"),
    "X11/": ("libx11-dev", "xorg-libx11"),
    "boost/": ("libboost-all-dev", "libboost-devel"),
    "cblas.h": ("libopenblas-dev", "openblas"),
    "fftw3-mpi.h": ("libfftw3-mpi-dev", "fftw"),
    "fftw3.h": ("libfftw3-dev", "fftw"),
    "gd.h": ("libgd-dev", "libgd"),
    "gmp.h": ("libgmp-dev", "gmp"),
    "gsl/": ("libgsl-dev", "gsl"),
    "hdf5.h": ("libhdf5-dev", "hdf5"),
    "jpeglib.h": ("libjpeg-dev", "libjpeg-turbo"),
    "lapacke.h": ("liblapacke-dev", "liblapacke"),
    "metis.h": ("libmetis-dev", "metis"),
    "mpfr.h": ("libmpfr-dev", "mpfr"),
    "ncurses.h": ("libncurses-dev", "ncurses"),
    "netcdf.h": ("libnetcdf-dev", "libnetcdf"),
    "numa.h": ("libnuma-dev", "numactl"),
    "omp.h": ("libgomp1 gcc", "llvm-openmp"),
    "openssl/": ("libssl-dev", "openssl"),
    "petsc.h": ("petsc-dev", "petsc"),
    "png.h": ("libpng-dev", "libpng"),
    "readline/": ("libreadline-dev", "readline"),
    "tbb/": ("libtbb-dev", "tbb-devel"),
    "tiffio.h": ("libtiff-dev", "libtiff"),
    "zlib.h": ("zlib1g-dev", "zlib"),
}
_OF_C = {
    "assert", "complex", "ctype", "errno", "fcntl", "float", "getopt", "inttypes", "limits",
    "locale", "malloc", "math", "pthread", "semaphore", "sched", "setjmp", "signal",
    "stdarg", "stdbool", "stddef", "stdint", "stdio", "stdlib", "string", "strings",
    "sys/mman", "sys/resource", "sys/stat", "sys/time", "sys/types", "sys/wait", "time",
    "unistd", "wchar",
}  # fmt: skip
"""The system's C headers, without .h."""
_OF_CXX = {
    "algorithm", "array", "chrono", "cmath", "complex", "cstdio", "cstdlib", "cstring",
    "fstream", "functional", "iomanip", "iostream", "list", "map", "memory", "mutex",
    "numeric", "queue", "random", "set", "sstream", "string", "thread", "tuple", "utility",
    "vector",
}  # fmt: skip
"""Headers of the C++ library."""

_NO_HEADER = re.compile(r"fatal error: '?([^:'\n]+?)'?(?:: No such file| file not found)")
_NO_NAME = re.compile(r"undefined (?:reference to|symbol:) [`'\"]?([\w:~]+(?:\.\w+)*)")
_NOT_DECLARED = r"(?:implicit declaration of|call to undeclared(?: library)?) function '{name}'"
_MEANT = r"function '{name}'; did you mean '(\w+)'|: {name}\n(?:>>> .*\n)*>>> did you mean: (\w+)"
"""The nearest name, which GCC's compiler and LLVM's linker know."""
_TWICE = re.compile(r"(?:multiple definition of|duplicate symbol:?) [`'\"]?main\b")


def advice(text: str) -> str:
    """A hint on a compiler's errors, in one line; empty if none is known."""
    if re.search(r"cannot find \S*asan", text):
        return (
            "--asan needs the compiler's AddressSanitizer, which is not installed: "
            "`apt install gcc` or `conda install c-compiler` brings it, or leave --asan out"
        )
    if "File size limit exceeded" in text:
        return "a file may not be as large: raise the limit (`ulimit -f unlimited`) in the shell"
    if found := _NO_HEADER.search(text):
        return _of_header(found[1])
    if _TWICE.search(text):
        return "several of the sources have a main: name the sources of one program"
    if found := _NO_NAME.search(text):
        if found[1] == "main":
            return "no source has a main, the beginning of a program"
        if re.search(_NOT_DECLARED.format(name=found[1]), text):
            meant = re.search(_MEANT.format(name=found[1]), text)
            near = f": did you mean {meant[1] or meant[2]}?" if meant else ""
            return f"there is no function {found[1]} in a header, a source or a library{near}"
        return (
            f"{found[1]} is declared, but not defined: also name the source file that defines it, "
            f"or the library in SFM_LIBS (SFM_LIBS=-lgsl)"
        )
    return ""


def _of_header(name: str) -> str:
    if name in ("mpi.h", "sfm.h"):
        return f"{name} is part of sfm-kernel, whose installation is damaged: install it again"
    if name.removesuffix(".h") in _OF_C and name.endswith(".h"):
        return _install(name, _SYSTEMS)
    if name in _OF_CXX:
        return f"{name} is a header of C++: use %%sfm c++, or a file name that ends in .cpp"
    for known, packages in _PACKAGES.items():
        if name == known or (known.endswith("/") and name.startswith(known)):
            return _install(name, packages)
    if name in ("cuda.h", "cuda_runtime.h"):
        return f"{name} is part of CUDA, which needs the compiler nvcc"
    return (
        f"there is no {name} beside the source or in the system: put the file there, or "
        f"install its package (`apt-file search {name}` finds it)"
    )


def _install(header: str, packages: tuple[str, str]) -> str:
    return (
        f"{header} is not installed: `apt install {packages[0]}` or `conda install {packages[1]}`"
    )
