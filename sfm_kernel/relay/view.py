"""What an observer knows of a world's processes on other machines.

Their relays send snapshots to the directory server, which gives them to each observer that asks.
What is true of another machine is known only of the moment at which its relay read it. For a
display this does not matter. For a proof it does: ``observe.explain`` reads all processes twice,
and takes a process that was in the same blocked call both times to have been in it in between, when
all others were in theirs. There must be one moment between the two readings of *all* processes.

It is the moment at which ``states(fresh=True)`` is called. The first readings were over by then:
their snapshots were here. The call makes a request at the server and remembers its number; a relay
says which request it knew before it read, and only a snapshot that knows this one, or a later one,
counts as a second reading. So that began after the moment, by the order in which messages were sent
and received: no two clocks are compared. Whatever is not known to be that fresh is shown so that it
proves nothing: a blocked call has not examined all that has come, an idle process runs again.

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

from sfm_kernel._native import UNSETTLED
from sfm_kernel.directory.carrier import ORDER_SECONDS
from sfm_kernel.errors import SFMError, WorldError
from sfm_kernel.observe.deadlocks import shortened
from sfm_kernel.observe.states import RemoteStates, State, unknown
from sfm_kernel.relay.wire import pack_order, unpack
from sfm_kernel.transport.base import Directory, DirectoryClient, Gateway, Member

ANSWER_SECONDS = 1.0
"""A server that is silent for this long is not asked again for ``RETRY_SECONDS``."""
RETRY_SECONDS = 2.0
FRESH_SECONDS = 1.0
"""How long to wait for fresh snapshots; not for those of relays that are silent already."""
OLD_SECONDS = 1.0
"""A snapshot that is older is not shown before its relay was asked for another."""
REPORTS_SECONDS = 1.0
"""Gateways report so often; they are not asked for more often."""
PAUSE = 0.003
SLACK = 0.1
"""Seconds by which a wait may seem longer than it was when its relay read it."""


@dataclass
class _Snapshot:
    """The latest of one relay. ``offset``: what to add to the relay's clock."""

    number: int = 0
    states: list[State] = field(default_factory=list)
    request: int = -1
    clock: float = 0.0
    age: float = math.inf
    silent: bool = True
    offset: float = math.inf


class RemoteView:
    """What an observer knows of processes on other machines, by the directory server. Thread-safe.

    An observer keeps one: relays begin to send with its first question, and its next ones show what
    they have sent. It is no member of the world and needs no folder of it. When the server is gone,
    it shows what it knew last, which proves nothing.

    Args:
        client: asks the directory server; None for a world of one machine, of which there is
            nothing to show.
    """

    def __init__(self, client: DirectoryClient | None) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._snapshots: dict[str, _Snapshot] = {}
        self._members: list[Member] = []
        self._dead: frozenset[str] = frozenset()
        self._silent_since: dict[str, float] = {}
        self._version = -1
        self._met: dict[str, float] = {}
        self._request = 0
        self._silent_until = -math.inf
        self._gateways: list[Gateway] = []
        self._reports: dict[str, dict[str, Any]] = {}
        self._reported_at = -math.inf

    @classmethod
    def of(cls, world: Any) -> RemoteView:
        """The view of a world that is given by an endpoint in it, or by its directory.

        It asks through their connection, and serves as long as they are open.
        """
        directory: Directory = getattr(world, "directory", world)
        return cls(directory.client)

    def states(self, fresh: bool = False) -> RemoteStates:
        """What the processes of the world do, as ``observe.snapshot.states`` has it.

        The processes of this machine are among them, should a relay run here: an observer that has
        read those itself knows better. Times are of this machine's clock.
        ``observe.snapshot(world, view.states())`` shows the whole world, as does
        ``observe.explain(world, remote=view.states)``.

        Args:
            fresh: for a proof: what is not known to have been so after this call began is shown so
                that it proves nothing.
        Cost: 0.5 ms; with ``fresh`` some milliseconds, ``FRESH_SECONDS`` if a relay is slow.
        """
        if self._client is None:
            return RemoteStates()
        with self._lock:
            request = self._update(fresh)
            shown = RemoteStates(self._merged(request, fresh))
            shown.gateways = [
                {**one.to_json(), "report": self._reports.get(one.uid)} for one in self._gateways
            ]
            return shown

    def pulse(self) -> int:
        """A number that changes whenever ``states`` does, except in how old it is."""
        if self._client is None:
            return 0
        with self._lock:
            self._update(False)
            known = [(uid, one.number, one.silent) for uid, one in self._snapshots.items()]
            return hash((self._version, tuple(known), self._reported_at))

    def judge(self, uid: str, call: int, judgement: str) -> bool:
        """End the blocked call number ``call`` of a process; False if it is over, or unreachable.

        Args:
            judgement: JSON, see ``observe.deadlocks``; shortened to what a segment holds.
        """
        try:
            return not self._order(pack_order("judge", uid, call, shortened(judgement)), uid)
        except SFMError:
            return False

    def interrupt(self, uid: str) -> None:
        """Send SIGINT to a process, as a notebook's Stop button does.

        Raises:
            WorldError: it did not get it; the message says why.
            WorldGone: the directory server does not answer.
        """
        if why := self._order(pack_order("interrupt", uid), uid):
            raise WorldError(f"not interrupted: {why}")

    def _order(self, order: bytes, uid: str) -> str:
        """Have a process's relay carry out an order; "" if it did, else why not."""
        if self._client is None:
            raise WorldError(f"process {uid!r} is not on another machine: this world has only one")
        limit = ORDER_SECONDS + ANSWER_SECONDS
        _, (why,) = self._client.exchange("order", order, limit, uid=uid)
        return why.decode(errors="replace")

    # ---- asking ----

    def _update(self, fresh: bool) -> int:
        """Bring what is known up to date; the number of the request that was made, if one was."""
        if time.monotonic() < self._silent_until:
            return self._request + 1  # no relay knows of it
        try:
            self._ask(fresh=fresh)
            self._ask_for_reports()
            is_old = any(
                not one.silent and one.age > OLD_SECONDS for one in self._snapshots.values()
            )
            if is_old and not fresh:
                self._ask(fresh=True)
            request = self._request
            deadline = time.monotonic() + FRESH_SECONDS
            while (fresh or is_old) and self._waits_for(request) and time.monotonic() < deadline:
                time.sleep(PAUSE)
                self._ask(fresh=False)
            return request
        except SFMError:
            self._silent_until = time.monotonic() + RETRY_SECONDS
            for one in self._snapshots.values():
                one.silent = True
            return self._request + 1

    def _waits_for(self, request: int) -> bool:
        return any(not one.silent and one.request < request for one in self._snapshots.values())

    def _ask_for_reports(self) -> None:
        """Ask for the gateways' reports, where there are gateways."""
        if self._gateways and time.monotonic() >= self._reported_at + REPORTS_SECONDS:
            answer, _ = self._exchange("reports")
            self._reports = answer["reports"]
            self._reported_at = time.monotonic()

    def _exchange(self, what: str, **details: Any) -> tuple[dict[str, Any], list[bytes]]:
        assert self._client is not None  # without one nothing is asked
        return self._client.exchange(what, limit=ANSWER_SECONDS, **details)

    def _ask(self, fresh: bool) -> None:
        known = {uid: one.number for uid, one in self._snapshots.items()}
        answer, bodies = self._exchange(
            "snapshots", known=known, fresh=fresh, version=self._version
        )
        now = time.time()
        self._request = answer["request"]
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
        for uid, number, request, clock, age, silent, is_new in answer["relays"]:
            one = self._snapshots.get(uid) or _Snapshot()
            if is_new:
                one.number, one.states = number, _unpacked(next(left))
            one.request, one.clock, one.silent = request, clock, silent
            one.age = math.inf if age is None else age
            if request >= 0 and not 0 <= (offset := now - one.age - clock) - one.offset < 1:
                one.offset = offset  # the fastest answer was nearest to the truth
            found[uid] = one
        self._snapshots = found

    # ---- showing ----

    def _merged(self, request: int, fresh: bool) -> list[State]:
        shown: dict[str, State] = {}
        listed = {one.uid for one in self._members}
        # If two relays show the same process, which is rare, the one that has read it last counts.
        for one in sorted(self._snapshots.values(), key=lambda one: (not one.silent, -one.age)):
            for state in one.states:
                if not one.silent or state["uid"] in listed:
                    seen = self._as_seen(state, one, request, fresh)
                    shown[state["uid"]] = seen | self._silence(state["uid"])
        for member in self._members:
            if member.uid not in shown:
                shown[member.uid] = self._unseen(member) | self._silence(member.uid)
        return list(shown.values())

    def _silence(self, uid: str) -> State:
        return {"unreachable": self._silent_since.get(uid)}

    def _as_seen(self, state: State, snapshot: _Snapshot, request: int, fresh: bool) -> State:
        offset = snapshot.offset
        since = state["since"] + offset
        until = state["until"] and state["until"] + offset
        seen = state | {"here": False, "since": since, "until": until, "clock": offset}
        if snapshot.silent:
            seen |= {
                "examined": UNSETTLED,
                "alive": state["alive"] and state["uid"] not in self._dead,
            }
        if fresh and (snapshot.silent or snapshot.request < request):
            seen["examined"] = UNSETTLED
            if seen["state"] in ("idle", "blocked in cell"):
                seen["state"] = "running"
        elif fresh:
            lasted = snapshot.clock - state["since"]
            seen["since"] = max(since, time.time() - lasted - SLACK)
        return seen

    def _unseen(self, member: Member) -> State:
        """A member of which only the directory knows."""
        about = member.told()
        about["kind"] = "engine" if "engine_id" in member.info else "process"
        return unknown(
            member.uid,
            here=False,
            clock=0.0,
            alive=member.uid not in self._dead,
            state="running",
            since=self._met[member.uid],
            info=json.dumps(about),
        )


def _unpacked(snapshot: bytes) -> list[State]:
    """Its states; none where it is not valid: its processes are then shown as unseen members."""
    try:
        return unpack(snapshot)
    except ValueError:
        return []
