"""A notebook without a browser: a real kernel, whose cells are run and whose outputs are read."""

from __future__ import annotations

import os
import re
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from jupyter_client.manager import KernelManager

from sfm_kernel import directory
from sfm_kernel.observe.snapshot import snapshot

PATIENCE = 120.0
"""Seconds that each wait may take; only a wait that hangs needs them."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Cell:
    """The outputs of a cell."""

    parts: dict[str, str] = field(default_factory=dict)  # display id, or a number -> plain text
    html: str = ""
    error: str = ""  # name and message
    traceback: str = ""
    _stream: tuple[str, str] = ("", "")  # the last stream, and the output that shows it

    @property
    def text(self) -> str:
        """All outputs as plain text, in the order of their first appearance."""
        return "\n".join(self.parts.values())

    @property
    def shown(self) -> str:
        """The outputs and the traceback: everything that a reader sees."""
        return f"{self.text}\n{self.traceback}"

    def take(self, kind: str, content: dict[str, Any]) -> None:
        """Add the content of an IOPub message."""
        if kind == "stream":
            self._continue(content["name"], content["text"])
        elif kind in ("display_data", "update_display_data", "execute_result"):
            identity = content.get("transient", {}).get("display_id", "")
            self._add(identity, content["data"].get("text/plain", ""))
            self.html += content["data"].get("text/html", "")
        elif kind == "error":
            self.error = f"{content['ename']}: {content['evalue']}"
            self.traceback = _COLOUR.sub("", "\n".join(content["traceback"]))

    def _continue(self, stream: str, text: str) -> None:
        """Append to a stream, whose messages may end in the middle of a line."""
        name, key = self._stream
        if name != stream or key != next(reversed(self.parts), None):
            key = str(len(self.parts))
        self._stream = stream, key
        self.parts[key] = self.parts.get(key, "") + _COLOUR.sub("", text)

    def _add(self, identity: str, text: str) -> None:
        self.parts[identity or str(len(self.parts))] = _COLOUR.sub("", text)


class Notebook:
    """A kernel, in which ``%sfm`` and ``%%sfm`` load the extension when they are first used."""

    def __init__(self) -> None:
        self.closed = False
        self._cells: dict[str, Cell] = {}  # the outputs of each cell, also after its end
        # Over TCP another process may take a port between the manager's choice and its binding.
        # Without separate connection files all kernels would use the same sockets.
        file = os.path.join(os.environ["JUPYTER_RUNTIME_DIR"], f"kernel-{uuid.uuid4().hex}.json")
        self.manager = KernelManager(kernel_name="python3", transport="ipc", connection_file=file)
        self.manager.start_kernel()
        self._connect()

    def _connect(self) -> None:
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=PATIENCE)
        self.pid = self.process.pid

    def restart(self, *, now: bool) -> None:
        """Restart the kernel as Jupyter does: it is asked to end, or (``now``) killed."""
        self.client.stop_channels()
        self.manager.restart_kernel(now=now)
        self._connect()

    @property
    def process(self) -> Any:
        """The kernel's process."""
        return self.manager.provisioner.process

    def send(self, code: str, *, asks: bool = False) -> str:
        """Start a cell and do not wait; ``wait`` takes what this returns.

        Args:
            asks: whether the cell may ask the user, as in a browser.
        """
        return str(self.client.execute(code, allow_stdin=asks))

    def asked(self) -> str:
        """Wait until the user is asked; returns the question."""
        return str(self.client.get_stdin_msg(timeout=PATIENCE)["content"]["prompt"])

    def answer(self, text: str) -> None:
        """Wait until the user is asked, and answer."""
        self.asked()
        self.client.input(text)

    def wait(self, message: str, until: Callable[[Cell], bool] | None = None) -> Cell:
        """The cell's outputs when it has ended, or when ``until`` is true of them."""
        cell = Cell()
        deadline = time.monotonic() + PATIENCE
        while True:
            of, kind, content = self._take(deadline)
            if of != message:
                continue
            cell.take(kind, content)
            ended = kind == "status" and content["execution_state"] == "idle"
            if ended or (until is not None and until(cell)):
                return cell

    def below(self, message: str, until: Callable[[Cell], bool]) -> Cell:
        """All outputs below a cell, also after its end, once ``until`` is true of them."""
        deadline = time.monotonic() + PATIENCE
        while not until(cell := self._cells.setdefault(message, Cell())):
            self._take(deadline)
        return cell

    def _take(self, deadline: float) -> tuple[str, str, dict[str, Any]]:
        """The next message: its cell, its kind and its content."""
        got = self.client.get_iopub_msg(timeout=max(0.1, deadline - time.monotonic()))
        of = str(got["parent_header"].get("msg_id"))
        self._cells.setdefault(of, Cell()).take(got["msg_type"], got["content"])
        return of, got["msg_type"], got["content"]

    def run(self, code: str) -> Outcome:
        """Run a cell to its end."""
        return Outcome(self.wait(self.send(code)))

    def text(self, code: str) -> str:
        """Run a cell, which must not fail; return its outputs as plain text."""
        return self.run(code).ok().text

    def interrupt(self) -> None:
        """Press the Stop button."""
        self.manager.interrupt_kernel()

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to the kernel and wait for its end."""
        self.process.send_signal(number)
        wait_for(lambda: self.process.poll() is not None, "the kernel ends")

    def close(self) -> None:
        """Shut the notebook down, as Jupyter does; harmless when repeated."""
        if self.closed:
            return
        self.closed = True
        self.client.stop_channels()
        self.manager.shutdown_kernel()


class Outcome(Cell):
    """A cell that has ended."""

    def __init__(self, cell: Cell) -> None:
        super().__init__(**vars(cell))

    def ok(self) -> Outcome:
        """This object; fails if the cell raised."""
        assert not self.error and "UsageError" not in self.text, self.shown
        return self


@contextmanager
def notebook(*cells: str) -> Iterator[Notebook]:
    """A notebook that has run these cells."""
    book = Notebook()
    try:
        for code in cells:
            book.run(code).ok()
        yield book
    finally:
        book.close()


def descendants(pid: int) -> list[psutil.Process]:
    """The processes that a kernel has started, and those that these started."""
    return psutil.Process(pid).children(recursive=True)


def runs(process: psutil.Process) -> bool:
    """Whether the process has not ended; a process that waits to be reaped has."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_for(done: Callable[[], object], what: str) -> None:
    """Poll until ``done()``; fails after a long time."""
    deadline = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.05)


def cluster_files(root: Path) -> list[Path]:
    """The files of all clusters: worlds below ``root``, connection files and logs."""
    profile = Path(os.environ["IPYTHONDIR"], "profile_default")
    return [*root.glob("ipp-*"), *profile.glob("*/*sfm-*")]


def processes() -> list[dict[str, Any]]:
    """The processes of all worlds, from snapshots."""
    with os.scandir(directory.root()) as worlds:
        return [process for world in worlds for process in snapshot(world.path)["processes"]]


def wait_until_blocked(count: int) -> None:
    """Wait until so many processes wait in ``recv``; what their cells printed may come before.

    A cell that is meant to wait until Stop needs ``--no-detect``: where the machine is slow, two
    seconds pass before anybody looks here, and a deadlock is ended by then.
    """

    def blocked() -> int:
        return sum(
            process["alive"] and process["state"] == "blocked in recv" for process in processes()
        )

    wait_for(lambda: blocked() >= count, f"{count} processes are blocked in recv")
