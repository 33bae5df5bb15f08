from mpi4py import MPI

def safe_ring(number):
    comm = MPI.COMM_WORLD
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    ### BEGIN SOLUTION
    return comm.sendrecv(number, dest=right, source=left)
    ### END SOLUTION
