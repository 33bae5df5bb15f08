"""The student's side: a thread that looks at a world and sends what it sees to a class."""

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

from sfm_kernel.classroom.picture import LINES, encoded, sent
from sfm_kernel.errors import SFMError
from sfm_kernel.observe import Observer
from sfm_kernel.observe.explain import explain
from sfm_kernel.observe.record.listing import key_of
from sfm_kernel.observe.snapshot import Remote, folder_of, pulse, snapshot

EVERY = 1.0
"""Seconds between two looks."""

SAID = 5.0
"""Seconds after which something is said in any case: that nothing has changed, if that is so."""

CALM = 3.0
"""Seconds after the last movement during which the explanation may still change."""

PATIENCE = 5.0
"""Seconds for an answer."""

MOST = 30.0
"""Seconds between two attempts at most, while the page is away."""

AROUND = 3
"""Lines shown before and after one where a process is."""

Code = Callable[[Mapping[str, Any]], str | None]
"""Gives the text of the cell or file that a place is in."""


class NotShared(SFMError):
    """A class does not take this world: says why, and what to do."""


class Share:
    """A world that is shown to a class until ``stop``, or the end of this process.

    Args:
        world: its folder on this machine, or an endpoint in it.
        url: of the class, with its join token after a ``#``.
        name: how it is called there.
        code: where lines of code are shown as well.
        told: what was said about deadlocks of late; each has ``time`` and ``text``.
        remote: gives the processes on other machines, see ``explain``.
    Attributes:
        problem: why the class does not hear of this world now; empty while it does.
    Raises:
        NotShared: the class does not answer, or does not take it. Nothing is shared.
    """

    def __init__(
        self,
        world: Any,
        url: str,
        name: str,
        *,
        code: Code | None = None,
        told: Sequence[Any] = (),
        remote: Remote | None = None,
    ) -> None:
        self._folder = folder_of(world)
        self.url, self.name, self.problem = url, name, ""
        self._line = _Line(url)
        self._code, self._told, self._remote = code, told, remote
        self._observer = Observer()
        self._pulse: int | None = None
        self._sent: Any = None
        self._moved = self._due = 0.0
        self._over = threading.Event()
        self._process = os.getpid()
        self._look()  # so that what is wrong is said at once
        self._thread = threading.Thread(target=self._run, name="sfm-share", daemon=True)
        self._thread.start()
        atexit.register(self.stop)

    @property
    def shows_code(self) -> bool:
        """Whether lines of code are shown."""
        return self._code is not None

    def stop(self) -> None:
        """The class is told that this world is shared no more. Harmless when repeated."""
        if self._over.is_set() or os.getpid() != self._process:  # a fork of the kernel exits
            return
        self._over.set()
        self._thread.join(PATIENCE)
        atexit.unregister(self.stop)
        try:
            self._line.say("DELETE", patience=1.0)
        except NotShared:
            pass  # it will take this world for gone

    def _run(self) -> None:
        # Processes on other machines are asked, which costs more than a look at memory.
        every = pause = EVERY if self._remote is None else 2 * EVERY
        while not self._over.wait(pause):
            try:
                self._look()
            except _Away as away:
                self.problem, pause = str(away), min(2 * pause, MOST)
            except NotShared as refused:
                self.problem = str(refused)
                return
            except (OSError, SFMError):  # the world is gone: whoever ends it stops this
                self.problem = "the world has ended"
                return
            else:
                self.problem, pause = "", every

    def _look(self) -> None:
        """Say what there is to say."""
        now, beat = time.monotonic(), pulse(self._folder, self._observer)
        if beat != self._pulse:
            self._pulse, self._moved = beat, now
        is_calm, is_due = now > self._moved + CALM, now >= self._due
        if is_calm and not is_due and self._remote is None:
            return
        picture = self._picture()
        essence = _essence(picture)
        is_news = essence != self._sent
        if not (is_news or is_due):
            return
        # Without a body: as it was. Not so where the class has begun anew.
        if is_news or not is_calm or not self._line.say("POST"):
            self._line.say("POST", encoded(picture))
        self._sent, self._due = essence, now + SAID

    def _picture(self) -> dict[str, Any]:
        told = self._remote(False) if self._remote else ()
        seen = snapshot(self._folder, told, self._observer)
        said = explain(self._folder, remote=self._remote, observer=self._observer, history=False)
        deadlocks = [{"time": one.time, "text": one.text} for one in list(self._told)[-3:]]
        lines = _listings(seen["processes"], self._code) if self._code else []
        return sent(self.name, seen, said, deadlocks, lines)


def _essence(picture: Mapping[str, Any]) -> Any:
    """What of it is news: not the time, nor how long something has lasted."""
    seen, said = picture["snapshot"], picture["diagnosis"]
    judged = [{**one, "text": ""} for one in said["processes"]]
    still = {**said, "time": 0, "sentences": len(said["sentences"]), "processes": judged}
    return {**picture, "snapshot": {**seen, "time": 0}, "diagnosis": still}


def _listings(processes: Iterable[Mapping[str, Any]], code: Code) -> list[dict[str, Any]]:
    """The lines around those where processes are now."""
    at: dict[str, tuple[Mapping[str, Any], set[int]]] = {}
    for one in processes:
        now, polls = one["now"], one["polls"]
        if one["state"] in ("idle", "left", "dead", "damaged"):
            continue
        where = (polls or now or one)["where"] or one["where"]
        if where is not None and where["line"]:
            at.setdefault(key_of(where), (where, set()))[1].add(where["line"])
    found = []
    for where, lines in at.values():
        text = code(where)
        if text is None:
            continue
        shown = sorted({near for line in lines for near in range(line - AROUND, line + AROUND + 1)})
        all_lines = text.splitlines()
        numbered = [[one, all_lines[one - 1]] for one in shown if 1 <= one <= len(all_lines)]
        cell = where["cell"]
        title = os.path.basename(where["file"]) if cell is None else f"cell {cell}"
        found.append({"title": title, "lines": numbered[:LINES], "at": sorted(lines)})
    return found


# ---- the line to the class


class _Away(NotShared):
    """Nobody answers now; somebody may later."""


class _Line:
    """Requests to one class, with its join token and a secret of this world's own."""

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname, parts.port
        except ValueError as problem:
            raise NotShared(f"{url} is no address: {problem}") from None
        if parts.scheme not in ("http", "https") or not host or not parts.fragment:
            raise NotShared(
                f"{url} is not the line of a class: it begins with http:// or https:// and has a "
                "token after a #. The class's page shows it"
            )
        path = parts.path if parts.path.endswith("/") else parts.path + "/"
        self._at = f"{parts.scheme}://{parts.netloc}{path}share"
        self._headers = {
            "Authorization": f"Bearer {parts.fragment}",
            "X-SFM-Share": secrets.token_urlsafe(32),
        }
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
        if host in ("127.0.0.1", "localhost", "::1"):
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)

    def say(self, method: str, body: bytes = b"", patience: float = PATIENCE) -> bool:
        """Send something; False where the class does not know this world.

        Raises:
            _Away: nobody answers; or too many do.
            NotShared: it is refused, and will be.
        """
        data = body if method == "POST" else None
        request = urllib.request.Request(self._at, data, self._headers, method=method)
        try:
            with self._opener.open(request, timeout=patience):
                return True
        except urllib.error.HTTPError as answer:
            with answer:
                return self._refused(answer)
        except (OSError, ValueError, urllib.error.URLError) as problem:
            reason = getattr(problem, "reason", problem)
            if isinstance(reason, ssl.SSLCertVerificationError):
                why = f"the certificate of {self._at} is not trusted: {reason.verify_message}. "
                raise NotShared(why + "SSL_CERT_FILE can name one that is") from None
            raise _Away(f"nobody answers at {self._at}: {reason}") from None

    def _refused(self, answer: urllib.error.HTTPError) -> bool:
        try:
            said = json.loads(answer.read(4096))["message"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            said = ""
        status, said = answer.code, said if isinstance(said, str) else ""
        said = "".join(letter for letter in said[:300] if letter.isprintable())
        if status == 404 and said.startswith("nothing is known"):
            return False
        if status in (429, 502, 503, 504) or (status == 404 and not said):
            raise _Away(f"the class does not answer now ({status}) {said}".rstrip())
        if 300 <= status < 400:
            said = "it wants a login, as if this were no class's address"
        raise NotShared(f"the class refuses this world: {said or f'status {status}'}")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The token goes where it was given for, and nowhere else."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """None: an error is raised."""
        return
