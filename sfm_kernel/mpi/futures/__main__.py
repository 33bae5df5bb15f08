"""``python -m mpi4py.futures prog.py``: rank 0 runs a program, whose executors use all other ranks.

Under ``python -m sfm_kernel.mpi -n 4`` there are three workers. With one rank only, that one does
the calls itself.
"""

from __future__ import annotations

import sys

from sfm_kernel.mpi.futures.jobs import SharedPool
from sfm_kernel.mpi.launch import named, program
from sfm_kernel.mpi.launch.rank import set_abort_status

USAGE = """\
usage: python -m mpi4py.futures prog.py [arguments]
       python -m mpi4py.futures -m module [arguments]
       python -m mpi4py.futures -c text [arguments]"""


def main() -> None:
    """Run the program of the command line, or be a worker of it."""
    words = sys.argv[1:]
    with SharedPool() as pool:
        if pool is None:
            return
        if words[:1] in (["-h"], ["--help"]):
            print(USAGE)
            return
        if wrong := named.missing(words):
            sys.exit(f"{wrong}\n{USAGE}")
        try:
            program.run(words)
        except (SystemExit, KeyboardInterrupt) as end:
            set_abort_status(end)
            raise
        except BaseException:
            set_abort_status(1)
            raise


if __name__ == "__main__":
    main()
