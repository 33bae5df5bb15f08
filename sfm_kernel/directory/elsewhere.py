"""What the processes of a world do on other machines, as observers see it.

Their relays send pictures to the directory server, which gives them to whoever asks. What is true
of another machine is known only of the moment at which its relay looked. For a picture this does
not matter. For a proof it does: ``observe.explain`` looks at all processes twice, and takes a
process that was in the same blocked call in both looks to have been in it in between, when all
others were in theirs. There must be one moment between the two looks of *all* processes.

It is the moment at which ``pictures(fresh=True)`` is called. The first looks were over by then:
their pictures were here. The call makes a wish at the server and remembers its number; a relay says
which wish it knew before it looked, and only what knows this one, or a later one, is taken for a
second look. So it began after that moment, by the order in which messages were sent and received:
no two clocks are compared. Whatever is not known to be that fresh is shown so that it proves
nothing: a blocked call has not looked at all that has come, who was idle runs again.

A member that no relay shows, and that has no segment here, is shown as one that computes: it may
send to anybody.
"""

from __future__ import annotations

import json
import math
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from sfm_kernel.directory.client import Client
from sfm_kernel.directory.pictures import unpack
from sfm_kernel.directory.relays import ORDER_SECONDS
from sfm_kernel.errors import SFMError, WorldError
from sfm_kernel.states import UNSETTLED, Pictures, State
from sfm_kernel.transport.base import Gateway, Member

ANSWER_SECONDS = 1.0
"""A server that is silent so long is not asked again for a while."""
RETRY_SECONDS = 2.0
FRESH_SECONDS = 1.0
"""How long to wait for relays to look again; not for those that are silent already."""
OLD_SECONDS = 1.0
"""A picture that is older is not shown before its relay was asked for another."""
REPORTS_SECONDS = 1.0
"""Gateways report so often; they are not asked for more often."""
PAUSE = 0.003
SLACK = 0.1
"""Seconds by which a wait may look longer than it was when its relay looked."""


@dataclass
class _Picture:
    """What one relay has told. ``offset``: what to add to its clock."""

    number: int = 0
    states: list[State] = field(default_factory=list)
    seen: int = -1
    clock: float = 0.0
    age: float = math.inf
    silent: bool = True
    offset: float = math.inf


class Elsewhere:
    """The processes of a world that are seen through its directory server. Thread-safe.

    Makes nobody a member of the world and needs no folder of it here. When the server is gone, the
    last that was seen is shown, and proves nothing.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._pictures: dict[str, _Picture] = {}
        self._members: list[Member] = []
        self._dead: frozenset[str] = frozenset()
        self._silent_since: dict[str, float] = {}
        self._version = -1
        self._met: dict[str, float] = {}
        self._wish = 0
        self._silent_until = -math.inf
        self._gateways: list[Gateway] = []
        self._reports: dict[str, dict[str, Any]] = {}
        self._reported_at = -math.inf

    def pictures(self, fresh: bool = False) -> Pictures:
        """What the processes of the world do, as ``observe.snapshot.states`` has it.

        With the processes of this machine among them, should a relay run here: who has seen those
        by himself knows better. Times are of this machine's clock.

        Args:
            fresh: for a proof: what is not known to have been so after this call began is shown so
                that it proves nothing.
        Cost: 0.5 ms; with ``fresh`` some milliseconds, ``FRESH_SECONDS`` if a relay is slow.
        """
        with self._lock:
            wish = self._look(fresh)
            shown = Pictures(self._merged(wish, fresh))
            shown.gateways = [
                {**one.to_json(), "report": self._reports.get(one.uid)} for one in self._gateways
            ]
            return shown

    def pulse(self) -> int:
        """A number that changes whenever ``pictures`` does, except in how old it is."""
        with self._lock:
            self._look(False)
            told = [(uid, one.number, one.silent) for uid, one in self._pictures.items()]
            return hash((self._version, tuple(told), self._reported_at))

    def judge(self, uid: str, call: int, judgement: str) -> bool:
        """End the blocked call number ``call`` of a process; False if it is over, or unreachable.

        Args:
            judgement: JSON, see ``observe.deadlocks``.
        """
        try:
            answer = self._order(do="judge", uid=uid, call=call, judgement=judgement)
        except SFMError:
            return False
        return bool(answer["done"])

    def interrupt(self, uid: str) -> None:
        """Send SIGINT to a process, as a notebook's Stop button does.

        Raises:
            WorldError: it did not get it; the message says why.
            WorldGone: the directory server does not answer.
        """
        answer = self._order(do="interrupt", uid=uid)
        if not answer["done"]:
            raise WorldError(f"not interrupted: {answer['why']}")

    def _order(self, **order: Any) -> dict[str, Any]:
        return self._client.ask("order", ORDER_SECONDS + ANSWER_SECONDS, **order)

    # ---- looking ----

    def _look(self, fresh: bool) -> int:
        """Bring what is known up to date; the number of the wish that was made, if one was."""
        if time.monotonic() < self._silent_until:
            return self._wish + 1  # nobody has heard of it
        try:
            self._ask(wish=fresh)
            self._ask_for_reports()
            is_old = any(
                not one.silent and one.age > OLD_SECONDS for one in self._pictures.values()
            )
            if is_old and not fresh:
                self._ask(wish=True)
            wish = self._wish
            deadline = time.monotonic() + FRESH_SECONDS
            while (fresh or is_old) and self._waits_for(wish) and time.monotonic() < deadline:
                time.sleep(PAUSE)
                self._ask(wish=False)
            return wish
        except SFMError:
            self._silent_until = time.monotonic() + RETRY_SECONDS
            for one in self._pictures.values():
                one.silent = True
            return self._wish + 1

    def _waits_for(self, wish: int) -> bool:
        return any(not one.silent and one.seen < wish for one in self._pictures.values())

    def _ask_for_reports(self) -> None:
        """What the gateways have told, where there are any."""
        if self._gateways and time.monotonic() >= self._reported_at + REPORTS_SECONDS:
            self._reports = self._client.ask("reports", ANSWER_SECONDS)["reports"]
            self._reported_at = time.monotonic()

    def _ask(self, wish: bool) -> None:
        known = {uid: one.number for uid, one in self._pictures.items()}
        answer, bodies = self._client.exchange(
            "pictures", limit=ANSWER_SECONDS, known=known, wish=wish, version=self._version
        )
        now = time.time()
        self._wish = answer["wish"]
        if "members" in answer:
            self._members = [Member.from_json(one) for one in answer["members"]]
            self._dead = frozenset(answer["dead"])
            self._gateways = [Gateway.from_json(one) for one in answer.get("gateways", ())]
            silent = answer["unreachable"].items()
            self._silent_since = {uid: now - seconds for uid, seconds in silent}
            uids = {one.uid for one in self._members}
            self._met = {uid: self._met.get(uid, now) for uid in uids}
        self._version = answer["version"]
        found, left = {}, iter(bodies)
        for uid, number, seen, clock, age, silent, is_new in answer["relays"]:
            one = self._pictures.get(uid) or _Picture()
            if is_new:
                one.number, one.states = number, unpack(next(left))
            one.seen, one.clock, one.silent = seen, clock, silent
            one.age = math.inf if age is None else age
            if seen >= 0 and not 0 <= (offset := now - one.age - clock) - one.offset < 1:
                one.offset = offset  # the fastest answer was nearest to the truth
            found[uid] = one
        self._pictures = found

    # ---- showing ----

    def _merged(self, wish: int, fresh: bool) -> list[State]:
        shown: dict[str, State] = {}
        listed = {one.uid for one in self._members}
        # Of two that show the same process the one that has looked last; seldom are there two.
        for picture in sorted(self._pictures.values(), key=lambda one: (not one.silent, -one.age)):
            for state in picture.states:
                if not picture.silent or state["uid"] in listed:
                    seen = self._as_seen(state, picture, wish, fresh)
                    shown[state["uid"]] = seen | self._silence(state["uid"])
        for member in self._members:
            if member.uid not in shown:
                shown[member.uid] = self._unseen(member) | self._silence(member.uid)
        return list(shown.values())

    def _silence(self, uid: str) -> State:
        return {"unreachable": self._silent_since.get(uid)}

    def _as_seen(self, state: State, picture: _Picture, wish: int, fresh: bool) -> State:
        since = state["since"] + picture.offset
        until = state["until"] and state["until"] + picture.offset
        seen = state | {"here": False, "since": since, "until": until, "clock": picture.offset}
        if picture.silent:
            seen |= {
                "examined": UNSETTLED,
                "alive": state["alive"] and state["uid"] not in self._dead,
            }
        if fresh and (picture.silent or picture.seen < wish):
            seen["examined"] = UNSETTLED
            if seen["state"] in ("idle", "blocked in cell"):
                seen["state"] = "running"
        elif fresh:
            lasted = picture.clock - state["since"]
            seen["since"] = max(since, time.time() - lasted - SLACK)
        return seen

    def _unseen(self, member: Member) -> State:
        """A member of which only the directory knows."""
        about = member.told()
        about["kind"] = "engine" if "engine_id" in member.info else "process"
        texts = dict.fromkeys(("waits", "facts", "others", "summary", "code"))
        counts = dict.fromkeys(("call", "line", "depth", "bytes", "sent", "received", "arrived"), 0)
        return (
            texts
            | counts
            | {
                "uid": member.uid,
                "here": False,
                "alive": member.uid not in self._dead,
                "state": "running",
                "since": self._met[member.uid],
                "until": 0.0,
                "info": json.dumps(about),
                "examined": UNSETTLED,
                "peers": [],
                "polls": None,
                "main": None,
            }
        )
