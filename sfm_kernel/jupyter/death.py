"""Why an engine has ended: what its supervisor finds out, and leaves for observers.

An engine that is killed by a signal of its own writes the lines that it was in into a file in
memory that it shares with its supervisor (Python's faulthandler does so).
"""

from __future__ import annotations

import faulthandler
import os
import signal
from contextlib import suppress

from sfm_kernel.observe.ends import END
from sfm_kernel.observe.snapshot import states
from sfm_kernel.observe.states import parse
from sfm_kernel.spawn.report import died, frames

_HEAD = 4096
"""Bytes for the engine's current cell, before what faulthandler writes."""

_FROM_OUTSIDE = "was killed by SIGKILL, from outside: most likely for want of memory"

_engine: int | None = None


def shared_file() -> int:
    """A file in memory, for a supervisor to share with an engine that it is about to fork."""
    fd = os.memfd_create("sfm-crash", os.MFD_CLOEXEC)
    os.ftruncate(fd, _HEAD)
    os.lseek(fd, 0, os.SEEK_END)
    return fd


def watch(fd: int) -> None:
    """Have this engine write its lines into the file if a signal kills it."""
    global _engine
    _engine = fd
    faulthandler.enable(fd, all_threads=False)


def begin_cell(number: int | None, file: str) -> None:
    """Note which cell this engine runs, and the name of its compiled code."""
    if _engine is not None:
        head = f"{'' if number is None else number}\n{file}\n".encode()[: _HEAD - 1]
        os.pwrite(_engine, head + b"\0", 0)


def cause(code: int, fd: int) -> str:
    """How an engine has ended, in words that follow its name.

    Args:
        code: its return code, as in ``subprocess``.
        fd: the file that it shares.
    """
    if code == -signal.SIGKILL:
        return _FROM_OUTSIDE
    return f"{died(code)}{_in_line(fd) if code < 0 else ''}"


def _in_line(fd: int) -> str:
    """The user's innermost line when the signal came: " in cell 6, line 3"; "" if unknown."""
    content = os.pread(fd, 1 << 20, 0)
    head = content.partition(b"\0")[0].decode(errors="replace")
    number, _, cell = head.removesuffix("\n").partition("\n")
    lines = frames(content[_HEAD:])
    for file, line in lines:
        if number and file == cell:
            return f" in cell {number}, line {line}"
    return f" in cell {number}" if number and not lines else ""


def leave_word(folder: str, pid: int, words: str) -> None:
    """Leave the cause of a process's end beside its segment, where observers look for it."""
    for state in states(folder):
        if parse(state["info"]).get("pid") == pid:
            path = os.path.join(folder, state["uid"] + END)
            with suppress(FileExistsError):
                fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                with open(fd, "w") as file:
                    file.write(words)
