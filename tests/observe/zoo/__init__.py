"""Wrong programs, each with the explanation that it must get.

A module is one program:

    NAMES     the processes, by rank
    program   the function that each process runs
    CYCLE     the processes that wait for each other; empty if they wait for none of them
    STUCK     all processes that cannot go on, by rank; CYCLE if it is not given
    SAID      the title, then the sentences

or, if the calls themselves refuse it,

    RAISES    the text of the error

In ``SAID``, ``{word}`` is the location of the line that ends with the comment ``# word``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sfm_kernel import DeadlockDetected, Endpoint

Ended = tuple[str, Any, str]
"""The end of a program: the class of the error, the cycle that it names, its text."""


def outcome(sfm: Endpoint, program: Callable[[Endpoint], object]) -> Ended | None:
    """Run the program; return how an observer has ended it, or None."""
    try:
        program(sfm)
    except DeadlockDetected as error:
        return type(error).__name__, error.cycle, str(error)
    except Exception as error:
        _, title, text = str(error).partition("Deadlock: ")
        if type(error).__module__ != "mpi4py.MPI" or not title:
            raise
        return "MPI.Exception", None, title + text
    return None
