"""Running MPI programs: ``python -m sfm_kernel.mpi -n 4 prog.py``.

mpiexec   the command line of the launcher
named     what a command line names, before it is started
sources   from C sources, folders, archives to what can be started
archives  unpacked, and nothing put elsewhere
elf       what the file of a compiled program says
job       its processes: when they end, and what the exit status is
worlds    which of them have one MPI_COMM_WORLD, and what they find in their environment
child     one of them, as the launcher sees it
native    one that is a program of its own
lone      one that the launcher has not started, and that asks for processes
spawning  programs that a rank asks for
wording   what ranks have done, and left unfinished, in words
rank      a process of the program, a fork of the launcher
program   runs a script, a module or a text as ``__main__``
reports   what a rank reports to the launcher

How processes begin and end, and how their output is forwarded, is in ``sfm_kernel/spawn``.

A program in C starts as soon as the launcher has: what only others need (archives, ``rank`` and all
of Python's MPI) is imported when it is needed. tests/c/test_launch.py says what must not be there.
"""
