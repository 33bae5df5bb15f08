"""Every process says who it is."""

from mpi4py import MPI

comm = MPI.COMM_WORLD
name = MPI.Get_processor_name()
print(f"Hello from rank {comm.Get_rank()} of {comm.Get_size()} on {name}")
