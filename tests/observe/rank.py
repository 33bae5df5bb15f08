"""A program of the zoo in a rank of the launcher: ``-m tests.observe.rank PROGRAM FOLDER``.

Each rank writes its outcome into a file of the folder.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path

import sfm_kernel
from sfm_kernel.mpi.launch.rank import _finish
from tests.observe.zoo import outcome


def main(name: str, folder: str) -> None:
    """Join as the program's process of this rank, run it, and stay until all are done."""
    program = importlib.import_module(f"tests.observe.zoo.{name}")
    rank, size = int(os.environ["SFM_MPI_RANK"]), int(os.environ["SFM_MPI_SIZE"])
    # Ranks of the launcher have no names; the zoo's explanations use names.
    sfm = sfm_kernel.join(
        os.environ["SFM_MPI_WORLD"], name=program.NAMES[rank], rank=rank, size=size
    )
    sfm.wait_for(*program.NAMES)
    ended = outcome(sfm, program.program)
    Path(folder, str(rank)).write_text(json.dumps(ended))
    _finish()


if __name__ == "__main__":
    main(*sys.argv[1:])
