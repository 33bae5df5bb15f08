"""Processes that are no engines (MPI ranks, an ipyparallel client), and who drives them.

MPI ranks that wait for a message keep a core busy. Between two jobs every process therefore waits
for a thread that reads a socket, which costs nothing. The socket is its lifeline, too: the process
ends with its driver.
"""

from __future__ import annotations

import json
import os
import shutil
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

from sfm_kernel.errors import SFMError
from sfm_kernel.lessons.measure.engines import START_SECONDS
from sfm_kernel.spawn import lifeline, process

Answer = dict[str, Any]
OURS = "SFM's MPI"
"""The kind of a crew whose mpi4py runs on our library, in ranks of our launcher."""

GRACE = 10.0
"""Seconds that processes get to end by themselves; a cluster of ipyparallel takes some."""


def absent(kind: str) -> str | None:
    """Why this crew cannot be had here, and how to get it; None if it can.

    Args:
        kind: "mpi4py" or "ipyparallel".
    """
    if find_spec(kind) is None:
        return f"{kind} is left out, it is not installed: pip install 'sfm-kernel[bench]'"
    if kind == "mpi4py" and _mpiexec() is None:
        return "mpi4py is left out, there is no mpiexec: pip install 'sfm-kernel[bench]'"
    return None


def launcher(kind: str, n: int) -> list[str]:
    """The words that start Python as ``n`` ranks of an MPI: of MPICH ("mpi4py"), or of ours."""
    if kind == OURS:
        return [sys.executable, "-m", "sfm_kernel.mpi", "-n", str(n)]
    return [_mpiexec() or "mpiexec", "-n", str(n), sys.executable]


def _mpiexec() -> str | None:
    # That of this environment first: another MPI's would start single processes.
    own = Path(sys.executable).with_name("mpiexec")
    return str(own) if own.exists() else shutil.which("mpiexec")


def ranks(kind: str, n: int, module: str) -> Crew:
    """A crew of ``n`` ranks of an MPI (see ``launcher``), each of which runs a module."""
    return Crew(kind, n, [*launcher(kind, n), "-m", module])


class Crew:
    """``n`` processes of a kind, started by the constructor; a context manager that ends them.

    Args:
        kind: what they are called in errors.
        command: the words that start them; the path of a socket is added as the last one.

    Raises:
        SFMError: they did not start. What they wrote to stderr is in the message.
    """

    def __init__(self, kind: str, n: int, command: Sequence[str]) -> None:
        self._kind = kind
        self._stack = ExitStack()
        self._links: dict[int, Connection[Any, Any]] = {}
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
        while len(self._links) < n:
            try:
                link: Connection[Any, Any] = Connection(server.accept()[0].detach())
            except TimeoutError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise self._failure("did not start") from None
                continue
            self._links[json.loads(link.recv_bytes())] = link

    def ask(self, what: str, **job: Any) -> Answer:
        """Let every process do a job; return the answer of rank 0.

        Raises:
            SFMError: it failed, on any of them.
        """
        order = json.dumps([what, job]).encode()
        try:
            for link in self._links.values():
                link.send_bytes(order)
            while True:
                ready = wait(list(self._links.values()))
                for link in [one for one in self._links.values() if one in ready]:
                    answer: Answer = json.loads(link.recv_bytes())
                    if "failed" in answer:
                        raise self._failure(f"failed: {answer['failed']}")
                    if link is self._links[0]:
                        return answer
        except (EOFError, OSError):
            raise self._failure("ended") from None

    def _failure(self, what: str) -> SFMError:
        said = self._stderr.read_text(errors="replace").strip()[-2000:]
        return SFMError(f"{self._kind} {what}" + (f"; it said:\n{said}" if said else ""))

    def close(self) -> None:
        """End the processes: first by themselves, then by force. Harmless when repeated."""
        for link in self._links.values():
            link.close()
        process.wait([self._process], GRACE if self._links else 0)
        # mpiexec takes its ranks along when it is asked to end, and cannot when it is killed.
        process.end([self._process], GRACE)
        self._stack.close()

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def serve(path: str, rank: int, jobs: Mapping[str, Callable[..., Answer | None]]) -> None:
    """Do what the crew's driver asks, until it closes the connection. What each process runs."""
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(path)
        connection: Connection[Any, Any] = Connection(link.detach())
    with connection:
        connection.send_bytes(json.dumps(rank).encode())
        orders: SimpleQueue[bytes | None] = SimpleQueue()
        idle = threading.Event()

        def ended() -> None:
            """The driver has gone: end this process, also when its job does not come to an end."""
            orders.put(None)
            if not idle.wait(1.0):
                os._exit(1)

        lifeline.follow(connection.recv_bytes, orders.put, ended)
        try:
            while order := orders.get():
                what, job = json.loads(order)
                try:
                    answer = jobs[what](**job)
                except Exception as error:
                    connection.send_bytes(json.dumps({"failed": repr(error)}).encode())
                    raise
                if rank == 0:
                    connection.send_bytes(json.dumps(answer or {}).encode())
        finally:
            idle.set()  # there is time to end what it has started itself (a cluster)


def left_out(kinds: Sequence[str]) -> list[str]:
    """A line for each of these crews that cannot be had here."""
    return [line for line in map(absent, kinds) if line is not None]
