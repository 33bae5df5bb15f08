"""Rows of a matrix, shared out as evenly as they go: Scatterv and Gatherv."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rows, columns = 13, 3
share, rest = divmod(rows, comm.size)
counts = [(share + (rank < rest)) * columns for rank in range(comm.size)]
places = [sum(counts[:rank]) for rank in range(comm.size)]

matrix = np.arange(rows * columns, dtype="d").reshape(rows, columns) if comm.rank == 0 else None
block = np.empty(counts[comm.rank])
comm.Scatterv([matrix, counts, places, MPI.DOUBLE], block, root=0)
print(f"rank {comm.rank} has {block.size // columns} rows, sum {block.sum()}")
block = block**2
result = np.empty((rows, columns)) if comm.rank == 0 else None
comm.Gatherv(block, [result, counts, places, MPI.DOUBLE], root=0)
if comm.rank == 0:
    print("squares:", np.array_equal(result, matrix**2))
