"""A dot product: the vectors are scattered, each process multiplies its part."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
count = 1000
x = y = None
if comm.rank == 0:
    x = np.linspace(0, 1, count * comm.size)
    y = np.linspace(1, 2, count * comm.size)
my_x, my_y = np.empty(count), np.empty(count)
comm.Scatter(x, my_x, root=0)
comm.Scatter(y, my_y, root=0)
dot = comm.allreduce(float(my_x @ my_y))
if comm.rank == 0:
    print("dot product is right:", np.isclose(dot, x @ y))
