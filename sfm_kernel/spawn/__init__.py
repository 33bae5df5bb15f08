"""Starting and ending processes. Whoever starts a process is its owner, which it does not outlive.

lifeline  how a process learns that its owner has ended
process   started as a fresh Python; asked to end, and killed after a grace period
forked    started as a fork
guardian  a process that kills a job's processes if their owner was killed
report    what a process reports to its owner: words and results on pipes, its exit status in words
output    the stdout and stderr of many processes, forwarded into one
job       ``sfm_kernel.run``, and the processes of one such call
worker    one of these processes

The launcher of MPI programs (``mpi/launch``), processes that serve (``serving``) or try a student's
cell (``lessons``), and the helpers of the notebook's front end and of the benchmarks stand on it.
``jupyter/supervisor.py`` takes only the lifeline: see there.

Nothing is imported here: the launcher of C programs needs little of it, and has to start quickly.
"""
