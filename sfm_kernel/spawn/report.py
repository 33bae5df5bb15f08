"""What a process reports to its owner."""

from __future__ import annotations

import os
import pickle
import signal
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

if TYPE_CHECKING:
    from sfm_kernel.endpoint.seen import Account

JOINED, GO, END = b"J", b"G", b"E"
"""A worker's first word when it has joined the world; its owner's when all have, and when all have
returned: nobody leaves while another may still send to it."""


class Result(NamedTuple):
    """What became of a worker's function.

    Attributes:
        good: whether it has returned.
        value: what it returned, pickled; or what it raised, in words.
        trace: the traceback of what it raised.
        account: which calls of groups it made, if it has returned.
    """

    good: bool
    value: Any
    trace: str = ""
    account: Account | None = None

    def send(self, fd: int) -> None:
        """Write it to a pipe, and close that: its end ends the report."""
        with open(fd, "wb") as pipe:
            pipe.write(pickle.dumps(tuple(self)))


def died(code: int) -> str:
    """How a process ended, in words, by a code as ``subprocess`` has it."""
    if code >= 0:
        return f"ended with exit status {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:  # a realtime signal
        return f"was killed by signal {-code}"


def answers() -> TextIO:
    """This process's stdout, for answers to its owner; what else is printed goes to stderr.

    So does what is printed by a process that inherits the descriptor.
    """
    pipe = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return pipe
