"""Running MPI programs: ``python -m sfm_kernel.mpi -n 4 prog.py``.

mpiexec   the command line of the launcher
named     what a command line names, before it is started
sources   from C sources, folders, archives to what can be started
archives  unpacked, and nothing put elsewhere
elf       what a compiled program says of itself
crew      its processes: when they end, and what the exit status is
child     one of them, as the launcher sees it
native    one that is a program of its own
relay     their output and input
surroundings  signals, and the guardian
guardian  a process that ends them when the launcher was killed
rank      a process of the program, a fork of the launcher
program   runs a script, a module or a text as ``__main__``
reports   what a rank tells the launcher

A program in C starts as soon as the launcher has: what only others need (archives, ``rank`` and all
of Python's MPI) is imported when it is needed. tests/c/test_launch.py says what must not be there.
"""
