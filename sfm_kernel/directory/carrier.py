"""Carries the messages between relays and observers through the directory server.

The server reads none of them. A relay (``sfm_kernel.relay``) sends the snapshot of its machine as
bytes, with its number and the uids of the processes in it, in one request "relay" after another.
The answer is held until the relay has something to do: an observer has begun to watch or requests a
fresh snapshot, an order has arrived, or the time is up. An observer asks for "snapshots", and sends
an "order" for one process, again as bytes; the order goes to the relay that has this process in its
snapshot, and the relay's "answer" goes to the observer.

Each request for a fresh snapshot gets a number, which only grows. A relay names the number that it
knew before it read its machine. So a snapshot whose ``request`` is at least the number of a request
was read after that request was made, whatever any clock says; see ``sfm_kernel.relay.view``.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sfm_kernel.errors import WorldAccess, WorldError

UID = re.compile(r"[0-9a-f]{32}")

WATCHED_SECONDS = 2.0
"""Seconds after an observer's last request in which relays go on sending."""
SILENT_SECONDS = 2.0
"""Seconds without a request after which a relay is silent, and its processes' state unknown."""
HELD_SECONDS = 1.0
"""The most seconds for which an answer to a relay is held."""
ORDER_SECONDS = 2.0
"""Seconds after which an observer learns that a relay has not answered its order."""

MOST_RELAYS = 256
MOST_ORDERS = 64
MOST_SNAPSHOTS = 20
"""The most snapshots that one relay may send in a second; a relay sends half of that."""
LARGEST_SNAPSHOT = 1 << 20
LARGEST_ORDER = 1 << 16
"""The most bytes of a snapshot, and of an order or its answer."""

Reply = Callable[[dict[str, Any], Sequence[bytes]], None]
"""Sends the answer to a request, and the bytes that go with it."""


@dataclass
class _Held:
    """A relay's unanswered request, and what the relay knew when it sent it."""

    reply: Reply
    until: float
    request: int
    watched: bool


@dataclass
class _Relay:
    """One relay.

    Attributes:
        owner: the client that sends its requests.
        snapshot, number: the latest snapshot, and the relay's number for it; 0 before the first.
        uids: the processes in the snapshot.
        request: the latest request after which the snapshot was read, or found unchanged.
        clock: the relay's clock then, seconds since 1970. confirmed: the server's clock then.
        heard: the time of the relay's last request.
        orders: the orders that the relay has not received yet, with their numbers.
    """

    owner: str
    heard: float
    snapshot: bytes = b""
    number: int = 0
    uids: frozenset[str] = frozenset()
    request: int = -1
    clock: float = 0.0
    confirmed: float = -math.inf
    held: _Held | None = None
    orders: list[tuple[int, bytes]] = field(default_factory=list)
    second: float = 0.0
    count: int = 0


class Carrier:
    """The messages under way between relays and observers. For the server's thread; no sockets."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._relays: dict[str, _Relay] = {}
        self._watched_until = -math.inf
        self._request = 0
        self._order = 0
        self._ordered: dict[int, tuple[Reply, float, str]] = {}  # with the relay's owner

    # ---- relays ----

    def serve_relay(self, asked: Mapping[str, Any], body: bytes, reply: Reply, owner: str) -> None:
        """Take in a relay's request, perhaps with a new snapshot (``body``); answer it later.

        The answer: "watched", whether an observer watches the world; "request", the number of the
        latest request; "snapshot", the number of the relay's snapshot that the server has;
        "orders", the numbers of orders, whose bytes come with it.

        Args:
            asked: "relay": its uid; "snapshot": the number of its newest snapshot; "uids": the
                processes in ``body``, if there is one; "clock": the relay's clock when it found
                that the snapshot is still true, None if it has not read since its last request;
                "request": the latest request that it knew before it read, -1 if none; "watched":
                its last known answer; "hold": the most seconds that it waits; "bye": it ends.
            owner: the client that asks; nobody else asks for this relay.
        Raises:
            ValueError, TypeError, KeyError: malformed; the snapshot is not stored.
            WorldError: there are too many relays, or too many snapshots in a second.
            WorldAccess: the relay is another client's.
        """
        now = self._clock()
        uid = _uid(asked["relay"])
        number, request = int(asked["snapshot"]), int(asked["request"])
        hold = float(asked["hold"])
        clock = None if asked["clock"] is None else float(asked["clock"])
        if clock is not None and not 0 <= clock < math.inf:
            raise ValueError("a clock shows seconds since 1970")
        if not 0 <= hold <= HELD_SECONDS:
            raise ValueError(f"an answer is held for 0 to {HELD_SECONDS} s")
        if uid in self._relays and self._relays[uid].owner != owner:
            raise WorldAccess("this relay is another client's")
        if asked.get("bye"):
            self._relays.pop(uid, None)
            reply({}, ())
            return
        relay = self._known(uid, now, owner)
        relay.heard = now
        if body:
            self._store(relay, number, body, frozenset(map(_uid, asked["uids"])), now)
        if clock is not None and relay.snapshot and number == relay.number:
            relay.request, relay.clock, relay.confirmed = min(request, self._request), clock, now
        relay.held = _Held(reply, now + hold, request, bool(asked["watched"]))
        self._answer_relay(relay, now)

    def _known(self, uid: str, now: float, owner: str) -> _Relay:
        if uid not in self._relays:
            if len(self._relays) >= MOST_RELAYS:
                oldest = min(self._relays, key=lambda other: self._relays[other].heard)
                if now - self._relays[oldest].heard < SILENT_SECONDS:
                    raise WorldError(f"this world has {MOST_RELAYS} relays, which is its limit")
                del self._relays[oldest]
            self._relays[uid] = _Relay(owner, heard=now)
        return self._relays[uid]

    def _store(
        self, relay: _Relay, number: int, snapshot: bytes, uids: frozenset[str], now: float
    ) -> None:
        if len(snapshot) > LARGEST_SNAPSHOT:
            raise ValueError(f"a snapshot has at most {LARGEST_SNAPSHOT} bytes")
        if now - relay.second >= 1:
            relay.second, relay.count = now, 0
        relay.count += 1
        if relay.count > MOST_SNAPSHOTS:
            raise WorldError(f"more than {MOST_SNAPSHOTS} snapshots in a second")
        relay.snapshot, relay.number, relay.uids, relay.request = snapshot, number, uids, -1
        for uid, other in list(self._relays.items()):  # a relay that this one has replaced
            if now - other.heard > SILENT_SECONDS and other.uids & uids:
                del self._relays[uid]

    def _answer_relay(self, relay: _Relay, now: float) -> None:
        """Answer a relay's held request, if the relay has something to do."""
        held, watched = relay.held, now < self._watched_until
        if held is None:
            return
        is_news = watched and (not held.watched or held.request < self._request)
        if relay.orders or is_news or now >= held.until:
            orders, relay.orders, relay.held = relay.orders, [], None
            known = {"watched": watched, "request": self._request, "snapshot": relay.number}
            numbers = [number for number, _ in orders]
            held.reply(known | {"orders": numbers}, [order for _, order in orders])

    # ---- observers ----

    def serve_observer(
        self, asked: Mapping[str, Any], listed: frozenset[str]
    ) -> tuple[dict[str, Any], list[bytes]]:
        """The answer to an observer, and the snapshots that it does not have.

        Args:
            asked: "known": the number of the snapshot that it has of each relay; "fresh": whether
                it requests snapshots that are read from now on.
            listed: the world's members. A silent relay that has none of them is forgotten.
        Returns:
            "request": the number of the latest request; "relays": for each its uid, the number of
            its snapshot, its ``request``, its clock then, the seconds since then (None before its
            first snapshot), whether it is silent, and whether its snapshot comes with the answer,
            in this order.
        """
        now = self._clock()
        known = dict(asked["known"])
        self._watched_until = now + WATCHED_SECONDS
        self._request += bool(asked["fresh"])
        self._relays = {
            uid: relay
            for uid, relay in self._relays.items()
            if now - relay.heard <= SILENT_SECONDS or relay.uids & listed
        }
        rows, bodies = [], []
        for uid, relay in self._relays.items():
            self._answer_relay(relay, now)
            is_new = bool(relay.snapshot) and known.get(uid) != relay.number
            if is_new:
                bodies.append(relay.snapshot)
            age = now - relay.confirmed if relay.snapshot else None
            silent = now - relay.heard > SILENT_SECONDS
            rows.append([uid, relay.number, relay.request, relay.clock, age, silent, is_new])
        return {"request": self._request, "relays": rows}, bodies

    def order(self, uid: Any, body: bytes, reply: Reply) -> None:
        """Send an order to the relay that has a process in its snapshot.

        The reply has the bytes of the relay's answer, or says after ``ORDER_SECONDS`` that there
        was none.

        Raises:
            WorldError: no active relay has this process, or its relay has too many orders.
            ValueError, TypeError: malformed.
        """
        now = self._clock()
        _check_order(body)
        uid = _uid(uid)
        showing = [relay for relay in self._relays.values() if uid in relay.uids]
        relay = max(showing, key=lambda relay: relay.heard, default=None)  # it may be a second one
        if relay is None or now - relay.heard > SILENT_SECONDS:
            raise WorldError(f"no relay sees process {uid!r} now: it has ended, or its relay has")
        if len(relay.orders) >= MOST_ORDERS:
            raise WorldError("the relay of this process does not keep up with its orders")
        self._order += 1
        relay.orders.append((self._order, body))
        self._ordered[self._order] = reply, now + ORDER_SECONDS, relay.owner
        self._answer_relay(relay, now)

    def answer(self, order: int, body: bytes, owner: str) -> None:
        """Pass a relay's answer to the observer that sent the order, if it still waits.

        Raises WorldAccess if the order went to another client's relay.
        """
        _check_order(body)
        if order in self._ordered:
            reply, _, asked = self._ordered[order]
            if asked != owner:
                raise WorldAccess("this order went to another client's relay")
            del self._ordered[order]
            reply({}, [body])

    # ---- time ----

    def release(self) -> bool:
        """Answer the requests whose time is up; return whether there were any."""
        now = self._clock()
        late = [order for order, (_, until, _) in self._ordered.items() if now >= until]
        due = [relay for relay in self._relays.values() if relay.held and now >= relay.held.until]
        for relay in due:
            self._answer_relay(relay, now)
        for order in late:
            reply, *_ = self._ordered.pop(order)
            reply({"error": "WorldError", "message": "the relay of this process is silent"}, ())
        return bool(due or late)

    def next(self) -> float | None:
        """Seconds until ``release`` has something to do; None if nothing is held."""
        times = [until for _, until, _ in self._ordered.values()]
        times += [relay.held.until for relay in self._relays.values() if relay.held]
        return max(0.0, min(times) - self._clock()) if times else None


def _uid(value: Any) -> str:
    if not isinstance(value, str) or not UID.fullmatch(value):
        raise ValueError("a uid has 32 hexadecimal digits")
    return value


def _check_order(body: bytes) -> None:
    if len(body) > LARGEST_ORDER:
        raise ValueError(f"an order, and its answer, have at most {LARGEST_ORDER} bytes")
