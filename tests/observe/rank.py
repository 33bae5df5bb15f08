"""A program of the zoo in a rank of the launcher: ``-m tests.observe.rank PROGRAM FOLDER``.

How it was ended is written into the folder, in a file for each rank.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import sys
from pathlib import Path

import sfm_kernel
from sfm_kernel.mpi.engine.process import process
from tests.observe.zoo import outcome


def main(name: str, folder: str) -> None:
    """Join as the program's process of this rank, and run it."""
    program = importlib.import_module(f"tests.observe.zoo.{name}")
    rank = int(os.environ["SFM_MPI_RANK"])
    # Ranks of the launcher have no names; the zoo's have, and are told of by them.
    sfm_kernel.join = functools.partial(sfm_kernel.join, name=program.NAMES[rank])
    ended = outcome(process().sfm, program.program)
    Path(folder, str(rank)).write_text(json.dumps(ended))


if __name__ == "__main__":
    main(*sys.argv[1:])
