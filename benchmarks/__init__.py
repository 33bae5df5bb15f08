"""SFM beside its alternatives, and beside its targets.

Comparisons with MPICH, mpi4py, ipyparallel, ``concurrent.futures``, Dask and C programs. They are
in a checkout but not in an installation: ``python -m benchmarks`` lists them. Each is a module that
generates rows, like the programs of ``sfm_kernel.lessons``, on which they are built.

inbox, peers, collectives, farm, mpi, c, sites, targets   the benchmarks
turns         measures mechanisms in turns
verdict       compares a measured ratio with its target
patterns      patterns of communication, the same for SFM and MPI
communicator  the calls of MPI that ``mpi`` measures
ranks         mpi4py's side of a benchmark, in ranks of an MPI
pools         pools of workers, each in a separate process
"""

BENCHMARKS = ("inbox", "peers", "collectives", "farm", "mpi", "c", "sites", "targets")
"""The modules of this package that ``python -m benchmarks NAME`` runs."""

RANKS = "benchmarks.ranks"
"""The module that ranks of an MPI run; to import it is to begin MPI."""
