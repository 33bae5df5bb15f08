"""What one websocket still has to send: the newest of each kind, never a queue."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

PARTS = ("snapshot", "diagnosis", "timeline")
_PARTS = json.dumps(PARTS)
RATES = (1.0, 20.0)
"""Messages a second of each kind: at least, at most."""

_SLICE = 200
_MOST_WAITING = 200


class BadWish(ValueError):
    """What a client sent is no wish; says what one looks like."""


@dataclass(frozen=True)
class Wish:
    """What a client wants to see: ``parts`` of ``world``, at most ``rate`` times a second."""

    world: str | None = None
    rate: float = 10.0
    parts: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str | bytes) -> Wish:
        """The wish in a client's text. Raises BadWish."""
        usage = f'{{"type": "watch", "world": NAME or null, "rate": 10, "parts": {_PARTS}}}'
        try:
            sent = json.loads(text)
            if sent["type"] != "watch":
                raise ValueError(f"type {sent['type']!r} is unknown")
            world, parts, rate = sent["world"], sent["parts"], sent.get("rate", cls.rate)
            if not isinstance(world, str | None) or not isinstance(parts, list):
                raise ValueError("world is a text or null, parts a list")
            if not set(parts) <= set(PARTS):
                raise ValueError(f"parts are some of {_PARTS}")
            if type(rate) not in (int, float) or not math.isfinite(rate):
                raise ValueError("rate is a number")
            least, most = RATES
            return cls(world, min(max(float(rate), least), most), frozenset(parts))
        # What is nested too deeply to be read, or larger than any number, is no wish either.
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as problem:
            raise BadWish(f"not understood ({problem}): send {usage}") from None


class Client:
    """One websocket.

    Attributes:
        wish: what it wants to see.
        shown: by part, the version that it got last; none before the first.
        noted: what it was told of worlds that have ended, see ``Hub``.
    """

    def __init__(self, write: Callable[[str], Awaitable[None]]) -> None:
        self.wish = Wish()
        self.shown: dict[str, int] = {}
        self.noted = ""
        self._write = write
        self._waiting: dict[str, Callable[[], str]] = {}
        self._timelines: list[dict[str, Any]] = []
        self._news = asyncio.Event()

    def want(self, wish: Wish) -> None:
        """Take a wish in the place of the one before; nothing of that is sent any more."""
        self.wish, self.shown = wish, {}
        self._timelines = []
        for part in PARTS:
            self._waiting.pop(part, None)

    def post(self, kind: str, text: Callable[[], str]) -> None:
        """Have a text sent in the place of one of its kind that still waits."""
        self._waiting[kind] = text
        self._news.set()

    def post_timeline(self, timeline: dict[str, Any]) -> None:
        """Have what is new in a timeline sent, together with what still waits."""
        self._timelines.append(timeline)
        if len(self._timelines) > _MOST_WAITING:  # it has fallen behind: all of it later
            self._timelines = []
            self.shown.pop("timeline", None)
        self._news.set()

    async def run(self) -> None:
        """Send what is posted until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            for kind in list(self._waiting):
                if text := self._waiting.pop(kind, None):  # or another wish has come meanwhile
                    await self._write(text())
            if self._timelines:
                wish, parts, self._timelines = self.wish, self._timelines, []
                if sum(len(one["spans"]) + len(one["flights"]) for one in parts) <= _SLICE:
                    told = timeline_text(parts)
                else:
                    told = await asyncio.to_thread(timeline_text, parts)
                if wish is self.wish:
                    await self._write(told)
            # Whatever comes meanwhile replaces what has not been sent.
            await asyncio.sleep(1 / self.wish.rate)


def timeline_text(parts: list[dict[str, Any]]) -> str:
    """The message that tells what several timelines tell, each newer than the one before.

    There may be megabytes of it. They are encoded in slices, between which other threads run: the
    server has more to do.
    """
    spans = {(one["uid"], one["begin"]): one for part in parts for one in part["spans"]}
    flights = {one["id"]: one for part in parts for one in part["flights"]}
    small = {name: value for name, value in parts[-1].items() if name not in ("spans", "flights")}
    fields = {name: json.dumps(value) for name, value in small.items()}
    fields |= {"spans": _sliced([*spans.values()]), "flights": _sliced([*flights.values()])}
    timeline = ", ".join(f'"{name}": {text}' for name, text in fields.items())
    return f'{{"type": "timeline", "timeline": {{{timeline}}}}}'


def _sliced(rows: list[dict[str, Any]]) -> str:
    slices = (rows[at : at + _SLICE] for at in range(0, len(rows), _SLICE))
    return f"[{', '.join(json.dumps(one)[1:-1] for one in slices)}]"
