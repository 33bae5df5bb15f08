"""Records with several fields are sent as one struct datatype."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
particle = np.dtype([("place", "d", 3), ("charge", "i"), ("mass", "f")], align=True)
record = MPI.Datatype.Create_struct(
    [3, 1, 1],
    [particle.fields[name][1] for name in ("place", "charge", "mass")],
    [MPI.DOUBLE, MPI.INT, MPI.FLOAT],
)
datatype = record.Create_resized(0, particle.itemsize).Commit()

swarm = np.zeros(4, particle)
if comm.rank == 0:
    swarm["place"] = np.arange(12).reshape(4, 3)
    swarm["charge"], swarm["mass"] = [-1, 1, -1, 1], 0.5
comm.Bcast([swarm, 4, datatype], root=0)
swarm["place"] += comm.rank
everyone = np.zeros((comm.size, 4), particle) if comm.rank == 0 else None
comm.Gather([swarm, 4, datatype], [everyone, 4, datatype] if comm.rank == 0 else None)
if comm.rank == 0:
    print("places add up to", everyone["place"].sum())
    print("charges", everyone["charge"].sum(), "masses", everyone["mass"].sum())
datatype.Free()
