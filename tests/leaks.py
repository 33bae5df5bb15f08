"""Finds processes, threads and files that a test has left behind; it may leave none.

Processes are found in two ways, because each alone misses some: descendants of this process
(forks keep their parent's environment), and every process whose environment names this session's
SFM_DIR (engines that detached themselves, or whose parent died, are nobody's children here).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

PATIENCE = 30.0
"""Seconds for what is on its way out; not how fast it must be, only when to call it a leak."""

OF_THE_WORLD = frozenset({"lock", "members.json", "key"})
"""The directory's own files stay as long as the world's folder; segments and rings must not."""

HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver", "tests/janitor.py")
"""Processes of Python and of these tests that live as long as the session."""

OF_A_BROWSER = "chromium --type="
"""Processes that a browser begins and ends as it likes; the browser itself has no type."""


@dataclass
class Left:
    """All that exists at one moment, or all that has come since an earlier one."""

    processes: dict[int, str] = field(default_factory=dict)
    threads: dict[int, str] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)

    def since(self, before: Left) -> Left:
        """Everything in this one that is not in ``before``."""
        return Left(
            {pid: line for pid, line in self.processes.items() if pid not in before.processes},
            {ident: name for ident, name in self.threads.items() if ident not in before.threads},
            self.files - before.files,
        )

    def __or__(self, other: Left) -> Left:
        return Left(
            self.processes | other.processes,
            self.threads | other.threads,
            self.files | other.files,
        )

    def __bool__(self) -> bool:
        return bool(self.processes or self.threads or self.files)

    def __str__(self) -> str:
        lines = [f"process {pid}: {line}" for pid, line in sorted(self.processes.items())]
        lines += [f"thread {name!r}" for name in sorted(self.threads.values())]
        lines += [f"file {name}" for name in sorted(self.files)]
        return "\n".join(lines)


def look(root: Path) -> Left:
    """All processes, sfm threads and shared-memory files of this session as of now."""
    return Left(_processes(root), _threads(), _files(root))


def remaining(root: Path, before: Left) -> Left:
    """Everything that was not there ``before`` and does not go away in ``PATIENCE`` seconds."""
    deadline = time.monotonic() + PATIENCE
    pause = 0.001
    while True:
        left = look(root).since(before)
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(pause)
        pause = min(pause * 2, 0.1)


def remove(root: Path, left: Left) -> None:
    """Kill and delete what was left, so that the tests that follow start clean."""
    for pid in left.processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for name in left.files:
        (root / name).unlink(missing_ok=True)


def environment() -> dict[str, str]:
    """The environment's variables of this package."""
    return {name: value for name, value in os.environ.items() if name.startswith("SFM_")}


def restore(before: dict[str, str]) -> list[str]:
    """Set these variables again; return the names of those that had changed."""
    now = environment()
    changed = sorted(name for name in before | now if before.get(name) != now.get(name))
    for name in changed:
        os.environ.pop(name, None)
    os.environ.update(before)
    return changed


def remove_worlds(root: Path, keep: set[str]) -> None:
    """Remove the folders of all worlds but ``keep``."""
    for world in worlds(root) - keep:
        shutil.rmtree(root / world, ignore_errors=True)


def worlds(root: Path) -> set[str]:
    """Names of the worlds that have a folder."""
    return {path.name for path in root.iterdir() if path.is_dir()} if root.is_dir() else set()


def _processes(root: Path) -> dict[int, str]:
    this = os.getpid()
    marker = b"SFM_DIR=" + os.fsencode(root) + b"\0"
    parents: dict[int, int] = {}
    found: set[int] = set()
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:
                state, parent = file.read().rpartition(b")")[2].split()[:2]
            if state in (b"Z", b"X"):
                continue  # dead; only its parent has not asked for its exit status
            parents[int(entry)] = int(parent)
            with open(f"/proc/{entry}/environ", "rb") as file:
                if marker in file.read() + b"\0":
                    found.add(int(entry))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # it ended meanwhile, or is somebody else's
    ours = {this}
    grew = True
    while grew:
        children = {pid for pid, parent in parents.items() if parent in ours}
        grew = not children <= ours
        ours |= children
    named = {pid: _command(pid) for pid in (found | ours) - {this}}
    helpers = {pid for pid, line in named.items() if any(helper in line for helper in HELPERS)}
    helpers -= {pid for pid in helpers if parents.get(pid) in helpers}  # forks of the fork server
    helpers |= {pid for pid, line in named.items() if OF_A_BROWSER in line}
    return {pid: line for pid, line in named.items() if line and pid not in helpers}


def _command(pid: int) -> str:
    """The command line of a process; empty when it has ended."""
    try:
        process = psutil.Process(pid)
        return " ".join(process.cmdline()) or process.name()
    except psutil.Error:
        return ""


def _threads() -> dict[int, str]:
    """Python's, by identity, and the core's thread for a directory server's updates, by number."""
    found = {
        thread.ident or 0: thread.name
        for thread in threading.enumerate()
        if thread.name.startswith("sfm-")
    }
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it has just ended
            if (task / "comm").read_text() == "sfm-directory\n":
                found[int(task.name)] = "sfm-directory"
    return found


def _files(root: Path) -> set[str]:
    names: set[str] = set()
    for folder, _, files in os.walk(root):
        within = Path(folder).relative_to(root)
        # Only directly in a world's folder are the directory's files expected.
        expected = OF_THE_WORLD if len(within.parts) == 1 else frozenset()
        names |= {str(within / name) for name in files if name not in expected}
    return names
