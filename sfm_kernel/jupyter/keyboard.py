"""Asks the user for a line when a program reads its stdin, and only then."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import sys
import termios
from contextlib import suppress

_READ = {"x86_64": "0", "aarch64": "63", "riscv64": "63"}.get(os.uname().machine, "")
"""The number of the system call ``read``."""


class Keyboard:
    """The notebook's input, for rank 0 of a launcher.

    The system says which call a process waits in (/proc/PID/syscall). Where it does not, nothing is
    asked, and the program reads the end of its input.

    Attributes:
        pause: seconds between two looks; None once nothing will be asked any more.
    """

    def __init__(self, launcher: subprocess.Popen[bytes]) -> None:
        self._launcher = launcher
        self._reader = 0  # rank 0
        self._seen = False  # that it reads, at the last look
        self.pause: float | None = 0.1
        if not _READ or not _is_told(os.getpid()):
            self._close()

    def ask_if_wanted(self) -> None:
        """Ask for a line, should rank 0 wait for one, and give it that."""
        if self.pause is None:
            return
        reads = self._reads()
        if not reads or not self._seen:  # twice: what it was given may be on its way
            self._seen = reads
            return
        self._seen = False
        sys.stdout.flush()
        try:
            line = input()
        except Exception:  # noqa: BLE001 - EOFError; or the front end has no input
            self._close()
            return
        assert self._launcher.stdin is not None
        with suppress(OSError):  # it has ended meanwhile
            self._launcher.stdin.write(f"{line}\n".encode())
            self._launcher.stdin.flush()

    def _reads(self) -> bool:
        assert self._launcher.stdin is not None
        given = fcntl.ioctl(self._launcher.stdin, termios.FIONREAD, bytes(4))
        if struct.unpack("i", given)[0]:
            return False
        self._reader = self._reader or self._find()
        return bool(self._reader) and _call(self._reader)[:2] == [_READ, "0x0"]

    def _find(self) -> int:
        """The process of rank 0; 0 if it is not there yet."""
        pid = self._launcher.pid
        try:
            with open(f"/proc/{pid}/task/{pid}/children") as file:
                children = file.read().split()
            for child in children:
                with open(f"/proc/{child}/environ", "rb") as file:
                    if b"SFM_MPI_RANK=0" in file.read().split(b"\0"):
                        return int(child)
        except OSError:
            pass
        return 0

    def _close(self) -> None:
        self.pause = None
        assert self._launcher.stdin is not None
        self._launcher.stdin.close()


def _is_told(pid: int) -> bool:
    return bool(_call(pid))


def _call(pid: int) -> list[str]:
    """The system call that a process waits in, and its arguments."""
    try:
        with open(f"/proc/{pid}/syscall") as file:
            return file.read().split()
    except OSError:
        return []
