"""Prints the public names of MPI, and of each of its classes, as one JSON document."""

from __future__ import annotations

import json

from mpi4py import MPI

found = {"MPI": [name for name in vars(MPI) if not name.startswith("_")]}
for name in found["MPI"]:
    value = getattr(MPI, name)
    if isinstance(value, type):
        inherited = dir(RuntimeError)  # MPI.Exception has them
        words = (word for word in dir(value) if word not in inherited)
        found[name] = [word for word in words if not word.startswith("_")]
if MPI.COMM_WORLD.rank == 0:
    print(json.dumps({name: " ".join(sorted(words)) for name, words in sorted(found.items())}))
