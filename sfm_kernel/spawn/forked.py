"""Processes that are forks of their owner, which has imported what they need."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP, signal.SIGCHLD)
"""Those that an owner may have handlers for. A fork does not get them until ``take_signals``."""


@contextmanager
def signals(selector: selectors.BaseSelector, taken: Callable[[int], None]) -> Iterator[None]:
    """Have the selector's loop call ``taken(number)`` for each signal that this process gets."""

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


def fork() -> int:
    """A new process, in a session of its own when this returns; 0 in that, with signals blocked."""
    began, begins = os.pipe()
    former = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    pid = -1
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of the threads of NumPy's BLAS,
            pid = os.fork()  # which are prepared for that
        if not pid:
            os.setsid()  # Ctrl-C is for the owner
    finally:
        os.close(begins)
        if pid:
            os.read(began, 1)  # its end: the fork has a group that signals can be sent to
            signal.pthread_sigmask(signal.SIG_SETMASK, former)
        os.close(began)
    return pid


def take_signals(ignored: Collection[int] = ()) -> None:
    """In a new fork: have signals do what they do in a fresh process, from now on."""
    signal.set_wakeup_fd(-1)
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def detach() -> None:
    """Go on in a process that is nobody's child; the former one ends."""
    if os.fork():
        os._exit(0)


class Fork:
    """A fork that runs ``body``, and then ends; it stays in its owner's group.

    What ``body`` raises ends it with exit status 1, and is not shown.
    """

    def __init__(self, body: Callable[[], object]) -> None:
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                body()
                status = 0
            finally:
                os._exit(status)

    def poll(self) -> int | None:
        """The return code, as ``subprocess`` has it; None while it lives."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)
