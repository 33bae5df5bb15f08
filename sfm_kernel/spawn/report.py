"""Reports of a process to its owner."""

from __future__ import annotations

import os
import pickle
import signal
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

if TYPE_CHECKING:
    from sfm_kernel.endpoint.seen import Account

JOINED, GO, END = b"J", b"G", b"E"
"""A worker reports ``JOINED`` when it has joined the world. Its owner orders ``GO`` when all have
joined, and ``END`` when all have returned: no worker leaves while another may still send to it."""


class Result(NamedTuple):
    """The result of a worker's function.

    Attributes:
        good: whether the function has returned.
        value: its pickled return value, or its error in words.
        trace: the traceback of its error.
        account: the calls of groups that it has made, if it has returned.
        failed_at: the time of its error, in seconds of the machine's monotonic clock.
    """

    good: bool
    value: Any
    trace: str = ""
    account: Account | None = None
    failed_at: float = 0.0

    def send(self, fd: int) -> None:
        """Write the result to a pipe, and close the pipe, which ends the report."""
        with open(fd, "wb") as pipe:
            pipe.write(pickle.dumps(tuple(self)))


def died(code: int) -> str:
    """The end of a process in words, from a return code as in ``subprocess``."""
    if code >= 0:
        return f"ended with exit status {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:  # a realtime signal
        return f"was killed by signal {-code}"


def answers() -> TextIO:
    """This process's stdout, for answers to its owner. All other output of this process, and of
    processes that inherit the descriptor, goes to stderr."""
    pipe = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return pipe
