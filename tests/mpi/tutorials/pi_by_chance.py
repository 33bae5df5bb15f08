"""Pi by throwing darts: each process throws its own."""

import random

from mpi4py import MPI

comm = MPI.COMM_WORLD
darts = 20_000
generator = random.Random(comm.rank)
hits = sum(generator.random() ** 2 + generator.random() ** 2 < 1 for _ in range(darts))
total = comm.allreduce(hits, op=MPI.SUM)
everyone = comm.gather(hits, root=0)
if comm.rank == 0:
    print(f"hits {everyone} of {darts} each: pi is about {4 * total / (darts * comm.size):.6f}")
