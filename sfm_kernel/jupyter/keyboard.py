"""Asks the user for a line when a program reads its stdin, and only then."""

from __future__ import annotations

import _thread
import fcntl
import os
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

_READ = {"x86_64": "0", "aarch64": "63", "riscv64": "63"}.get(os.uname().machine, "")
"""The number of the system call ``read``."""

END = "^D"
"""A line that ends the input, since a notebook has no key for it."""


class Keyboard:
    """The notebook's input, for rank 0 of a launcher.

    /proc/PID/syscall names the system call that a process waits in. Without it the user is never
    asked, and the program reads the end of its input.

    Attributes:
        asking: whether the user is being asked, or was when Stop was pressed.
        pause: seconds between two checks; None once the user will no longer be asked.
    """

    def __init__(self, launcher: subprocess.Popen[bytes]) -> None:
        assert launcher.stdin is not None
        self._launcher, self._stdin = launcher, launcher.stdin
        self._since: float | None = None  # when it was first seen to read without input
        self.asking = False
        self.pause: float | None = 0.1
        if not _READ or not os.path.exists("/proc/self/syscall"):
            self._close()

    def ask_if_reading(self, show: Callable[[float], bool]) -> None:
        """If rank 0 waits for a line, ask the user for it and pass it on.

        Args:
            show: shows the program's output for a number of seconds, in any thread; returns False
                once the program has ended.
        """
        if self.pause is None:
            return
        if not self._reads():
            self._since = None
            return
        now = time.monotonic()
        if self._since is None or now < self._since + self.pause:
            self._since = self._since or now  # input, or the program's question, may be on its way
            return
        self._since = None
        sys.stdout.flush()
        self.asking = True
        try:
            line = _line(show)
        except Exception:  # noqa: BLE001 - EOFError, or the front end has no input
            line = END
        self.asking = False
        if line is None or line == END:
            self._close()
            return
        with suppress(OSError):  # the program has ended meanwhile
            self._stdin.write(f"{line}\n".encode())
            self._stdin.flush()

    def _reads(self) -> bool:
        unread = fcntl.ioctl(self._stdin, termios.FIONREAD, bytes(4))
        if struct.unpack("i", unread)[0]:
            return False
        try:
            return any(
                [_READ, "0x0"] in (call[:2] for call in _calls(pid))
                for pid in self._children_with_stdin()
            )
        except PermissionError:  # the user would never be asked, and the program would wait
            self._close()
        except OSError:  # a process has just ended
            pass
        return False

    def _children_with_stdin(self) -> Iterator[int]:
        """The launcher's children with its stdin: rank 0, and each other rank just after a fork."""
        pid = self._launcher.pid
        pipe = os.fstat(self._stdin.fileno())
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            children = file.read().split()
        for child in children:
            with suppress(FileNotFoundError):
                if os.path.samestat(os.stat(f"/proc/{child}/fd/0"), pipe):
                    yield int(child)

    def _close(self) -> None:
        self.pause = None
        self._stdin.close()


def _line(show: Callable[[float], bool]) -> str | None:
    """The user's answer; None if the program ends before it comes."""
    lock, answered, ended = threading.Lock(), False, False

    def meanwhile() -> None:
        nonlocal ended
        while show(0.1):
            if answered:
                return
        with lock:
            if not answered:
                ended = True
                _thread.interrupt_main()  # otherwise the question would remain

    thread = threading.Thread(target=meanwhile, daemon=True)
    thread.start()
    try:
        try:
            return input()
        finally:
            with lock:
                answered = True
            thread.join()
    except KeyboardInterrupt:
        if not ended:
            raise
        return None


def _calls(pid: int) -> Iterator[list[str]]:
    """The system call that each thread of a process waits in, with its arguments."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/syscall") as file:
            yield file.read().split()
