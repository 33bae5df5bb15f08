"""Reports of a process to its owner."""

from __future__ import annotations

import faulthandler
import json
import os
import re
import signal
from typing import TYPE_CHECKING, NamedTuple, TextIO

if TYPE_CHECKING:
    from sfm_kernel.endpoint.seen import Account

JOINED, GO, END = b"J", b"G", b"E"
"""A worker reports ``JOINED`` when it has joined the world. Its owner orders ``GO`` when all have
joined, and ``END`` when all have returned: no worker leaves while another may still send to it."""


class Result(NamedTuple):
    """The result of a worker's function.

    Attributes:
        good: whether the function has returned.
        value: its return value as bytes, usually a pickle.
        why: its error in words.
        trace: the traceback of its error.
        account: the calls of groups that it has made, if it has returned.
        failed_at: the time of its error, in seconds of the machine's monotonic clock.
    """

    good: bool
    value: bytes = b""
    why: str = ""
    trace: str = ""
    account: Account | None = None
    failed_at: float = 0.0

    def send(self, fd: int) -> None:
        """Write the result to a pipe, and close the pipe, which ends the report."""
        faulthandler.disable()  # it may write to this pipe
        about = self._replace(value=b"")._asdict() | {"value": len(self.value)}
        with open(fd, "wb") as pipe:
            pipe.write(json.dumps(about).encode() + b"\n")
            pipe.write(self.value)

    @classmethod
    def received(cls, report: bytes | bytearray) -> Result | None:
        """The result that was sent; None if the process died before its report was complete.

        Whatever the bytes are: a report of a process that is not trusted runs nothing here.
        """
        head, _, value = report.partition(b"\n")
        try:
            about = json.loads(head)
            found = cls(**about)._replace(value=bytes(value))
        except (ValueError, TypeError, RecursionError):
            return None
        kinds = (bool, bytes, str, str, dict | None, float)
        if not all(map(isinstance, found, kinds)) or about["value"] != len(value):
            return None
        return found


_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in ', re.MULTILINE)


def frames(crash: bytes | bytearray) -> list[tuple[str, int]]:
    """The files and lines that faulthandler has written when a signal came, the innermost first."""
    found = _FRAME.finditer(crash.decode(errors="replace"))
    return [(frame["file"], int(frame["line"])) for frame in found]


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
