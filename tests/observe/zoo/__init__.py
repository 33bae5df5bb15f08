"""Wrong programs, each with what has to be said about it.

A module is one program:

    NAMES     the processes, by rank
    program   what each of them runs
    CYCLE     who wait for each other; empty where they wait for somebody who will never come
    STUCK     all who cannot go on, by rank; the same as CYCLE where it is not given
    SAID      the title, then the sentences

or, where the calls themselves refuse it,

    RAISES    what the error says

In ``SAID``, ``{word}`` is the place of the line that ends with the comment ``# word``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sfm_kernel import DeadlockDetected, Endpoint

Ended = tuple[str, Any, str]
"""How a program was ended: the class of the error, the cycle that it names, its text."""


def outcome(sfm: Endpoint, program: Callable[[Endpoint], object]) -> Ended | None:
    """Run the program; how an observer has ended it, or None."""
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
