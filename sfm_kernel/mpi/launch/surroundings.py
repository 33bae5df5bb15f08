"""What the launcher has around its loop: its environment, signals that wake it, and a guardian."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sfm_kernel.directory import root
from sfm_kernel.mpi.launch import guardian

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP, signal.SIGCHLD)
"""Those that the launcher has handlers for. In a new rank they are blocked until it has its own."""

_OF_OTHERS = (
    "SFM_DIRECTORY", "SFM_KEY", "SFM_MPI_APPNUM", "SFM_MPI_FIRST", "SFM_MPI_PARENT",
    "SFM_MPI_UNIVERSE",
)  # fmt: skip
"""In the environment: of a world between machines, and of a launcher that started this one."""


def environment(world: str, launch: int, universe: int | None) -> dict[str, str]:
    """What all ranks have in theirs.

    Args:
        world, launch: the name and the number of this launch.
        universe: what MPI_UNIVERSE_SIZE says, if it is set.
    """
    told = {name: os.environ[name] for name in os.environ if name not in _OF_OTHERS}
    told |= {"SFM_MPI_WORLD": world, "SFM_MPI_LAUNCH": str(launch), "SFM_DIR": root()}
    return told | ({"SFM_MPI_UNIVERSE": str(universe)} if universe is not None else {})


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
    """A process that ends the ranks if this one is killed; yields how to tell it who lives.

    It is a fork: a Python of its own would take as long to start as all ranks together.
    """
    told, tells = os.pipe()
    try:
        pid = fork()
        if not pid:
            guardian.main(world, told)  # does not return
    except OSError:
        os.close(tells)
        raise
    finally:
        os.close(told)
    launcher = os.getpid()

    def note(line: str) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(tells, f"{line}\n".encode())

    try:
        yield note
    finally:
        os.close(tells)
        if os.getpid() == launcher:  # else this is a new rank
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


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
            os.setsid()  # Ctrl-C is for the launcher, which tells the ranks
        else:
            os.close(begins)
            begins = -1
            os.read(began, 1)  # its end: the rank has a group that signals can be sent to
    finally:
        for fd in (began, begins):
            if fd >= 0:
                os.close(fd)
        if pid:
            signal.pthread_sigmask(signal.SIG_SETMASK, former)
    return pid
