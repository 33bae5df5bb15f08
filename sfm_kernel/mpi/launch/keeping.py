"""Keeps a finished run for the panel: its timeline, why it hung, and its last output.

A launcher does not read the timeline: that takes as long as a small program. It holds the segments
of its ranks, which these remove when they leave, by a second name; and when it ends, it leaves a
process behind that reads them, and writes the record.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from sfm_kernel.directory import WorldFolder, root
from sfm_kernel.errors import SFMError
from sfm_kernel.finished_runs import keep
from sfm_kernel.spawn.forked import let_go, quiet_fork, take_signals
from sfm_kernel.spawn.output import Tail
from sfm_kernel.spawn.report import died
from sfm_kernel.watching import write_record

_HELD, _SEGMENT = ".held", ".seg"
"""A living process's segment has another name, so that no observer takes the folder for a world."""

_STOPPED = [128 + number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
"""Exit statuses of launchers that were stopped."""

_COURTESY = 10  # how much the writer lets other programs go first, see ``nice``


class Keeping:
    """The run of a launcher that is kept when it has ended.

    Args:
        programs: for each program the number of ranks, and its words in the command line.
        most: how many runs are kept.
    """

    def __init__(self, programs: Sequence[tuple[int, Sequence[str]]], most: int) -> None:
        self.output = Tail()
        self._program = ", ".join(dict.fromkeys(_name(words) for _, words in programs))
        self._ranks = sum(size for size, _ in programs)
        self._most = most
        self._folder: WorldFolder | None = None

    def hold(self, world: str) -> None:
        """Keep the segments that are now in a world."""
        # As a world of this process, it is removed with those of dead processes if need be.
        with suppress(OSError, SFMError):  # nothing is kept, and the run goes on
            if self._folder is None:
                self._folder = WorldFolder(f"kept-{os.getpid()}-{os.urandom(4).hex()}", create=True)
            there = os.path.join(root(), world)
            for name in os.listdir(there):
                uid, suffix = os.path.splitext(name)
                if suffix == _SEGMENT:
                    with suppress(FileExistsError, FileNotFoundError):
                        os.link(
                            os.path.join(there, name), os.path.join(self._folder.path, uid + _HELD)
                        )

    def write(self, status: int, deadlocks: Sequence[tuple[float, str]]) -> None:
        """Have the run written after this process's end, unless it never was one of MPI.

        Args:
            status: the exit status.
            deadlocks: those that were proven: when (s since 1970), and their explanations.
        """
        if self._folder is None:
            return
        with suppress(OSError):
            if not quiet_fork():
                self._become_writer(status, deadlocks, self._folder)
        self._folder.close()

    def _become_writer(
        self, status: int, deadlocks: Sequence[tuple[float, str]], folder: WorldFolder
    ) -> NoReturn:
        try:
            os.nice(_COURTESY)  # this process's parent is about to end, which somebody waits for
            os.setsid()  # what the terminal signals is for what the user runs next
            let_go(keep=folder.fileno())
            take_signals()
            os.umask(0o077)
            self._write(status, deadlocks, folder)
        finally:
            os._exit(0)

    def _write(
        self, status: int, deadlocks: Sequence[tuple[float, str]], folder: WorldFolder
    ) -> None:
        for name in os.listdir(folder.path):
            uid, suffix = os.path.splitext(name)
            if suffix == _HELD:
                os.rename(
                    os.path.join(folder.path, name), os.path.join(folder.path, uid + _SEGMENT)
                )
        ranks = f"{self._ranks} {'rank' if self._ranks == 1 else 'ranks'}"
        end = _end(status, bool(deadlocks))
        title = f"{self._program} on {ranks}: {end}"
        about = {
            "program": self._program,
            "ranks": self._ranks,
            "time": time.time(),
            "end": end,
        }
        try:
            keep(
                about,
                lambda path: write_record(
                    folder.path, path, title, deadlocks, output=self.output.text()
                ),
                self._most,
            )
        finally:
            folder.close()
            from sfm_kernel.directory import remove_unused

            remove_unused(folder.path)


def _name(words: Sequence[str]) -> str:
    """The name that the user knows a program by."""
    cell = os.environ.get("SFM_CELL", "").partition("\t")[0]
    if cell:
        return f"cell {cell}"
    word = words[1] if words[0] == "-m" else words[0]
    return os.path.basename(os.path.abspath(word))


def _end(status: int, hung: bool) -> str:
    """How a run ended, in a few words."""
    if hung:
        return "deadlock"
    if status in _STOPPED:
        return "stopped"
    if 128 < status <= 128 + signal.SIGRTMAX:
        return died(128 - status).removeprefix("was ")
    return f"exit status {status}" if status else "done"
