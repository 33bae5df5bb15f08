"""What a class knows of its students, within bounds."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sfm_kernel.classroom.picture import believed

MOST = 100
"""Worlds; who comes later takes the place of one that has left or is gone, or is turned away."""

GONE = 15.0
"""Seconds without a word after which a world is gone; a notebook speaks every five."""

RATE, BURST = 4.0, 12.0
"""Pictures a second of one student, and how many at once."""

_SECRET = 16
"""Characters of a student's own secret at least; a notebook makes 43."""


class Refused(Exception):
    """A student's request is not granted: ``status`` is HTTP's."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


@dataclass
class _Share:
    nth: int
    picture: dict[str, Any]
    heard: float
    left: float | None = None
    version: int = 0
    tokens: float = BURST
    refilled: float = 0.0


class Board:
    """The worlds that are shared with a class. For one thread.

    A student's world is known by a secret of its own, which only its notebook has: who may join can
    add a world, and changes no other one. Only a hash of the secret is kept.

    Attributes:
        join: who has this token may share; it is in the line that students type.
        version: grows whenever a picture changes.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.join = secrets.token_urlsafe(12)
        self.version = 0
        self._clock = clock
        self._shares: dict[str, _Share] = {}
        self._nth = 0

    # ---- students

    def check(self, token: str) -> None:
        """Raise Refused unless that is the join token."""
        if not hmac.compare_digest(token.encode(), self.join.encode()):
            raise Refused(403, "this is not the class's join token: take the line from its page")

    def take(self, secret: str, body: bytes) -> None:
        """A student's picture; an empty body says that it has not changed.

        Raises:
            Refused: too often, too many, or not known (any more): send the picture.
            NoPicture: it has another shape; what was known stays.
        """
        identity, now = self._identity(secret), self._clock()
        share = self._shares.get(identity)
        if share is not None:
            self._slow_down(share, now)
        if not body:
            if share is None or share.left is not None:
                raise Refused(404, "nothing is known of this world: send its picture")
            came_back = now - share.heard > GONE
            share.heard = now
            self.version += came_back
            return
        picture = believed(body, now)
        if share is None:
            share = self._new(identity, now)
        share.picture, share.heard, share.left = picture, now, None
        self.version += 1
        share.version = self.version

    def leave(self, secret: str) -> None:
        """A student shares no more; what it last did is forgotten, but for its name."""
        share = self._shares.get(self._identity(secret))
        if share is not None and share.left is None:
            share.left = self._clock()
            share.picture = {**share.picture, **_NOTHING}
            self.version += 1
            share.version = self.version

    def _identity(self, secret: str) -> str:
        if len(secret) < _SECRET:
            raise Refused(400, "a notebook has a secret of its own in X-SFM-Share")
        return hashlib.sha256(secret.encode(errors="replace")).hexdigest()[:32]

    @staticmethod
    def _slow_down(share: _Share, now: float) -> None:
        share.tokens = min(BURST, share.tokens + (now - share.refilled) * RATE)
        share.refilled = now
        if share.tokens < 1:
            raise Refused(429, "too often: a picture a second is enough")
        share.tokens -= 1

    def _new(self, identity: str, now: float) -> _Share:
        if len(self._shares) >= MOST:
            ended = [(share.heard, key) for key, share in self._shares.items()
                     if share.left is not None or now - share.heard > GONE]  # fmt: skip
            if not ended:
                raise Refused(503, f"the class is full: {MOST} worlds are shared")
            del self._shares[min(ended)[1]]
        self._nth += 1
        share = self._shares[identity] = _Share(self._nth, {}, now, refilled=now)
        return share

    # ---- the teacher

    def listing(self) -> dict[str, Any]:
        """All worlds in short, those first that are stuck longest."""
        now = self._clock()
        names: dict[str, int] = {}
        shown = []
        for identity, share in sorted(self._shares.items(), key=lambda one: one[1].nth):
            name = share.picture["name"]
            names[name] = names.get(name, 0) + 1
            again = f" ({names[name]})" if names[name] > 1 else ""
            shown.append(self._short(identity, share, now) | {"name": name + again})
        shown.sort(key=lambda one: (ORDER.index(one["state"]), one["since"]))
        return {"version": self.version, "now": now, "worlds": shown}

    def details(self, identity: str) -> dict[str, Any] | None:
        """All that is known of one; None where nothing is."""
        share = self._shares.get(identity)
        if share is None:
            return None
        now = self._clock()
        return {"now": now, **share.picture, **self._short(identity, share, now)}

    def _short(self, identity: str, share: _Share, now: float) -> dict[str, Any]:
        picture = share.picture
        engines = [one for one in picture["processes"] if one["engine"]]
        state, since = self._state(share, now)
        return {
            "id": identity,
            "version": share.version,
            "name": picture["name"],
            "state": state,
            "since": since,
            "heard": share.heard,
            "title": picture["title"],
            "first": picture["sentences"][0] if picture["sentences"] else "",
            "hung": picture["told"][-1] if picture["told"] else None,
            "engines": len(engines),
            "blocked": sum(one["state"].startswith("blocked") for one in engines),
            "queued": sum(one["depth"] for one in engines),
            "sent": sum(one["sent"] for one in picture["processes"]),
        }

    @staticmethod
    def _state(share: _Share, now: float) -> tuple[str, float]:
        """What it does, and since when."""
        if share.left is not None:
            return "left", share.left
        if now - share.heard > GONE:
            return "gone", share.heard
        picture = share.picture
        state = _STATES[picture["verdict"]]
        since = picture["since"] if state in ("stuck", "waits") else None
        if since is None:
            since = max((one["since"] for one in picture["processes"]), default=share.heard)
        return state, since


ORDER = ("stuck", "waits", "gone", "computes", "idle", "left")
"""The states, those first that a teacher looks for."""

_STATES = {
    "deadlock": "stuck",
    "waiting": "waits",
    "running": "computes",
    "idle": "idle",
    "empty": "idle",
}
_NOTHING: dict[str, Any] = {
    "title": "", "since": None, "sentences": [], "stuck": [], "processes": [], "told": [],
    "code": [],
}  # fmt: skip
