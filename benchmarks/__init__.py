"""SFM beside what users would pick instead, and beside what it wants to reach.

Comparisons with MPICH, mpi4py, ipyparallel, ``concurrent.futures``, Dask and C programs, which a
checkout has and an installation has not: ``python -m benchmarks`` lists them. Each is a module, a
generator of rows as the programs of ``sfm_kernel.lessons`` are, on which they stand.

inbox, peers, collectives, farm, mpi, c, sites, targets   the benchmarks
verdict       how far a measured ratio is from its target
patterns      of communication, the same for SFM and MPI
communicator  the calls of MPI that ``mpi`` measures
ranks         mpi4py's side of a benchmark, in ranks of an MPI
pools         pools of workers, each in its own process
"""

BENCHMARKS = ("inbox", "peers", "collectives", "farm", "mpi", "c", "sites", "targets")
"""What ``python -m benchmarks NAME`` runs: modules of this package."""

RANKS = "benchmarks.ranks"
"""What ranks of an MPI run; whoever imports it begins MPI."""
