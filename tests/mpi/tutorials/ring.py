"""A number travels round all processes, and each adds its rank."""

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
after, before = (rank + 1) % size, (rank - 1) % size

if rank == 0:
    token = 100
    if size > 1:
        comm.send(token, dest=after, tag=11)
        token = comm.recv(source=before, tag=11)
    print(f"The token is back: {token}")
else:
    token = comm.recv(source=before, tag=11)
    comm.send(token + rank, dest=after, tag=11)
