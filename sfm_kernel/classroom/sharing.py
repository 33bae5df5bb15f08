"""The student's side: a thread that observes a world and sends reports to a class."""

from __future__ import annotations

import atexit
import json
import os
import secrets
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from sfm_kernel.classroom.progress import StudentProgress
from sfm_kernel.classroom.report import LINES, encoded, report_of
from sfm_kernel.errors import SFMError
from sfm_kernel.observe import Observer
from sfm_kernel.observe.explain import explain
from sfm_kernel.observe.record.listing import key_of
from sfm_kernel.observe.snapshot import Remote, folder_of, pulse, snapshot
from sfm_kernel.transport.address import LOOPBACK_HOSTS

EVERY = 1.0
"""Seconds between two observations."""

KEEPALIVE = 5.0
"""Most seconds between two requests; an empty one says that nothing has changed."""

CALM = 3.0
"""Seconds after the last change in the world during which the diagnosis may still change."""

PATIENCE = 5.0
"""Seconds to wait for an answer."""

MOST = 30.0
"""Most seconds between two attempts while the class does not answer."""

AROUND = 3
"""Lines shown before and after the line of a process."""

Code = Callable[[Mapping[str, Any]], str | None]
"""Returns the text of the cell or file of a code location."""


class NotShared(SFMError):
    """A class does not take this world; the text says why, and what to do."""


class Share:
    """A world that is shown to a class until ``stop``, or the end of this process.

    Args:
        world: its folder on this machine, or an endpoint in it.
        url: the url of the class, with its join token after a ``#``.
        name: the name that the class's page shows.
        code: returns code, if lines of code are shared, too.
        deadlocks: the latest reports of deadlocks; each has ``time`` and ``text``.
        progress: the exercises that were checked, and a raised hand.
        remote: returns the processes on other machines, see ``explain``.
    Attributes:
        problem: why the class gets no reports now; empty while it does.
    Raises:
        NotShared: the class does not answer, or refuses the world. Nothing is shared.
    """

    def __init__(
        self,
        world: Any,
        url: str,
        name: str,
        *,
        code: Code | None = None,
        deadlocks: Sequence[Any] = (),
        progress: StudentProgress | None = None,
        remote: Remote | None = None,
    ) -> None:
        self._folder = folder_of(world)
        self.url, self.name, self.problem = url, name, ""
        self._client = _ClassClient(url)
        self._code, self._deadlocks, self._remote = code, deadlocks, remote
        self._progress = progress or StudentProgress()
        self._observer = Observer()
        self._pulse: int | None = None
        self._last_sent: Any = None
        self._moved_at = self._due = 0.0
        self._over = threading.Event()
        self._process = os.getpid()
        self._step()  # raises at once if something is wrong
        self._thread = threading.Thread(target=self._run, name="sfm-share", daemon=True)
        self._thread.start()
        atexit.register(self.stop)

    @property
    def shows_code(self) -> bool:
        """Whether lines of code are shown."""
        return self._code is not None

    def stop(self) -> None:
        """Stop sharing, and tell the class so. Harmless when repeated."""
        if self._over.is_set() or os.getpid() != self._process:  # an exiting fork of the kernel
            return
        self._over.set()
        self._thread.join(PATIENCE)
        atexit.unregister(self.stop)
        try:
            self._client.send("DELETE", patience=1.0)
        except NotShared:
            pass  # the class will consider this world silent

    def _run(self) -> None:
        # Asking processes on other machines costs more than reading memory.
        every = pause = EVERY if self._remote is None else 2 * EVERY
        while not self._over.wait(pause):
            try:
                self._step()
            except _Unreachable as problem:
                self.problem, pause = str(problem), min(2 * pause, MOST)
            except NotShared as refused:
                self.problem = str(refused)
                return
            except (OSError, SFMError):  # the notebook that ends the world stops this object, too
                self.problem = "the world has ended"
                return
            else:
                self.problem, pause = "", every

    def _step(self) -> None:
        """Send a report if something has changed, or an empty request if one is due."""
        now, beat = time.monotonic(), pulse(self._folder, self._observer)
        if beat != self._pulse:
            self._pulse, self._moved_at = beat, now
        is_calm, is_due = now > self._moved_at + CALM, now >= self._due
        if is_calm and not is_due and self._remote is None:
            return
        report = self._report()
        essence = _essence(report)
        is_news = essence != self._last_sent
        if not (is_news or is_due):
            return
        # An empty body says that nothing has changed; a class that has restarted refuses it.
        if is_news or not is_calm or not self._client.send("POST"):
            self._client.send("POST", encoded(report))
        self._last_sent, self._due = essence, now + KEEPALIVE

    def _report(self) -> dict[str, Any]:
        remote, observer = self._remote, self._observer
        seen = snapshot(self._folder, remote(False) if remote else (), observer)
        diagnosis = explain(self._folder, remote=remote, observer=observer, history=False)
        latest = list(self._deadlocks)[-3:]
        deadlocks = [{"time": deadlock.time, "text": deadlock.text} for deadlock in latest]
        lines = _listings(seen["processes"], self._code) if self._code else []
        return report_of(self.name, seen, diagnosis, deadlocks, lines, self._progress.report())


def _essence(report: Mapping[str, Any]) -> Any:
    """The report without times and durations, for comparison."""
    diagnosis = report["diagnosis"]
    timeless = {
        **diagnosis,
        "time": 0,
        "sentences": len(diagnosis["sentences"]),
        "processes": [{**process, "text": ""} for process in diagnosis["processes"]],
    }
    return {**report, "snapshot": {**report["snapshot"], "time": 0}, "diagnosis": timeless}


def _listings(processes: Iterable[Mapping[str, Any]], code: Code) -> list[dict[str, Any]]:
    """The lines around the current lines of processes."""
    current: dict[str, tuple[Mapping[str, Any], set[int]]] = {}
    for process in processes:
        now, polls = process["now"], process["polls"]
        if process["state"] in ("idle", "left", "ended", "damaged"):
            continue
        location = (polls or now or process)["where"] or process["where"]
        if location is not None and location["line"]:
            current.setdefault(key_of(location), (location, set()))[1].add(location["line"])
    found = []
    for location, lines in current.values():
        text = code(location)
        if text is None:
            continue
        near = {number for line in lines for number in range(line - AROUND, line + AROUND + 1)}
        numbered = [[*pair] for pair in enumerate(text.splitlines(), start=1) if pair[0] in near]
        cell = location["cell"]
        title = os.path.basename(location["file"]) if cell is None else f"cell {cell}"
        found.append({"title": title, "lines": numbered[:LINES], "at": sorted(lines)})
    return found


# ---- requests to the class


class _Unreachable(NotShared):
    """The class does not answer now; it may answer later."""


class _ClassClient:
    """Sends requests to one class, with its join token and a secret of this world."""

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname, parts.port
        except ValueError as problem:
            raise NotShared(f"{url} is no address: {problem}") from None
        if parts.scheme not in ("http", "https") or not host or not parts.fragment:
            raise NotShared(
                f"{url} is not the address of a class: that begins with http:// or https:// and "
                "has a token after a #. The class's page shows it"
            )
        path = parts.path if parts.path.endswith("/") else parts.path + "/"
        self._address = f"{parts.scheme}://{parts.netloc}{path}share"
        self._headers = {
            "Authorization": f"Bearer {parts.fragment}",
            "X-SFM-Share": secrets.token_urlsafe(32),
        }
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
        if host in LOOPBACK_HOSTS:
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)

    def send(self, method: str, body: bytes = b"", patience: float = PATIENCE) -> bool:
        """Send a request; returns False if the class does not know this world.

        Raises:
            _Unreachable: the class does not answer, or has too many requests.
            NotShared: the class refuses this world for good.
        """
        data = body if method == "POST" else None
        request = urllib.request.Request(self._address, data, self._headers, method=method)
        try:
            with self._opener.open(request, timeout=patience):
                return True
        except urllib.error.HTTPError as answer:
            with answer:
                return self._refused(answer)
        except (OSError, ValueError, urllib.error.URLError) as problem:
            reason = getattr(problem, "reason", problem)
            if isinstance(reason, ssl.SSLCertVerificationError):
                why = (
                    f"the certificate of {self._address} is not trusted: {reason.verify_message}. "
                )
                raise NotShared(why + "SSL_CERT_FILE can name one that is") from None
            raise _Unreachable(f"no answer from {self._address}: {reason}") from None

    def _refused(self, answer: urllib.error.HTTPError) -> bool:
        try:
            message = json.loads(answer.read(4096))["message"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            message = ""
        status, message = answer.code, message if isinstance(message, str) else ""
        message = "".join(letter for letter in message[:300] if letter.isprintable())
        if status == 404 and message.startswith("nothing is known"):
            return False
        if status in (429, 502, 503, 504) or (status == 404 and not message):
            raise _Unreachable(f"the class does not answer now ({status}) {message}".rstrip())
        if 300 <= status < 400:
            message = "it asks for a login; perhaps this is no address of a class"
        raise NotShared(f"the class refuses this world: {message or f'status {status}'}")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirects, so that the token is sent to no other address."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """Return None, so that urllib raises an error."""
        return
