"""A rank as the launcher sees it: its process, its pipes, its reports.

Ranks are forks of the launcher, which imports their common modules once. The launcher has one
thread, and runs no code of a program. A new rank leaves the launcher's loop by raising ``Forked``.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sfm_kernel.mpi.launch import reports
from sfm_kernel.mpi.launch.native import Native, execute
from sfm_kernel.mpi.launch.reports import Report
from sfm_kernel.spawn.forked import fork
from sfm_kernel.spawn.output import Input, OutputMux, Stream

if TYPE_CHECKING:
    from sfm_kernel.mpi.launch.worlds import World


class Forked(BaseException):
    """This process is a new rank. The exception unwinds the launcher's stack to its first function,
    which calls ``rank.main`` with the exception's arguments."""


class Child:
    """One rank. It is started at once, in a session of its own.

    Args:
        world: the world whose next rank it becomes.
        program: the command of a Python program, for ``program.run``; or a compiled program.
        environment: the complete environment.
        outputs: the destinations of its stdout and stderr.
        label: whether each line of its output begins with its rank.
        received: called with this object and each report.
    Attributes:
        rank: its rank and world.
        program: the compiled program, if it is one.
        command: the program's file, if the command line gave a name that is on PATH.
        ready: whether it can be interrupted.
        joined: whether it has reached MPI_Init.
        has_lost: whether a call of it has failed because another rank has died or left.
        differed: whether it has told in MPI_Finalize that collective calls have differed.
        finished: whether its program has ended and it waits for the others.
        report: the report of its failure, if it has sent one.
        status: its exit status as in a shell, after it was reaped.
        code: the same as in ``subprocess``: -n if signal n has killed it.
    Raises:
        OSError: the process could not be started.
        Forked: in the new rank.
    """

    pid: int
    prefix = b""
    command = ""
    program: Native | None = None
    ready = joined = has_lost = differed = finished = False
    report: Report | None = None
    status: int | None = None
    code = 0
    streams: Sequence[Stream] = ()
    _input: Input | None = None

    def __init__(
        self,
        world: World,
        program: Sequence[str] | Native,
        environment: Mapping[str, str],
        outputs: tuple[OutputMux, OutputMux],
        label: bool,
        selector: selectors.BaseSelector,
        received: Callable[[Child, Report], None],
    ) -> None:
        self.socket, rank_end = reports.pair()
        self._attend(world, selector, received)
        self.prefix = self.rank.label.encode() if label else b""
        self.program = program if isinstance(program, Native) else None
        self.ready = self.program is not None
        out, err = os.pipe(), os.pipe()
        keyboard = self.rank.number == 0 and _is_terminal(0)
        stdin, typed = os.pipe() if keyboard else (_stdin(self.rank.number), -1)
        launcher = os.getpid()
        try:
            self.pid = fork()
            if not self.pid:
                _take_streams(stdin, out[1], err[1])
                if isinstance(program, Native):
                    execute(program, environment, launcher, rank_end.detach())
                raise Forked(program, environment, launcher, rank_end.detach())
        except (OSError, Forked):
            self._close_socket()
            _close(out[0], err[0], typed)
            raise
        finally:
            rank_end.close()
            _close(out[1], err[1], stdin)
        pairs = zip((out[0], err[0]), outputs, strict=True)
        about = self.prefix, selector, self.rank.world > 0  # `rank` runs no spawned program
        self.streams = [Stream(fd, output, *about) for fd, output in pairs]
        self._input = Input(0, typed, selector) if keyboard else None

    def _attend(
        self,
        world: World,
        selector: selectors.BaseSelector,
        received: Callable[[Child, Report], None],
    ) -> None:
        """Become the world's next rank, and watch ``socket`` for its reports."""
        self.world, self.rank = world, world.next_rank()
        self._selector, self._received = selector, received
        self.socket.setblocking(False)
        selector.register(self.socket, selectors.EVENT_READ, self._receive)

    def signal(self, number: int) -> None:
        """Send a signal to the process and its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def release(self) -> None:
        """Let the rank leave the world and end."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(1)

    def answer(self, words: Mapping[str, Any]) -> None:
        """Answer the rank's request for processes."""
        with contextlib.suppress(OSError):
            self.socket.send(json.dumps(words).encode())

    def reap(self) -> bool:
        """Whether the process has ended since the last call. All its output is then forwarded."""
        if self.status is not None:
            return False
        if not os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return False
        self.signal(signal.SIGTERM)  # for its children; its id stays valid until it is reaped
        self.code = code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.drain()
        while self._receive():
            pass
        self.status = code if code >= 0 else 128 - code
        return True

    def has_left_processes(self) -> bool:
        """Whether a child of the process still lives."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, 0)
            return True
        return False

    def drain(self) -> None:
        """Forward the output that it has written."""
        for stream in self.streams:
            stream.drain()

    def close(self) -> None:
        """Close all pipes, after its end."""
        for stream in self.streams:
            stream.close()
        if self._input is not None:
            self._input.close()
        self._close_socket()

    def _receive(self) -> bool:
        """Receive a report, if there is one; returns whether there was."""
        try:
            report = reports.receive(self.socket) if self.socket.fileno() >= 0 else None
        except BlockingIOError:
            return False
        if report is None:
            self._close_socket()
            return False
        self.drain()  # the output that precedes the report
        self._received(self, report)
        return True

    def _close_socket(self) -> None:
        if self.socket.fileno() >= 0:
            self._selector.unregister(self.socket)
            self.socket.close()


def end_all(children: Sequence[Child], grace: float) -> None:
    """Kill those that still run, and after ``grace`` seconds what their children have left."""
    for child in children:
        if child.status is None:
            child.signal(signal.SIGKILL)
    deadline = time.monotonic() + grace
    while any(child.status is None and not child.reap() for child in children):
        time.sleep(0.01)
    while orphaned := [child for child in children if child.has_left_processes()]:
        if time.monotonic() > deadline:
            for child in orphaned:
                child.signal(signal.SIGKILL)
            break
        time.sleep(0.01)
    for child in children:
        child.close()


def _is_terminal(fd: int) -> bool:
    try:
        return os.isatty(fd) and os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:
        return False


def _stdin(index: int) -> int:
    """-1 (the launcher's stdin) for the first rank, unless it is a terminal; otherwise an empty
    file."""
    return os.open(os.devnull, os.O_RDWR) if index or os.isatty(0) else -1


def _take_streams(*fds: int) -> None:
    """Make these descriptors stdin, stdout and stderr; -1 leaves one as it is."""
    for number, fd in enumerate(fds):
        if fd >= 0:
            os.dup2(fd, number)


def _close(*fds: int) -> None:
    for fd in fds:
        if fd >= 0:
            os.close(fd)
