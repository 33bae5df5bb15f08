"""Forces between bodies: everybody's bodies travel round a ring."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
count = 5
place = np.random.default_rng(7).random((size * count, 2))
bodies = place[rank * count : (rank + 1) * count].copy()


def forces(on: np.ndarray, by: np.ndarray) -> np.ndarray:
    away = by[None, :, :] - on[:, None, :]
    distance = np.sqrt((away**2).sum(axis=2) + 0.01)
    return (away / distance[:, :, None] ** 3).sum(axis=1)


travelling, total = bodies.copy(), forces(bodies, bodies)
for _ in range(size - 1):
    comm.Sendrecv_replace(travelling, dest=(rank + 1) % size, source=(rank - 1) % size)
    total += forces(bodies, travelling)
everything = np.empty_like(place)
comm.Allgather(total, everything)
if rank == 0:
    print("forces are right:", np.allclose(everything, forces(place, place)))
    print("they add up to nothing:", np.allclose(everything.sum(axis=0), 0))
