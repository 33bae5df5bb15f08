"""The line with which a terminal runs a program of the file browser in several processes."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Any

from sfm_kernel.errors import SFMError
from sfm_kernel.mpi.launch.crew import MOST_RANKS


class NoProgram(SFMError):
    """What was asked for cannot be run; the text says why."""


def line(root: str, wanted: dict[str, Any]) -> str:
    """The shell's words for a program.

    Args:
        root: the folder that the server shows.
        wanted: ``path``, relative to it, whose folder the terminal will be in; ``ranks``; and
            ``arguments``, as one types them in a shell.
    Raises:
        NoProgram: there is no such program, or the numbers make no sense.
    """
    path, ranks, arguments = (wanted.get(name) for name in ("path", "ranks", "arguments"))
    if not isinstance(path, str) or type(ranks) is not int or not isinstance(arguments, str):
        raise NoProgram('send {"path": "ring.c", "ranks": 4, "arguments": ""}')
    if not 1 <= ranks <= MOST_RANKS:
        raise NoProgram(f"{ranks} processes: choose a number from 1 to {MOST_RANKS}")
    if not arguments.isprintable():
        raise NoProgram("the arguments are one line of printable characters")
    top = Path(root).resolve()
    program = Path(os.path.normpath(top / path.lstrip("/")))
    if not program.is_relative_to(top) or not program.exists() or program == top:
        raise NoProgram(f"there is no {path} in the folder that this server shows")
    name = program.name if not program.name.startswith("-") else f"./{program.name}"
    # -P: a file of the folder that is called like a module of Python's is not taken for it.
    words = [sys.executable, "-P", "-m", "sfm_kernel.mpi", "-n", str(ranks), name]
    return f"{shlex.join(words)} {arguments.strip()}".rstrip()
