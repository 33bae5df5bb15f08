"""Runs other programs of this folder in one world, one after another, each as ``__main__``.

Starting Python takes longer than any of them. Prints one JSON document from rank 0: name of a
program -> what its ranks have written, by rank.
"""

import io
import json
import runpy
import sys
from contextlib import redirect_stdout
from pathlib import Path

from mpi4py import MPI

comm = MPI.COMM_WORLD.Dup()
written = {}
for path in map(Path, sys.argv[1:]):
    with redirect_stdout(io.StringIO()) as output:
        runpy.run_path(str(path), run_name="__main__")
    comm.Barrier()
    written[path.stem] = comm.gather(output.getvalue())
if comm.rank == 0:
    print(json.dumps(written))
