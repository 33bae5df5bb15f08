"""A rank as the launcher sees it: its process, its pipes, what it reported.

Ranks are forks of the launcher, which imports once what all of them need. It has one thread, and
runs nothing of a program. A new rank leaves everything that the launcher was doing by raising
``Forked``.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
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
    """This process is a new rank: raised up to the launcher's first line, which runs the program.

    Attributes:
        words: the program.
        environment: all of it.
        launcher: the number of the launcher's process.
        reports: the descriptor of the socket on which to report.
    """

    def __init__(
        self, words: Sequence[str], environment: Mapping[str, str], launcher: int, reports: int
    ) -> None:
        super().__init__()
        self.words, self.environment = words, environment
        self.launcher, self.reports = launcher, reports


class Child:
    """One rank. It is started at once, in a session of its own.

    Args:
        world: that of which it is the next rank.
        program: its words, as ``program.run`` takes them; or a program of its own.
        environment: all of it.
        outputs: where its stdout and stderr go.
        label: whether each of its lines says which rank it is from.
        heard: called with this and each report.
    Attributes:
        rank: which rank of which world it is.
        program: if it is one of its own.
        ready: it can be interrupted.
        joined: it has come to MPI_Init.
        finished: its program has ended, and it waits for the others.
        report: how it failed, if it did and could tell.
        status: its exit status as a shell has it, once it has been reaped.
        code: the same as ``subprocess`` has it: -n if signal n has killed it.
    Raises:
        OSError: it could not be started.
        Forked: in the new rank.
    """

    def __init__(
        self,
        world: World,
        program: Sequence[str] | Native,
        environment: Mapping[str, str],
        outputs: tuple[OutputMux, OutputMux],
        label: bool,
        selector: selectors.BaseSelector,
        heard: Callable[[Child, Report], None],
    ) -> None:
        self.world, self.rank = world, world.next_rank()
        self.prefix = self.rank.label.encode() if label else b""
        self.program = program if isinstance(program, Native) else None
        self.ready = self.program is not None
        self.joined = self.finished = False
        self.report: Report | None = None
        self.status: int | None = None
        self.code = 0
        self._selector, self._heard = selector, heard
        self._socket, theirs = reports.pair()
        out, err = os.pipe(), os.pipe()
        keyboard = self.rank.nth == 0 and _is_terminal(0)
        stdin, typed = os.pipe() if keyboard else (_stdin(self.rank.nth), -1)
        launcher = os.getpid()
        try:
            self.pid = fork()
            if not self.pid:
                _take_streams(stdin, out[1], err[1])
                if isinstance(program, Native):
                    execute(program, environment, launcher, theirs.detach())
                raise Forked(program, environment, launcher, theirs.detach())
        except (OSError, Forked):
            self._socket.close()
            _close(out[0], err[0], typed)
            raise
        finally:
            theirs.close()
            _close(out[1], err[1], stdin)
        self._socket.setblocking(False)
        pairs = zip((out[0], err[0]), outputs, strict=True)
        about = self.prefix, selector, self.rank.world > 0  # no spawned program is run by `rank`
        self._streams = [Stream(fd, output, *about) for fd, output in pairs]
        self._input = Input(0, typed, selector) if keyboard else None
        selector.register(self._socket, selectors.EVENT_READ, self._hear)

    def signal(self, number: int) -> None:
        """Send a signal to the process and to what it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def release(self) -> None:
        """Let it leave the world and end."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(1)

    def answer(self, words: Mapping[str, Any]) -> None:
        """Answer its request for processes."""
        with contextlib.suppress(OSError):
            self._socket.send(json.dumps(words).encode())

    def reap(self) -> bool:
        """Whether it has ended since the last call; all its output has been passed on then."""
        if self.status is not None:
            return False
        if not os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return False
        self.signal(
            signal.SIGTERM
        )  # what it started; its number is its until reaped
        self.code = code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.drain()
        while self._hear():
            pass
        self.status = code if code >= 0 else 128 - code
        return True

    def has_left_processes(self) -> bool:
        """Whether something that it has started lives on."""
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def drain(self) -> None:
        """Pass on what it has written."""
        for stream in self._streams:
            stream.drain()

    def watch(self) -> None:
        """Read its output as long as there is room for it."""
        for stream in self._streams:
            stream.watch()

    def due(self) -> float | None:
        """When ``show`` should be called next."""
        return min(filter(None, (stream.due() for stream in self._streams)), default=None)

    def show(self, now: float) -> None:
        """Show starts of lines that have waited long enough."""
        for stream in self._streams:
            if (due := stream.due()) and due <= now:
                stream.show()

    def close(self) -> None:
        """Close all pipes; it has ended."""
        for stream in self._streams:
            stream.close()
        if self._input is not None:
            self._input.close()
        self._close_socket()

    def _hear(self) -> bool:
        """Take a report; whether there was one."""
        try:
            report = reports.receive(self._socket) if self._socket.fileno() >= 0 else None
        except BlockingIOError:
            return False
        if report is None:
            self._close_socket()
            return False
        self.drain()  # what it wrote before
        self._heard(self, report)
        return True

    def _close_socket(self) -> None:
        if self._socket.fileno() >= 0:
            self._selector.unregister(self._socket)
            self._socket.close()


def _is_terminal(fd: int) -> bool:
    try:
        return os.isatty(fd) and os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:
        return False


def _stdin(nth: int) -> int:
    """The launcher's stdin (-1) for the first rank, if that is no terminal; an empty one else."""
    return os.open(os.devnull, os.O_RDWR) if nth or os.isatty(0) else -1


def _take_streams(*given: int) -> None:
    """Make these descriptors stdin, stdout and stderr; -1 leaves one as it is."""
    for number, fd in enumerate(given):
        if fd >= 0:
            os.dup2(fd, number)


def _close(*fds: int) -> None:
    for fd in fds:
        if fd >= 0:
            os.close(fd)
