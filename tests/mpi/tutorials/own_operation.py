"""An operation of one's own: the mean and spread of all numbers, in one reduction."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD


def merge(first: MPI.buffer, second: MPI.buffer, datatype: MPI.Datatype) -> None:
    """Welford: counts, means and sums of squares of two samples become those of both."""
    x, y = np.frombuffer(first, "d").reshape(-1, 3), np.frombuffer(second, "d").reshape(-1, 3)
    count = x[:, 0] + y[:, 0]
    apart = x[:, 1] - y[:, 1]
    y[:, 2] += x[:, 2] + apart**2 * x[:, 0] * y[:, 0] / count
    y[:, 1] += apart * x[:, 0] / count
    y[:, 0] = count


operation = MPI.Op.Create(merge, commute=True)
sample = np.arange(comm.rank * 10, comm.rank * 10 + 5 + comm.rank, dtype="d")
triple = MPI.DOUBLE.Create_contiguous(3).Commit()
moments = np.array([sample.size, sample.mean(), ((sample - sample.mean()) ** 2).sum()])
both = np.empty(3)
comm.Allreduce([moments, 1, triple], [both, 1, triple], operation)
everything = np.concatenate(comm.allgather(sample))
if comm.rank == 0:
    print("mean is right:", np.isclose(both[1], everything.mean()))
    print("variance is right:", np.isclose(both[2] / both[0], everything.var()))
operation.Free()
triple.Free()
