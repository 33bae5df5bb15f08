"""``python -m sfm_kernel.mpi -n 4 prog.py``: runs an MPI program."""

import gc
import sys


def _run() -> int:
    """Run the launcher; the collector does not look through what it imports, then or at the end.

    Nothing of it is garbage, and looking took a fifth of the time in which a small program starts.
    """
    gc.disable()
    from sfm_kernel.mpi.launch.mpiexec import main

    gc.freeze()
    gc.enable()
    return main()


if __name__ == "__main__":
    sys.exit(_run())
