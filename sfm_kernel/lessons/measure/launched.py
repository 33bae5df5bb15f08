"""Processes that are not engines (MPI ranks, an ipyparallel client), and the job that drives them.

MPI ranks that wait for a message keep a core busy. Between two tasks every process therefore waits
for a thread that reads a socket, which costs nothing. The socket is its lifeline, too: the process
ends with its driver.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from multiprocessing.connection import Connection, wait
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from sfm_kernel.errors import SFMError, pip_install
from sfm_kernel.lessons.measure.engines import START_SECONDS
from sfm_kernel.mpi import discovery
from sfm_kernel.spawn import lifeline, process
from sfm_kernel.transport.closing import Closing

Answer = dict[str, Any]
OURS = "SFM's MPI"
"""The kind of a job whose mpi4py runs on SFM's library, in ranks of SFM's launcher."""

PACKAGES = {"mpi4py": "mpi4py>=4.1", "ipyparallel": "ipyparallel>=9"}
"""What pip is asked for, by the kind of a job."""

GRACE = 10.0
"""Seconds before processes are killed; a cluster of ipyparallel takes some to end."""


def absent(kind: str) -> str | None:
    """Why jobs of this kind cannot run here, and what to install; None if they can.

    Args:
        kind: "mpi4py" or "ipyparallel".
    """
    if find_spec(kind) is None:
        return f"{kind} is left out, it is not installed: {pip_install(PACKAGES[kind])}"
    if kind == "mpi4py" and beside("mpiexec") is None:
        return f"mpi4py is left out, there is no mpiexec: {pip_install('mpich>=5')}"
    return None


def launcher(kind: str, n: int) -> list[str]:
    """The command that starts Python as ``n`` ranks of MPICH ("mpi4py"), or of SFM's MPI."""
    if kind == OURS:
        return [sys.executable, "-m", "sfm_kernel.mpi", "-n", str(n)]
    # This environment's mpiexec first: that of another MPI would start single processes.
    return [beside("mpiexec") or "mpiexec", "-n", str(n), sys.executable]


def beside(tool: str) -> str | None:
    """The path of another MPI's command, in this Python's environment or on the PATH."""
    path = Path(sys.executable).with_name(tool)
    return str(path) if path.exists() else discovery.other(tool)


def ranks(kind: str, n: int, module: str) -> LaunchedJob:
    """A job of ``n`` ranks of an MPI (see ``launcher``); each runs a module."""
    return LaunchedJob(kind, n, [*launcher(kind, n), "-m", module])


class LaunchedJob(Closing):
    """``n`` processes of a kind, started by the constructor; a context manager that ends them.

    Args:
        kind: the name of the processes in errors.
        command: the words that start them; the path of a socket is added as the last word.

    Raises:
        SFMError: they did not start. The message has what they wrote to stderr.
    """

    def __init__(self, kind: str, n: int, command: Sequence[str]) -> None:
        self._kind = kind
        self._stack = ExitStack()
        self._connections: dict[int, Connection[Any, Any]] = {}
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="sfm-bench-"))
        self._stderr = Path(folder, "stderr")
        with socket.socket(socket.AF_UNIX) as server, self._stderr.open("wb") as stderr:
            server.bind(f"{folder}/socket")
            server.listen(n)
            server.settimeout(0.2)
            words = [*command, f"{folder}/socket"]
            streams = {"stdin": subprocess.DEVNULL, "stdout": stderr, "stderr": stderr}
            self._process = process.start(words, **streams)
            try:
                self._accept(server, n)
            except BaseException:
                self.close()
                raise

    def _accept(self, server: socket.socket, n: int) -> None:
        deadline = time.monotonic() + START_SECONDS
        while len(self._connections) < n:
            try:
                accepted: Connection[Any, Any] = Connection(server.accept()[0].detach())
            except TimeoutError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise self._failure("did not start") from None
                continue
            self._connections[json.loads(accepted.recv_bytes())] = accepted

    def ask(self, task: str, **details: Any) -> Answer:
        """Let every process do a task; return the answer of rank 0.

        Raises:
            SFMError: the task failed, in any of the processes.
        """
        order = json.dumps([task, details]).encode()
        try:
            for connection in self._connections.values():
                connection.send_bytes(order)
            while True:
                ready = wait(list(self._connections.values()))
                for connection in [known for known in self._connections.values() if known in ready]:
                    answer: Answer = json.loads(connection.recv_bytes())
                    if "failed" in answer:
                        raise self._failure(f"failed: {answer['failed']}")
                    if connection is self._connections[0]:
                        return answer
        except (EOFError, OSError):
            raise self._failure("ended") from None

    def _failure(self, failure: str) -> SFMError:
        stderr = self._stderr.read_text(errors="replace").strip()[-2000:]
        return SFMError(f"{self._kind} {failure}" + (f"; it said:\n{stderr}" if stderr else ""))

    def close(self) -> None:
        """Let the processes end, and kill those that do not. Harmless when repeated."""
        for connection in self._connections.values():
            connection.close()
        process.wait([self._process], GRACE if self._connections else 0)
        # mpiexec ends its ranks when it is asked to end; it cannot if it is killed.
        process.end([self._process], GRACE)
        self._stack.close()


def serve(path: str, rank: int, tasks: Mapping[str, Callable[..., Answer | None]]) -> None:
    """Do the driver's tasks until it closes the connection. Each process of a job calls this."""
    with socket.socket(socket.AF_UNIX) as unix:
        unix.connect(path)
        connection: Connection[Any, Any] = Connection(unix.detach())
    with connection:
        connection.send_bytes(json.dumps(rank).encode())
        orders: SimpleQueue[bytes | None] = SimpleQueue()
        idle = threading.Event()

        def ended() -> None:
            """The driver has gone: end this process, even if its task does not end."""
            orders.put(None)
            if not idle.wait(1.0):
                os._exit(1)

        lifeline.follow(connection.recv_bytes, orders.put, ended)
        try:
            while order := orders.get():
                task, details = json.loads(order)
                try:
                    answer = tasks[task](**details)
                except Exception as error:
                    connection.send_bytes(json.dumps({"failed": repr(error)}).encode())
                    raise
                if rank == 0:
                    connection.send_bytes(json.dumps(answer or {}).encode())
        finally:
            idle.set()  # the process may take its time to end a cluster that it has started


def left_out(kinds: Sequence[str]) -> list[str]:
    """A line for each of these kinds whose jobs cannot run here."""
    return [line for line in map(absent, kinds) if line is not None]
