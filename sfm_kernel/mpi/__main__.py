"""``python -m sfm_kernel.mpi -n 4 prog.py``: runs an MPI program."""

import sys

from sfm_kernel.mpi.launch.mpiexec import main

if __name__ == "__main__":
    sys.exit(main())
