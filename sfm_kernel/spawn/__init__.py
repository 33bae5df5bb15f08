"""Starting and ending processes. The process that starts another is its owner; the started process
never outlives its owner.

lifeline  ends a process when its owner has ended
process   starts a process as a fresh Python, asks it to end, and kills it after a grace period
forked    starts a process as a fork
forkserver  forks processes that have nothing of who asks for them
guardian  a process that kills a job's processes if their owner was killed
report    reports of a process to its owner
output    forwards the stdout and stderr of many processes into one
by_value  pickles functions, which keep the names of their files
job       ``sfm_kernel.run``, and the processes of one call of it
worker    one of these processes

The launcher of MPI programs (``mpi/launch``), processes that serve (``serving``) or try a student's
cell (``lessons``), and the helpers of the notebook's front end and of the benchmarks use it.
``jupyter/supervisor.py`` uses only the lifeline.

This module imports nothing: the launcher of C programs needs little of the package, and must start
quickly.
"""
