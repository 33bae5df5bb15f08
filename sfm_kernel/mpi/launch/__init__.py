"""Running MPI programs: ``python -m sfm_kernel.mpi -n 4 prog.py``.

mpiexec   the command line of the launcher
crew      its processes: when they end, and what the exit status is
child     one of them, as the launcher sees it
relay     their output and input
guardian  a process that ends them when the launcher was killed
rank      a process of the program, a fork of the launcher
program   runs a script, a module or a text as ``__main__``
reports   what a rank tells the launcher
standin   makes ``import mpi4py`` give ``sfm_kernel.mpi``
"""
