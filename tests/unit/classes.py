"""A class that serves in a thread, requests to it, and reports to send."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
import time
from typing import Any

from sfm_kernel.classroom.report import report_of
from sfm_kernel.classroom.shared_worlds import SharedWorlds
from sfm_kernel.classroom.web import application, server
from tests.observe.pictures import message, process

KEY = "the-teacher's-key-of-this-test"
OWN = "a-secret-of-the-first-notebook"
OTHER = "a-secret-of-the-second-notebook"
HOSTILE = "<img src=x onerror=alert(1)>\u202egnp\x1b[31m\x00\n"

Json = dict[str, Any]


def diagnosis(verdict: str = "idle", **more: Any) -> Json:
    """A diagnosis, as the schema has it."""
    empty: Json = {"world": "w", "time": time.time(), "cycle": [], "stuck": [], "since": None}
    empty |= {"title": "All are idle", "sentences": [], "edges": [], "but_for": None}
    return empty | {"verdict": verdict, "processes": []} | more


def engine(name: str, **more: Any) -> Json:
    """An engine that waits in recv, with a message in its inbox."""
    about = {"kind": "engine", "rank": 0, "uid": name, "waits": "recv(tag=2)", "depth": 1}
    return process(name, "blocked in recv", **about, messages=[message("B", tag=1)]) | more


def report(
    name: str = "Emmy", verdict: str = "idle", progress: Json | None = None, **more: Any
) -> Json:
    """The report of a notebook with an engine A; ``more`` are fields of the diagnosis."""
    now = time.time()
    shown = engine("A", since=now - 5)
    seen = {"world": "w", "time": now, "processes": [shown], "sites": [], "links": []}
    return report_of(name, seen, diagnosis(verdict, **more), [], [], progress or {})


class Class:
    """A class that serves, and requests to it."""

    def __init__(self, **limits: Any) -> None:
        self.shared = SharedWorlds()
        self._loop = asyncio.new_event_loop()
        self._server: Any = None
        self._limits = limits
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,))
        self._thread.start()
        ready.wait()

    def _run(self, ready: threading.Event) -> None:
        async def begin() -> None:
            self._server = server(application(self.shared, KEY), **self._limits)
            self._server.listen(0, "127.0.0.1")
            (listening,) = self._server._sockets.values()
            self.port = listening.getsockname()[1]
            ready.set()

        self._loop.run_until_complete(begin())
        self._loop.run_forever()

    def close(self) -> None:
        """End it."""

        async def end() -> None:
            self._server.stop()
            await self._server.close_all_connections()
            self._loop.stop()

        asyncio.run_coroutine_threadsafe(end(), self._loop)
        self._thread.join()
        self._loop.close()

    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, Any]:
        """The status and the body of the answer, parsed if it is JSON."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            line.request(method, path, body, headers)
            answer = line.getresponse()
            text = answer.read()
        finally:
            line.close()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text.decode()

    def share(self, body: bytes, secret: str = OWN, token: str | None = None) -> tuple[int, Any]:
        """Share a report, as a notebook does."""
        headers = {"Authorization": f"Bearer {token or self.shared.join}", "X-SFM-Share": secret}
        return self.ask("POST", "/share", body, **headers)

    def teach(self, path: str, key: str = KEY) -> tuple[int, Any]:
        """Request something, as the page does."""
        return self.ask("GET", path, Authorization=f"Bearer {key}")

    def worlds(self) -> list[Json]:
        """The worlds that the page shows."""
        found: list[Json] = self.teach("/worlds")[1]["worlds"]
        return found
