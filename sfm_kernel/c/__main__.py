"""``python -m sfm_kernel.c --cflags --libs``, or sfm-config: prints a compiler's options."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence

from sfm_kernel.c import INCLUDE, LIB, LIBMPI, LIBSFM

_DESCRIPTION = """\
Prints the compiler's options for C programs that use SFM (sfm.h) or SFM's MPI (mpi.h):

  cc prog.c $(sfm-config --cflags --libs) -o prog

`python -m sfm_kernel.mpi -n 4 prog.c` compiles the program itself, without these options.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the values of the options on one line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="sfm-config",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--cflags", action="store_true", help="for compiling")
    parser.add_argument("--libs", action="store_true", help="for linking")
    parser.add_argument("--include", action="store_true", help="the folder of sfm.h and mpi.h")
    parser.add_argument("--lib", action="store_true", help="the folder of the libraries")
    parser.add_argument("--compiler", action="store_true", help="the compiler that SFM would use")
    chosen = parser.parse_args(arguments)
    if not any(vars(chosen).values()):
        parser.print_help()
        return 2
    words: list[str] = []
    if chosen.include:
        words.append(INCLUDE)
    if chosen.lib:
        words.append(LIB)
    if chosen.compiler:
        from sfm_kernel.c.tools import find
        from sfm_kernel.errors import SFMError

        try:
            words += find("c").command
        except SFMError as problem:
            print(problem, file=sys.stderr)
            return 1
    if chosen.cflags:
        words.append(f"-I{INCLUDE}")
    if chosen.libs:  # by their paths: -lmpi does not find libmpi.so.12
        words += [f"-Wl,-rpath,{LIB}", LIBMPI, LIBSFM]
    print(shlex.join(words))
    return 0


if __name__ == "__main__":
    sys.exit(main())
