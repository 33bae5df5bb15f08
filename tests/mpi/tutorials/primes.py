"""How many primes there are below a limit, and which is the largest."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
limit = 10_000


def is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


found = [number for number in range(comm.rank, limit, comm.size) if is_prime(number)]
results = np.array([len(found), max(found, default=0)])
total, largest = np.zeros(1, int), np.zeros(1, int)
comm.Reduce(results[:1], total, op=MPI.SUM, root=0)
comm.Reduce(results[1:], largest, op=MPI.MAX, root=0)
if comm.rank == 0:
    print(f"{total[0]} primes below {limit}, the largest is {largest[0]}")
