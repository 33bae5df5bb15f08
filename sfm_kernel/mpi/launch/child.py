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
    """This process is a new rank: raised up to the launcher's first line, which calls ``rank.main``
    with the arguments of this exception."""


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

    pid: int
    prefix = b""
    program: Native | None = None
    ready = joined = finished = False
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
        heard: Callable[[Child, Report], None],
    ) -> None:
        self.socket, theirs = reports.pair()
        self._attend(world, selector, heard)
        self.prefix = self.rank.label.encode() if label else b""
        self.program = program if isinstance(program, Native) else None
        self.ready = self.program is not None
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
            self._close_socket()
            _close(out[0], err[0], typed)
            raise
        finally:
            theirs.close()
            _close(out[1], err[1], stdin)
        pairs = zip((out[0], err[0]), outputs, strict=True)
        about = self.prefix, selector, self.rank.world > 0  # no spawned program is run by `rank`
        self.streams = [Stream(fd, output, *about) for fd, output in pairs]
        self._input = Input(0, typed, selector) if keyboard else None

    def _attend(
        self,
        world: World,
        selector: selectors.BaseSelector,
        heard: Callable[[Child, Report], None],
    ) -> None:
        """Be the world's next rank, whose reports come from ``socket``."""
        self.world, self.rank = world, world.next_rank()
        self._selector, self._heard = selector, heard
        self.socket.setblocking(False)
        selector.register(self.socket, selectors.EVENT_READ, self._hear)

    def signal(self, number: int) -> None:
        """Send a signal to the process and to what it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def release(self) -> None:
        """Let it leave the world and end."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(1)

    def answer(self, words: Mapping[str, Any]) -> None:
        """Answer its request for processes."""
        with contextlib.suppress(OSError):
            self.socket.send(json.dumps(words).encode())

    def reap(self) -> bool:
        """Whether it has ended since the last call; all its output has been passed on then."""
        if self.status is not None:
            return False
        if not os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return False
        self.signal(signal.SIGTERM)  # what it started; its number is its own until it is reaped
        self.code = code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.drain()
        while self._hear():
            pass
        self.status = code if code >= 0 else 128 - code
        return True

    def has_left_processes(self) -> bool:
        """Whether something that it has started lives on."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, 0)
            return True
        return False

    def drain(self) -> None:
        """Pass on what it has written."""
        for stream in self.streams:
            stream.drain()

    def close(self) -> None:
        """Close all pipes; it has ended."""
        for stream in self.streams:
            stream.close()
        if self._input is not None:
            self._input.close()
        self._close_socket()

    def _hear(self) -> bool:
        """Take a report; whether there was one."""
        try:
            report = reports.receive(self.socket) if self.socket.fileno() >= 0 else None
        except BlockingIOError:
            return False
        if report is None:
            self._close_socket()
            return False
        self.drain()  # what it wrote before
        self._heard(self, report)
        return True

    def _close_socket(self) -> None:
        if self.socket.fileno() >= 0:
            self._selector.unregister(self.socket)
            self.socket.close()


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
