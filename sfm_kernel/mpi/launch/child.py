"""A rank as the launcher sees it: its process, its pipes, what it reported."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

from sfm_kernel.mpi.launch import reports
from sfm_kernel.mpi.launch.relay import Input, Output, Stream
from sfm_kernel.mpi.launch.reports import Report

_PYTHON = [sys.executable, *subprocess._args_from_interpreter_flags()]  # type: ignore[attr-defined]
"""This Python, with the options it was started with."""


class Child:
    """One rank. It is started at once, in a session of its own.

    Args:
        rank: its number.
        words: the program.
        environment: all of it.
        outputs: where its stdout and stderr go.
        label: whether each of its lines says which rank it is from.
        heard: called with this and each report.
    Attributes:
        started: it can be interrupted.
        finished: its program has ended, and it waits for the others.
        report: how it failed, if it did and could tell.
        status: of its end, once it has been reaped.
        killed_by: the name of the signal that killed it; empty if none did.
    """

    def __init__(
        self,
        rank: int,
        words: Sequence[str],
        environment: Mapping[str, str],
        outputs: tuple[Output, Output],
        label: bool,
        selector: selectors.BaseSelector,
        heard: Callable[[Child, Report], None],
    ) -> None:
        self.rank = rank
        self.prefix = b"[%d] " % rank if label else b""
        self.started = self.finished = False
        self.report: Report | None = None
        self.status: int | None = None
        self.killed_by = ""
        self._selector, self._heard = selector, heard
        self._socket, theirs = reports.pair()
        self._socket.setblocking(False)
        out, err = os.pipe(), os.pipe()
        keyboard = os.pipe() if rank == 0 and _is_terminal(0) else None
        given = [theirs.detach(), out[1], err[1], *(keyboard[:1] if keyboard else ())]
        try:
            self._process = subprocess.Popen(
                [*_PYTHON, "-m", __package__, str(os.getpid()), str(given[0]), *words],
                stdin=keyboard[0] if keyboard else _stdin(rank),
                stdout=out[1],
                stderr=err[1],
                env=environment,
                pass_fds=given[:1],
                start_new_session=True,  # Ctrl-C is for the launcher, which tells the ranks
            )
        finally:
            for fd in given:
                os.close(fd)
        self.pid = self._process.pid
        pairs = zip((out[0], err[0]), outputs, strict=True)
        self._streams = [Stream(fd, output, self.prefix, selector) for fd, output in pairs]
        self._input = Input(0, keyboard[1], selector) if keyboard else None
        selector.register(self._socket, selectors.EVENT_READ, self._hear)

    def signal(self, number: int) -> None:
        """Send a signal to the process and to what it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def release(self) -> None:
        """Let it leave the world and end."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(1)

    def reap(self) -> bool:
        """Whether the process has ended now, and had not before. All it said has been passed on."""
        if self.status is not None:
            return False
        if not os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return False
        self.signal(signal.SIGTERM)  # what it left; until it is reaped, its number is its own
        code = self._process.wait()
        self.drain()
        while self._hear():
            pass
        self.killed_by = _name(-code) if code < 0 else ""
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
        """Pass on what it has said and written."""
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


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a realtime signal
        return f"signal {number}"


def _is_terminal(fd: int) -> bool:
    try:
        return os.isatty(fd) and os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:
        return False


def _stdin(rank: int) -> int | None:
    """Rank 0 has the launcher's own, which is no terminal; the others read the end of a file."""
    return subprocess.DEVNULL if rank or os.isatty(0) else None
