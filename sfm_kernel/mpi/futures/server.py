"""A process that was started to be a worker. Run as a module."""

from __future__ import annotations

import os
import sys
import threading

from sfm_kernel.mpi import MPI
from sfm_kernel.mpi.engine.process import process
from sfm_kernel.mpi.futures.worker import CHANNEL, MASTER, SPAWNED, serve


def main() -> None:
    """Be a worker of the process that has started this one."""
    if sys.argv[1:] != [SPAWNED]:
        sys.exit(
            "workers are started by MPIPoolExecutor(max_workers=...), or are the ranks other than "
            "0 of `python -m mpi4py.futures`: a server to which programs connect is not offered"
        )
    threading.Thread(target=_end_with_parent, name="sfm-parent", daemon=True).start()
    serve(process().sfm, CHANNEL, MASTER, MPI.COMM_WORLD)


def _end_with_parent() -> None:
    while os.read(0, 1):  # nothing is ever written: it ends when the parent does
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
