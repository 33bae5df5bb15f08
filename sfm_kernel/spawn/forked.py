"""Processes that are forks of their owner, which has imported the modules that they need."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP, signal.SIGCHLD)
"""Signals for which an owner may have handlers. A fork gets none before ``take_signals``."""


@contextmanager
def signals(selector: selectors.BaseSelector, taken: Callable[[int], None]) -> Iterator[None]:
    """Within the block, the selector's loop calls ``taken(number)`` for each signal."""

    def take() -> None:
        with contextlib.suppress(BlockingIOError):
            for number in os.read(read, 512):
                taken(number)

    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    selector.register(read, selectors.EVENT_READ, take)
    former = {number: signal.signal(number, lambda *_: None) for number in SIGNALS}
    former_fd = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(former_fd)
        for number, handler in former.items():
            signal.signal(number, handler)
        selector.unregister(read)
        os.close(read)
        os.close(write)


@contextmanager
def handlers_wait() -> Iterator[None]:
    """Within the block Python's handlers of ``SIGNALS`` do not run; they run at its end.

    What a handler raises in a function that ``os.fork`` calls would be lost. A mask does not hold
    handlers back: Python runs them in the main thread, whichever thread the signal was given to.
    """
    came: list[int] = []
    former: dict[int, Callable[..., object]] = {}
    process = os.getpid()
    try:
        if threading.current_thread() is threading.main_thread():
            for each in SIGNALS:
                if callable(handler := signal.getsignal(each)):
                    former[each] = handler
                    signal.signal(each, lambda number, _: came.append(number))
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
        if os.getpid() == process:
            with contextlib.ExitStack() as handlers:  # each runs, whatever the others raise
                for number in reversed(came):
                    handlers.callback(former[number], number, sys._getframe())


def quiet_fork() -> int:
    """``os.fork``; handlers of signals run before or after it.

    Without the warning of Python 3.12 and later about a process with threads: those who call it
    begin no threads before; NumPy's BLAS does, and handles forks itself.
    """
    with handlers_wait(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def fork() -> int:
    """Fork a process into a new session; returns its id. In the new process it returns 0, with
    signals blocked."""
    began, begins = os.pipe()
    former = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    pid = -1
    try:
        pid = quiet_fork()
        if not pid:
            os.setsid()  # Ctrl-C is for the owner
    finally:
        os.close(begins)
        if pid:
            os.read(began, 1)  # end of file: the fork has its group, which signals can reach
            signal.pthread_sigmask(signal.SIG_SETMASK, former)
        os.close(began)
    return pid


def take_signals(ignored: Collection[int] = ()) -> None:
    """In a new fork: give signals the effect that they have in a fresh process."""
    signal.set_wakeup_fd(-1)
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def let_go(keep: int) -> None:
    """In a new fork: close all descriptors that the owner has opened, except one."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd > 2 and fd != keep:
            with contextlib.suppress(OSError):  # listdir has closed its own descriptor
                os.close(fd)


def detach() -> None:
    """Continue in a process that is not a child of the caller's parent; this process ends."""
    if quiet_fork():
        os._exit(0)


class Child:
    """A child of this process, by its id."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The return code as in ``subprocess``; None while the process lives."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)


class Fork(Child):
    """A fork that runs ``body`` and then ends; it stays in its owner's process group.

    If ``body`` raises, the fork ends with exit status 1; the error is not shown.
    """

    def __init__(self, body: Callable[[], object]) -> None:
        # A signal that is sent to the fork at once is for its body.
        former = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            super().__init__(quiet_fork())
            if self.pid == 0:
                _run(body, former)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, former)


def _run(body: Callable[[], object], mask: Collection[int]) -> NoReturn:
    status = 1
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        body()
        status = 0
    finally:
        os._exit(status)
