"""Everybody sends much to everybody. With Isend and Irecv no order of the calls can deadlock."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
count = 100_000
outgoing = [np.full(count, comm.rank * 10.0 + dest) for dest in range(comm.size)]
incoming = [np.empty(count) for _ in range(comm.size)]
requests = [comm.Isend(outgoing[dest], dest, tag=3) for dest in range(comm.size)]
requests += [comm.Irecv(incoming[source], source, tag=3) for source in range(comm.size)]
MPI.Request.Waitall(requests)
right = all((incoming[source] == source * 10.0 + comm.rank).all() for source in range(comm.size))
if comm.reduce(right, op=MPI.LAND) and comm.rank == 0:
    print("everything has arrived")
