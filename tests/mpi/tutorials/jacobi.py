"""Jacobi's iteration: blocks of rows, Allgather of the new x, a stop that all agree on."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rows = 6
n = rows * comm.size
block = slice(comm.rank * rows, (comm.rank + 1) * rows)
A = np.random.default_rng(5).random((n, n)) + n * np.eye(n)
b = np.arange(1.0, n + 1)

x = np.zeros(n)
diagonal = A.diagonal()[block]
change, iterations = 1.0, 0
while change > 1e-12 and iterations < 200:
    new = (b[block] - A[block] @ x + diagonal * x[block]) / diagonal
    change = comm.allreduce(float(abs(new - x[block]).max()), op=MPI.MAX)
    comm.Allgather(new, x)
    iterations += 1
if comm.rank == 0:
    print("solved:", np.allclose(A @ x, b), "converged:", iterations < 200)
