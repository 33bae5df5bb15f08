"""Processes in rows and columns: Split makes a communicator of each."""

from mpi4py import MPI

comm = MPI.COMM_WORLD
columns = 2
row, column = divmod(comm.rank, columns)
my_row = comm.Split(color=row, key=column)
my_column = comm.Split(color=column, key=row)
in_row = my_row.allreduce(comm.rank)
in_column = my_column.allreduce(comm.rank)
print(f"rank {comm.rank} at ({row}, {column}): row {in_row}, column {in_column}")
my_row.Free()
my_column.Free()
