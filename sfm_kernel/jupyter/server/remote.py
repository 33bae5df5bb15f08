"""The processes of a world on other machines, which its directory server reports.

A directory server may be slow, silent or gone. So each has its thread here, which alone waits for
it: the event loop, the threads that read this machine's memory, and the panels that show other
worlds use the last answer. A server is asked only while a panel shows its world. A world whose
processes are all on this machine has no server, and costs nothing here.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from traitlets.log import get_logger

from sfm_kernel.errors import SFMError, WorldGone
from sfm_kernel.jupyter.server.clusters import Cluster

if TYPE_CHECKING:
    from sfm_kernel.directory.client import Client
    from sfm_kernel.relay.view import RemoteView

OPEN_SECONDS = 2.0
"""Seconds without a first answer after which a directory server counts as silent."""

RETRY_SECONDS = 5.0
"""Seconds before a directory server that has not answered, or has refused us, is asked again."""

PATIENCE = 0.2
"""Seconds for which a snapshot waits for an answer; without one it shows the former answer."""


class RemoteWorld:
    """The processes of one world that its directory server reports. Connects when first asked.

    Attributes:
        states: the processes that the server has reported, as ``snapshot`` takes them.
        version: changes after ``states`` has changed.
        problem: why the server could not be reached; "" if it was reached or not yet asked.
    """

    def __init__(self, world: str, url: str, key: bytes) -> None:
        self.states: Sequence[dict[str, Any]] = ()
        self.version = 0
        self.problem = ""
        self._executor = ThreadPoolExecutor(1, "sfm-remote")  # no thread before it is needed
        self._world, self._url, self._key = world, url, key
        self._lock = threading.Lock()
        self._client: Client | None = None
        self._view: RemoteView | None = None
        self._closed = False
        self._asked: Future[None] | None = None
        self._retry_at = -math.inf

    @property
    def executor(self) -> Executor | None:
        """The one thread that waits for the server; None once this is closed."""
        return None if self._closed else self._executor

    def belongs_to(self, cluster: Cluster | None) -> bool:
        """Whether it is this cluster's world, at the same directory server."""
        return cluster is not None and (self._url, self._key) == (cluster.directory, cluster.key)

    def ask(self) -> Future[None] | None:
        """Ask the server, unless it is being asked already; returns at once. For any thread.

        The future is done when the answer is in ``states``, or the server has not answered.
        """
        with self._lock:
            if not self._closed and (self._asked is None or self._asked.done()):
                self._asked = self._executor.submit(self._read)
            return self._asked

    async def refresh(self, seconds: float = PATIENCE) -> None:
        """Ask the server; returns when it has answered, or after ``seconds``."""
        if (asked := self.ask()) is not None:
            await asyncio.wait({asyncio.wrap_future(asked)}, timeout=seconds)

    def view(self) -> RemoteView | None:
        """The processes as the server shows them; None if it was never reached. For ``executor``.

        Blocks: up to ``OPEN_SECONDS`` for the first answer, once in ``RETRY_SECONDS``.
        """
        if self._view is None and not self._closed and time.monotonic() >= self._retry_at:
            # Imported only now: zmq takes time, and most worlds are on one machine.
            from sfm_kernel.directory.client import Client
            from sfm_kernel.relay.view import RemoteView

            try:
                self._client = Client(self._world, self._url, self._key, OPEN_SECONDS)
                self._view, self.problem = RemoteView(self._client), ""
            except SFMError as problem:
                self._give_up(problem)
        return self._view

    def interrupt(self, uid: str) -> None:
        """Send SIGINT to a process, as a notebook's Stop button does. For ``executor``.

        Raises:
            WorldError: the process did not get the signal; the message says why.
            WorldGone: the directory server does not answer.
        """
        view = self.view()
        if view is None or time.monotonic() < self._retry_at:  # it would not answer again
            raise WorldGone(self.problem or f"world {self._world!r} has no directory server")
        try:
            view.interrupt(uid)
        except WorldGone as problem:
            self._give_up(problem)
            raise

    def close(self) -> None:
        """Disconnect from the server once no thread waits for its answer; returns at once."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            try:
                self._executor.submit(self._disconnect)
            except RuntimeError:  # the interpreter ends: its threads have ended
                self._disconnect()
            self._executor.shutdown(wait=False)

    def _read(self) -> None:
        try:
            view = self.view()
            if view is not None and (version := view.pulse()) != self.version:
                self.states = view.states()
                self.version = version
        except Exception:  # noqa: BLE001 - the next answer may be correct
            get_logger().warning("sfm: no answer of %s's directory", self._world, exc_info=True)

    def _give_up(self, problem: SFMError) -> None:
        self._retry_at = time.monotonic() + RETRY_SECONDS
        if str(problem) != self.problem:
            get_logger().warning("sfm: %s", problem)
        self.problem = str(problem)

    def _disconnect(self) -> None:
        client, self._client, self._view, self.states = self._client, None, None, ()
        if client is not None:
            client.close()
