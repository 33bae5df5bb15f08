"""Running MPI programs: ``python -m sfm_kernel.mpi -n 4 prog.py``.

mpiexec   the command line of the launcher
named     checks the program that a command line names
sources   makes programs from C sources, folders and archives
archives  unpacks archives safely
elf       reads the file of a compiled program
job       the processes of a launch, their end, and the exit status
worlds    the processes of each MPI_COMM_WORLD, and their environment
child     a process, as the launcher sees it
native    a process that runs a compiled program
lone      a process that the launcher has not started, and that asks for processes
spawning  programs that a rank asks for
keeping   keeps the run for the panel, after its end
wording   the ends of ranks, and their unfinished operations, in words
rank      a process of a Python program, a fork of the launcher
program   runs a script, a module or a text as ``__main__``
reports   reports of a rank to the launcher

``sfm_kernel/spawn`` starts and ends processes, and forwards their output.

A program in C must start quickly: modules that it does not need (archives, ``rank`` and all of
Python's MPI) are imported only when needed. tests/c/test_launch.py lists them.
"""
