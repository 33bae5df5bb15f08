"""What a directory server knows of other machines' processes: the latest picture of each relay.

A relay (``sfm_kernel.relay``) asks again and again, "relay"; the answer is held until there is
something to tell: that an observer looks, what an observer wants done, or that the time is up. An
observer asks for "pictures", and has something done to a process by an "order".

Each observer's wish to see how things are *from now on* gets a number, which only grows. A relay
says which number it knew before it looked. So a picture whose ``seen`` is at least the number of a
wish was read after that wish was made, whatever any clock says; see ``elsewhere``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sfm_kernel.directory.pictures import unpack
from sfm_kernel.directory.table import UID
from sfm_kernel.errors import WorldError

WATCHED_SECONDS = 2.0
"""So long after an observer's last question relays go on sending."""
SILENT_SECONDS = 2.0
"""A relay that has not been heard for so long: nobody knows what its processes do."""
HELD_SECONDS = 1.0
"""An answer to a relay is held so long at most."""
ORDER_SECONDS = 2.0
"""An observer learns after so long that an order was not carried out."""

MOST_RELAYS = 256
MOST_ORDERS = 64
MOST_PICTURES = 20
"""Pictures that one relay may send in a second; it keeps to half of that."""
LONGEST_JUDGEMENT = 4096

ORDERS = ("judge", "interrupt")

Reply = Callable[[dict[str, Any]], None]
"""Sends the answer to a request."""


@dataclass
class _Held:
    """A relay's request that was not answered yet, and what the relay knew when it asked."""

    reply: Reply
    until: float
    seen: int
    watched: bool


@dataclass
class _Relay:
    """One relay.

    Attributes:
        picture, number: the latest, packed, and the relay's number for it; 0 before the first.
        uids: of the processes in it.
        seen: the latest wish after which it was, or would have been, read.
        clock: the relay's clock then, seconds since 1970. confirmed: ours.
        heard: when it asked last.
        orders: what it was not told yet.
    """

    heard: float
    picture: bytes = b""
    number: int = 0
    uids: frozenset[str] = frozenset()
    seen: int = -1
    clock: float = 0.0
    confirmed: float = -math.inf
    held: _Held | None = None
    orders: list[dict[str, Any]] = field(default_factory=list)
    second: float = 0.0
    count: int = 0


class Relays:
    """All of them, for the server's thread. No sockets: who asks comes with a way to reply."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._relays: dict[str, _Relay] = {}
        self._watched_until = -math.inf
        self._wish = 0
        self._order = 0
        self._ordered: dict[int, tuple[Reply, float]] = {}

    # ---- relays ----

    def hear(self, asked: Mapping[str, Any], body: bytes, reply: Reply) -> None:
        """A relay asks, and may bring a new picture (``body``) and tell what it has done.

        Args:
            asked: "relay": its uid; "picture": the number of its newest picture; "clock": its clock
                when it saw that this is how things are, None if it has not looked since its last
                question; "seen": the latest wish that it knew when it looked, -1 before; "watched":
                what it believes; "hold": seconds that it would wait; "done": [order, whether it was
                carried out, why not]; "bye": it ends. ("dead" is the server's.)
        Raises:
            ValueError, TypeError, KeyError: malformed; nothing of the picture is kept.
            WorldError: there are too many relays, or too many pictures in a second.
        """
        now = self._clock()
        uid = asked["relay"]
        if not isinstance(uid, str) or not UID.fullmatch(uid):
            raise ValueError("a relay's uid has 32 hexadecimal digits")
        number, seen, hold = int(asked["picture"]), int(asked["seen"]), float(asked["hold"])
        clock = None if asked["clock"] is None else float(asked["clock"])
        if clock is not None and not 0 <= clock < math.inf:
            raise ValueError("a clock shows seconds since 1970")
        if not 0 <= hold <= HELD_SECONDS:
            raise ValueError(f"an answer is held for 0 to {HELD_SECONDS} s")
        for order, done, why in asked["done"]:
            self._finish(int(order), {"done": bool(done), "why": str(why)[:200]})
        if asked.get("bye"):
            self._relays.pop(uid, None)
            reply({})
            return
        relay = self._known(uid, now)
        relay.heard = now
        if body:
            self._keep(relay, number, body, now)
        if clock is not None and relay.picture and number == relay.number:
            relay.seen, relay.clock, relay.confirmed = min(seen, self._wish), clock, now
        relay.held = _Held(reply, now + hold, seen, bool(asked["watched"]))
        self._answer(relay, now)

    def _known(self, uid: str, now: float) -> _Relay:
        if uid not in self._relays:
            if len(self._relays) >= MOST_RELAYS:
                oldest = min(self._relays, key=lambda one: self._relays[one].heard)
                if now - self._relays[oldest].heard < SILENT_SECONDS:
                    raise WorldError(f"this world has {MOST_RELAYS} relays, which is its limit")
                del self._relays[oldest]
            self._relays[uid] = _Relay(heard=now)
        return self._relays[uid]

    def _keep(self, relay: _Relay, number: int, packed: bytes, now: float) -> None:
        if now - relay.second >= 1:
            relay.second, relay.count = now, 0
        relay.count += 1
        if relay.count > MOST_PICTURES:
            raise WorldError(f"more than {MOST_PICTURES} pictures in a second")
        uids = frozenset(state["uid"] for state in unpack(packed))
        relay.picture, relay.number, relay.uids, relay.seen = packed, number, uids, -1
        for uid, other in list(self._relays.items()):  # one that this one has come after
            if now - other.heard > SILENT_SECONDS and other.uids & uids:
                del self._relays[uid]

    def _answer(self, relay: _Relay, now: float) -> None:
        """Answer a relay if there is anything to tell it."""
        held, watched = relay.held, now < self._watched_until
        if held is None:
            return
        is_news = watched and (not held.watched or held.seen < self._wish)
        if relay.orders or is_news or now >= held.until:
            orders, relay.orders, relay.held = relay.orders, [], None
            known = {"watched": watched, "wish": self._wish, "picture": relay.number}
            held.reply(known | {"orders": orders})

    # ---- observers ----

    def show(
        self, asked: Mapping[str, Any], listed: frozenset[str]
    ) -> tuple[dict[str, Any], list[bytes]]:
        """The answer to an observer, and the pictures that it does not know.

        Args:
            asked: "known": the number of the picture that it has of each relay; "wish": whether it
                wants to see how things are from now on.
            listed: the world's members. A silent relay that has none of them is forgotten.
        Returns:
            "wish": the latest one's number; "relays": for each its uid, the number of its picture,
            ``seen``, its clock then, how long ago that was (s; None before its first picture),
            whether it is silent, and whether its picture comes with the answer, in this order.
        """
        now = self._clock()
        known = dict(asked["known"])
        self._watched_until = now + WATCHED_SECONDS
        self._wish += bool(asked["wish"])
        self._relays = {
            uid: relay
            for uid, relay in self._relays.items()
            if now - relay.heard <= SILENT_SECONDS or relay.uids & listed
        }
        rows, bodies = [], []
        for uid, relay in self._relays.items():
            self._answer(relay, now)
            is_new = bool(relay.picture) and known.get(uid) != relay.number
            if is_new:
                bodies.append(relay.picture)
            age = now - relay.confirmed if relay.picture else None
            silent = now - relay.heard > SILENT_SECONDS
            rows.append([uid, relay.number, relay.seen, relay.clock, age, silent, is_new])
        return {"wish": self._wish, "relays": rows}, bodies

    def order(self, asked: Mapping[str, Any], reply: Reply) -> None:
        """Have the relay of a process do something to it.

        The answer, "done" and "why" not, comes when the relay has said so, or after
        ``ORDER_SECONDS``.

        Args:
            asked: "do": "judge" (end the blocked call number "call" with "judgement") or
                "interrupt"; "uid": the process.
        Raises:
            WorldError: no relay that answers has this process.
            ValueError, TypeError, KeyError: malformed.
        """
        now = self._clock()
        do, uid = asked["do"], asked["uid"]
        order = {"do": do, "uid": uid}
        if do not in ORDERS:
            raise ValueError(f"an order is one of {', '.join(ORDERS)}")
        if do == "judge":
            judgement = asked["judgement"]
            if not isinstance(judgement, str) or len(judgement.encode()) > LONGEST_JUDGEMENT:
                raise ValueError(f"a judgement is a text of at most {LONGEST_JUDGEMENT} bytes")
            order |= {"call": int(asked["call"]), "judgement": judgement}
        for relay in self._relays.values():
            if uid in relay.uids and now - relay.heard <= SILENT_SECONDS:
                break
        else:
            raise WorldError(f"no relay sees process {uid!r} now: it has ended, or its relay has")
        if len(relay.orders) >= MOST_ORDERS:
            raise WorldError("the relay of this process does not keep up with its orders")
        self._order += 1
        relay.orders.append(order | {"order": self._order})
        self._ordered[self._order] = reply, now + ORDER_SECONDS
        self._answer(relay, now)

    def _finish(self, order: int, answer: dict[str, Any]) -> None:
        if order in self._ordered:
            reply, _ = self._ordered.pop(order)
            reply(answer)

    # ---- time ----

    def release(self) -> bool:
        """Answer those whose time is up; whether there were any."""
        now = self._clock()
        late = [order for order, (_, until) in self._ordered.items() if now >= until]
        due = [one for one in self._relays.values() if one.held and now >= one.held.until]
        for relay in due:
            self._answer(relay, now)
        for order in late:
            self._finish(order, {"done": False, "why": "its relay does not answer"})
        return bool(due or late)

    def next(self) -> float | None:
        """Seconds until ``release`` has something to do; None if nothing is held."""
        times = [until for _, until in self._ordered.values()]
        times += [one.held.until for one in self._relays.values() if one.held]
        return max(0.0, min(times) - self._clock()) if times else None
