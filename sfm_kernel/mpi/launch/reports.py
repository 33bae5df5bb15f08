"""Reports of a rank to the launcher, and the launcher's answers.

They share a pair of sockets that preserves message boundaries. The launcher answers a rank that
asks for processes, and shuts down its side when all ranks are done: then they leave the world. A
rank that sees this while its program runs has lost its launcher, and is about to be killed.
"""

from __future__ import annotations

import json
import socket
from typing import NamedTuple

from sfm_kernel.errors import PeerLost

READY = "ready"  # the rank can be interrupted
STARTED = "started"  # it has reached MPI_Init
FINISHED = "finished"  # it waits for the others
EXITED = "exited"  # it called sys.exit, or could not become its program
RAISED = "raised"
FAILED = "failed"  # a call of a C program has failed, and its error handler ends it
LOST = "lost"  # it raised because another rank has died or left, which may be the real failure
CUT_OFF = "cut off"  # the same for a call of a C program
PEER_LOST = "peer lost"  # a call has failed for that reason, and the program may go on
ABORTED = "aborted"
CHECKED = "checked"  # a check that is compiled into C programs has stopped it
CRASHED = "crashed"  # a signal is about to kill a C program
INTERRUPTED = "interrupted"
LEFT = "left"  # it has begun an operation and not ended it
DIFFERED = "differed"  # collective calls of MPI have differed, and all have returned
SPAWN = "spawn"  # it asks for processes, and waits for the answer

_LONGEST = 50_000
"""Largest number of characters of a text; a report is one message of the socket."""


class Report(NamedTuple):
    """An event of a rank.

    Attributes:
        kind: one of the above.
        status: the rank's exit status.
        text: the text to show, such as the traceback; for INTERRUPTED, the rank's line of the
            program, or for a C program the input of ``watching.stopped``; for CHECKED, the line
            and the error in it; for CRASHED, the input of ``watching.crash``; for FAILED, CUT_OFF
            and ABORTED of a C program, the input of ``watching.call``; for FINISHED, its
            ``Account`` (endpoint/seen.py) as JSON; for LEFT, the input of ``wording.unfinished``;
            for SPAWN, the input of ``spawning.read`` as JSON.
    """

    kind: str
    status: int = 0
    text: str = ""


def pair() -> tuple[socket.socket, socket.socket]:
    """The launcher's end and the rank's end."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(end: socket.socket, report: Report) -> None:
    """Send a report to the launcher; without effect if the launcher has died."""
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
    """Whether an error was caused by the end of another process."""
    while error is not None:
        if isinstance(error, PeerLost):
            return True
        error = error.__cause__ or error.__context__
    return False
