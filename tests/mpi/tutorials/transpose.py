"""A matrix in blocks of rows is transposed: Alltoall moves the blocks."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
size, rank = comm.size, comm.rank
b = 3
n = b * size
rows = np.arange(rank * b * n, (rank + 1) * b * n, dtype="i").reshape(b, n)
blocks = np.ascontiguousarray(rows.reshape(b, size, b).transpose(1, 2, 0))
received = np.empty_like(blocks)
comm.Alltoall(blocks, received)
result = np.ascontiguousarray(received.transpose(1, 0, 2).reshape(b, n))

gathered = np.empty((n, n), "i") if rank == 0 else None
comm.Gather(result, gathered, root=0)
if rank == 0:
    print("transposed:", np.array_equal(gathered, np.arange(n * n).reshape(n, n).T))
