"""What the launcher has around its loop: signals that wake it, and a guardian."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sfm_kernel.mpi.launch import guardian

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP, signal.SIGCHLD)
"""Those that the launcher has handlers for. In a new rank they are blocked until it has its own."""


def same_file(one: int, other: int) -> bool:
    try:
        return os.path.samestat(os.fstat(one), os.fstat(other))
    except OSError:
        return False


@contextmanager
def signals(selector: selectors.BaseSelector, taken: Callable[[int], None]) -> Iterator[None]:
    """Have ``taken(number)`` called by the selector's loop for each signal that comes."""

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
def guardian_of(world: str) -> Iterator[Callable[[str], None]]:
    """A process that ends the ranks if this one is killed; yields how to tell it who lives."""
    with subprocess.Popen(
        [sys.executable, "-P", "-S", guardian.__file__, world],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # not killed together with this process's group
    ) as process:
        assert process.stdin is not None

        def note(line: str) -> None:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(f"{line}\n".encode())
                process.stdin.flush()

        yield note
