"""``python -m sfm_kernel.mpi.launch PARENT REPORTS PROGRAM``: a rank; see ``rank``."""

import sys

from sfm_kernel.mpi.launch import rank

if __name__ == "__main__":
    rank.main(sys.argv[1:])
