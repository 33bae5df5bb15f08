"""The worlds that are shared with a class, within bounds."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sfm_kernel.classroom.progress import table
from sfm_kernel.classroom.report import checked
from sfm_kernel.observe.counts import counts_of

MOST = 100
"""Most worlds; a further one replaces one that has left or is silent, or is refused."""

SILENT = 15.0
"""Seconds without a request after which a world is silent; a notebook sends one every five."""

RATE, BURST = 4.0, 12.0
"""Reports a second of one student, and most reports at once."""

_SECRET = 16
"""Least characters of a student's secret; a notebook's has 43."""


class Refused(Exception):
    """A student's request is refused, with this HTTP ``status``."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


@dataclass
class _Share:
    nth: int
    report: dict[str, Any]
    heard: float
    left: float | None = None
    version: int = 0
    tokens: float = BURST
    refilled: float = 0.0


class SharedWorlds:
    """The worlds that are shared with a class. For one thread.

    A student's world is identified by a secret that only its notebook has: a notebook with the join
    token can add a world, and cannot change another one. Only a hash of the secret is stored.

    Attributes:
        join: the token for sharing; it is in the line that students type.
        version: grows whenever a report changes.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.join = secrets.token_urlsafe(12)
        self.version = 0
        self._clock = clock
        self._shares: dict[str, _Share] = {}
        self._nth = 0

    # ---- students

    def check(self, token: str) -> None:
        """Raise Refused unless this is the join token."""
        if not hmac.compare_digest(token.encode(), self.join.encode()):
            raise Refused(403, "this is not the class's join token: copy the line from its page")

    def take(self, secret: str, body: bytes) -> None:
        """Take a student's report; an empty body says that it has not changed.

        Raises:
            Refused: there are too many reports or worlds; or the body is empty and the world not
                known (any longer): send the report.
            BadReport: it has another shape; the report before is kept.
        """
        identity, now = self._identity(secret), self._clock()
        share = self._shares.get(identity)
        if share is not None:
            self._limit_rate(share, now)
        if not body:
            if share is None or share.left is not None:
                raise Refused(404, "nothing is known of this world: send its report")
            came_back = now - share.heard > SILENT
            share.heard = now
            self.version += came_back
            return
        report = checked(body, now)
        if share is None:
            share = self._new(identity, now)
        share.report, share.heard, share.left = report, now, None
        self.version += 1
        share.version = self.version

    def leave(self, secret: str) -> None:
        """A student stops sharing; everything but the name and the exercises is forgotten."""
        share = self._shares.get(self._identity(secret))
        if share is not None and share.left is None:
            share.left = self._clock()
            known = {field: share.report[field] for field in ("name", "exercises")}
            share.report = {**_NOTHING, **known}
            self.version += 1
            share.version = self.version

    def _identity(self, secret: str) -> str:
        if len(secret) < _SECRET:
            raise Refused(400, "a notebook has a secret of its own in X-SFM-Share")
        return hashlib.sha256(secret.encode(errors="replace")).hexdigest()[:32]

    @staticmethod
    def _limit_rate(share: _Share, now: float) -> None:
        share.tokens = min(BURST, share.tokens + (now - share.refilled) * RATE)
        share.refilled = now
        if share.tokens < 1:
            raise Refused(429, "too often: one report a second is enough")
        share.tokens -= 1

    def _new(self, identity: str, now: float) -> _Share:
        if len(self._shares) >= MOST:
            ended = [(share.heard, key) for key, share in self._shares.items()
                     if share.left is not None or now - share.heard > SILENT]  # fmt: skip
            if not ended:
                raise Refused(503, f"the class is full: {MOST} worlds are shared")
            del self._shares[min(ended)[1]]
        self._nth += 1
        share = self._shares[identity] = _Share(self._nth, {}, now, refilled=now)
        return share

    # ---- the teacher

    def listing(self) -> dict[str, Any]:
        """A summary of all worlds, raised hands and then the longest stuck first."""
        now = self._clock()
        names: dict[str, int] = {}
        shown = []
        for identity, share in sorted(self._shares.items(), key=lambda entry: entry[1].nth):
            name = share.report["name"]
            names[name] = names.get(name, 0) + 1
            again = f" ({names[name]})" if names[name] > 1 else ""
            shown.append(self._short(identity, share, now) | {"name": name + again})
        shown.sort(key=lambda world: (ORDER.index(world["state"]), world["since"]))
        shown.sort(key=lambda world: now if world["hand"] is None else world["hand"])
        return {"version": self.version, "now": now, "worlds": shown, "progress": self.progress()}

    def progress(self) -> dict[str, Any]:
        """Students × exercises, also of worlds that have left; see ``progress.table``."""
        return table(share.report for share in self._shares.values())

    def details(self, identity: str) -> dict[str, Any] | None:
        """The report of a world; None if the world is unknown."""
        share = self._shares.get(identity)
        if share is None:
            return None
        now = self._clock()
        return {"now": now, **share.report, **self._short(identity, share, now)}

    def _short(self, identity: str, share: _Share, now: float) -> dict[str, Any]:
        report = share.report
        diagnosis, processes = report["diagnosis"], report["snapshot"]["processes"]
        state, since = self._state(share, now)
        return {
            "id": identity,
            "version": share.version,
            "name": report["name"],
            "state": state,
            "verdict": diagnosis["verdict"],
            "since": since,
            "heard": share.heard,
            "title": diagnosis["title"],
            "first": diagnosis["sentences"][0] if diagnosis["sentences"] else "",
            "hung": report["told"][-1] if report["told"] else None,
            "hand": report["hand"],
            **counts_of(processes),
            "queued": sum(one["depth"] for one in processes if one["kind"] != "notebook"),
            "sent": sum(process["sent"] for process in processes),
        }

    @staticmethod
    def _state(share: _Share, now: float) -> tuple[str, float]:
        """The world's state, and since when it has been in it."""
        if share.left is not None:
            return "left", share.left
        if now - share.heard > SILENT:
            return "unseen", share.heard
        report = share.report
        state = _STATES[report["diagnosis"]["verdict"]]
        since = report["since"] if state in ("stuck", "waiting") else None
        if since is None:
            processes = report["snapshot"]["processes"]
            since = max((process["since"] for process in processes), default=share.heard)
        return state, since


ORDER = ("stuck", "waiting", "unseen", "running", "idle", "left")
"""The states in the order of the page, in the panel's words."""

_STATES = {
    "deadlock": "stuck",
    "waiting": "waiting",
    "running": "running",
    "idle": "idle",
    "empty": "idle",
}

_NOTHING = checked(
    b'{"snapshot": {"time": 0, "processes": []}, "diagnosis": {"verdict": "empty"}}', 0.0
)
"""The report of a world of which nothing is known."""
