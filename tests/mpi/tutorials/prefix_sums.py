"""The start of each process's part of a common list: Exscan of the lengths."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
items = list("abcdefghij")[: comm.rank + 2]
length, begin = np.array([len(items)]), np.zeros(1, int)
comm.Exscan(length, begin)  # rank 0 has no one before it
end = comm.scan(len(items))
assert end == begin[0] + len(items)
print(f"rank {comm.rank}: {begin[0]} to {end}")
