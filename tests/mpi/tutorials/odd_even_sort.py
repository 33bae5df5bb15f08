"""Sorting: neighbours merge what they have, and keep the lower or the upper half."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
count = 50
numbers = np.sort(np.random.default_rng(rank).integers(0, 1000, count))
before = comm.allgather(numbers)
other = np.empty_like(numbers)

for phase in range(size):
    partner = rank + 1 if (rank + phase) % 2 == 0 else rank - 1
    if not 0 <= partner < size:
        partner = MPI.PROC_NULL
    comm.Sendrecv(numbers, dest=partner, recvbuf=other, source=partner)
    if partner != MPI.PROC_NULL:
        merged = np.sort(np.concatenate([numbers, other]))
        numbers = merged[:count] if rank < partner else merged[count:]

everything = comm.gather(numbers)
if rank == 0:
    in_order = np.array_equal(np.concatenate(everything), np.sort(np.concatenate(before)))
    print("sorted:", in_order)
