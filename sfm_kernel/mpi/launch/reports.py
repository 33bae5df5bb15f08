"""What a rank reports to the launcher, and what the launcher answers.

They share a pair of sockets that keeps messages whole. The launcher answers a rank that asks for
processes, and shuts down its side when all ranks are done: then they leave the world. A rank that
sees this end while its program runs has lost its launcher, and is about to be killed.
"""

from __future__ import annotations

import json
import socket
from typing import NamedTuple

from sfm_kernel.errors import PeerLost

READY = "ready"  # it can be interrupted
STARTED = "started"  # it has come to MPI_Init
FINISHED = "finished"  # it waits for the others
EXITED = "exited"  # it called sys.exit, or did what comes to that
RAISED = "raised"
FAILED = "failed"  # a call of a C program's has failed, and its error handler ends it
LOST = "lost"  # it raised since another rank is gone, which may be the real failure
CUT_OFF = "cut off"  # the same of a call of a C program's
ABORTED = "aborted"
CHECKED = "checked"  # a check that is compiled into C programs has stopped it
CRASHED = "crashed"  # a signal is about to kill a C program
INTERRUPTED = "interrupted"
LEFT = "left"  # it has begun something and not ended it
SPAWN = "spawn"  # it asks for processes, and waits for the answer

_LONGEST = 50_000
"""Characters of a text; a message of the sockets must be whole."""


class Report(NamedTuple):
    """What happened to a rank.

    Attributes:
        kind: one of the above.
        status: its exit status.
        text: what is to be shown, such as the traceback; for INTERRUPTED, the line of the program
            in which it was; for CHECKED, the line and what is wrong there; for CRASHED, what
            ``watching.crash`` reads; of a C program's FAILED, CUT_OFF and ABORTED, what
            ``watching.call`` reads; for FINISHED, its ``Account`` (endpoint/seen.py) as JSON; for
            LEFT, what ``wording.unfinished`` reads; for SPAWN, what ``spawning.read`` does as JSON.
    """

    kind: str
    status: int = 0
    text: str = ""


def pair() -> tuple[socket.socket, socket.socket]:
    """The launcher's end and the rank's."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(end: socket.socket, report: Report) -> None:
    """Report to the launcher; without effect if it has died."""
    if len(report.text) > _LONGEST and report.kind == FINISHED:
        report = report._replace(text="{}")
    if len(report.text) > _LONGEST:
        half = _LONGEST // 2
        text = f"{report.text[:half]}\n…\n{report.text[-half:]}"
        report = report._replace(text=text)
    try:
        end.sendall(json.dumps(report).encode())
    except OSError:
        pass


def receive(end: socket.socket) -> Report | None:
    """The next report of a rank; None when it has ended."""
    try:
        packet = end.recv(1 << 20)
    except ConnectionResetError:
        packet = b""
    return Report(*json.loads(packet)) if packet else None


def is_lost(error: BaseException | None) -> bool:
    """Whether an error was caused by another process's end."""
    while error is not None:
        if isinstance(error, PeerLost):
            return True
        error = error.__cause__ or error.__context__
    return False
