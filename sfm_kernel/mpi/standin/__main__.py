"""``python -m mpi4py prog.py`` is ``python -m mpi4py.run prog.py``."""

from sfm_kernel.mpi.standin.run import main

if __name__ == "__main__":
    main()
