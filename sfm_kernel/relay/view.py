"""An observer's view of a world's processes on other machines.

Their relays send snapshots to the directory server, which gives them to each observer that asks. A
snapshot is true of the moment at which the relay read it. For a display this does not matter. For a
proof it does: ``observe.explain`` reads all processes twice, and concludes that a process which was
in the same blocked call both times was in it in between, when all others were in theirs. There must
be one moment between the two readings of *all* processes.

It is the moment at which ``states(fresh=True)`` is called. The first readings were over by then:
the observer had their snapshots. The call makes a request at the server and remembers its number; a
relay names the request that it knew before it read, and only a snapshot that names this request, or
a later one, counts as a second reading. So the second reading began after the moment, by the order
in which messages were sent and received: no two clocks are compared. A state that is not known to
be that fresh is changed so that it proves nothing: a blocked call has not examined all that has
arrived, an idle process runs again.

A member that no relay shows, and that has no segment on this machine, is shown as one that
computes: it may send to any process. What was last seen more than ``SILENT_SECONDS`` ago is shown
with that time, as "unseen".
"""

from __future__ import annotations

import json
import math
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from sfm_kernel._native import UNSETTLED
from sfm_kernel.directory import Member
from sfm_kernel.directory.carrier import ORDER_SECONDS, SILENT_SECONDS
from sfm_kernel.errors import SFMError, WorldError
from sfm_kernel.observe.deadlocks import shortened
from sfm_kernel.observe.states import RemoteStates, State, unknown
from sfm_kernel.relay.wire import pack_order, unpack
from sfm_kernel.transport.base import Directory, DirectoryClient, Gateway

ANSWER_SECONDS = 1.0
"""Seconds after which a silent server is not asked again for ``RETRY_SECONDS``."""
RETRY_SECONDS = 2.0
FRESH_SECONDS = 1.0
"""Seconds to wait for fresh snapshots; relays that are silent already are not waited for."""
OLD_SECONDS = 1.0
"""Seconds after which a snapshot is shown only after its relay was asked for a new one."""
REPORTS_SECONDS = 1.0
"""The period of gateways' reports, and of requests for them, in seconds."""
PAUSE = 0.003
SLACK = 0.1
"""Seconds that a wait may appear longer than it was when its relay read it."""


@dataclass
class _Snapshot:
    """The latest snapshot of one relay.

    ``offset``: seconds to add to the relay's clock; ``read_at``: this machine's clock when the
    relay last found the snapshot to be true.
    """

    number: int = 0
    states: list[State] = field(default_factory=list)
    request: int = -1
    clock: float = 0.0
    age: float = math.inf
    read_at: float = 0.0
    silent: bool = True
    offset: float = math.inf


class RemoteView:
    """An observer's view of processes on other machines, by the directory server. Thread-safe.

    An observer keeps one: relays begin to send with its first request, and later requests return
    what they have sent. The observer is no member of the world and does not need its folder. When
    the server has ended, the view shows the last known states, which prove nothing.

    Args:
        client: asks the directory server; None for a world of one machine, whose view is empty.
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
        """The view of a world that is given as an endpoint or a directory.

        It uses their connection, and works as long as they are open.
        """
        directory: Directory = getattr(world, "directory", world)
        return cls(directory.client)

    def states(self, fresh: bool = False) -> RemoteStates:
        """The states of the world's processes, in the form of ``observe.snapshot.states``.

        If a relay runs on this machine, its processes are among them; states that an observer reads
        itself are better. Times are of this machine's clock. ``observe.snapshot(world,
        view.states())`` shows the whole world, as does ``observe.explain(world,
        remote=view.states)``.

        Args:
            fresh: for a proof: states that may have been read before this call are changed so that
                they prove nothing.
        Cost: 0.5 ms; with ``fresh`` some milliseconds, ``FRESH_SECONDS`` if a relay is slow.
        """
        if self._client is None:
            return RemoteStates()
        with self._lock:
            request = self._update(fresh)
            shown = RemoteStates(self._merged(request, fresh))
            shown.gateways = [
                {**gateway.to_json(), "report": self._reports.get(gateway.uid)}
                for gateway in self._gateways
            ]
            return shown

    def pulse(self) -> int:
        """A number that changes whenever ``states`` does, except for the snapshots' age."""
        if self._client is None:
            return 0
        with self._lock:
            self._update(False)
            known = tuple((uid, s.number, s.silent) for uid, s in self._snapshots.items())
            last = [*self._met.values(), *(s.read_at for s in self._snapshots.values())]
            are_old = tuple(map(_unseen_since, last))
            return hash((self._version, known, are_old, self._reported_at))

    def judge(self, step: str, uid: str, call: int, judgement: str) -> bool:
        """Like ``observe.deadlocks.judge``; False also if the process cannot be reached."""
        try:
            return not self._order(pack_order(step, uid, call, shortened(judgement)), uid)
        except SFMError:
            return False

    def interrupt(self, uid: str) -> None:
        """Send SIGINT to a process, as a notebook's Stop button does.

        Raises:
            WorldError: the process did not get the signal; the message says why.
            WorldGone: the directory server does not answer.
        """
        if why := self._order(pack_order("interrupt", uid), uid):
            raise WorldError(f"not interrupted: {why}")

    def _order(self, order: bytes, uid: str) -> str:
        """Have a process's relay carry out an order; return "", or why it failed."""
        if self._client is None:
            raise WorldError(f"process {uid!r} is not on another machine: this world has only one")
        limit = ORDER_SECONDS + ANSWER_SECONDS
        _, (why,) = self._client.exchange("order", order, limit, uid=uid)
        return why.decode(errors="replace")

    # ---- requests ----

    def _update(self, fresh: bool) -> int:
        """Update the view; return the number of the request, or of none that any relay knows."""
        if time.monotonic() < self._silent_until:
            return self._request + 1  # no relay knows this number
        try:
            self._ask(fresh=fresh)
            self._ask_for_reports()
            is_old = any(snapshot.age > OLD_SECONDS for snapshot in self._active())
            if is_old and not fresh:
                self._ask(fresh=True)
            request = self._request
            deadline = time.monotonic() + FRESH_SECONDS
            while (fresh or is_old) and time.monotonic() < deadline:
                if all(snapshot.request >= request for snapshot in self._active()):
                    break
                time.sleep(PAUSE)
                self._ask(fresh=False)
            return request
        except SFMError:
            self._silent_until = time.monotonic() + RETRY_SECONDS
            for snapshot in self._snapshots.values():
                snapshot.silent = True
            return self._request + 1

    def _active(self) -> list[_Snapshot]:
        """The snapshots of relays that are not silent."""
        return [snapshot for snapshot in self._snapshots.values() if not snapshot.silent]

    def _ask_for_reports(self) -> None:
        """Ask for the gateways' reports, if the world has gateways."""
        if self._gateways and time.monotonic() >= self._reported_at + REPORTS_SECONDS:
            answer, _ = self._exchange("reports")
            self._reports = answer["reports"]
            self._reported_at = time.monotonic()

    def _exchange(self, kind: str, **details: Any) -> tuple[dict[str, Any], list[bytes]]:
        assert self._client is not None  # callers have checked it
        return self._client.exchange(kind, limit=ANSWER_SECONDS, **details)

    def _ask(self, fresh: bool) -> None:
        known = {uid: snapshot.number for uid, snapshot in self._snapshots.items()}
        answer, bodies = self._exchange(
            "snapshots", known=known, fresh=fresh, version=self._version
        )
        now = time.time()
        self._request = answer["request"]
        if "members" in answer:
            self._members = [Member.from_json(member) for member in answer["members"]]
            self._dead = frozenset(answer["dead"])
            self._gateways = [Gateway.from_json(gateway) for gateway in answer.get("gateways", ())]
            silent = answer["unreachable"].items()
            self._silent_since = {uid: now - seconds for uid, seconds in silent}
            uids = {member.uid for member in self._members}
            self._met = {uid: self._met.get(uid, now) for uid in uids}
        self._version = answer["version"]
        found, unread = {}, iter(bodies)
        for uid, number, request, clock, age, silent, is_new in answer["relays"]:
            snapshot = self._snapshots.get(uid) or _Snapshot()
            snapshot.age = math.inf if age is None else age
            if (number, clock) != (snapshot.number, snapshot.clock):  # the relay has read again
                snapshot.read_at = 0.0 if age is None else now - age
            if is_new:
                snapshot.number, snapshot.states = number, _unpacked(next(unread))
            snapshot.request, snapshot.clock, snapshot.silent = request, clock, silent
            offset = now - snapshot.age - clock
            if request >= 0 and not 0 <= offset - snapshot.offset < 1:
                snapshot.offset = offset  # the fastest answer gives the best estimate
            found[uid] = snapshot
        self._snapshots = found

    # ---- states ----

    def _merged(self, request: int, fresh: bool) -> list[State]:
        shown: dict[str, State] = {}
        listed = {member.uid for member in self._members}
        # If two relays show the same process, which is rare, the latest reading counts.
        for snapshot in sorted(self._snapshots.values(), key=lambda s: (not s.silent, -s.age)):
            for state in snapshot.states:
                if not snapshot.silent or state["uid"] in listed:
                    seen = self._as_seen(state, snapshot, request, fresh)
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
        unseen = _unseen_since(snapshot.read_at)
        looked = state["looked"] and state["looked"] + offset
        seen = state | {"here": False, "since": since, "until": until, "clock": offset}
        seen |= {"unseen": unseen, "looked": looked}
        if snapshot.silent:
            seen |= {
                "examined": UNSETTLED,
                "alive": state["alive"] and state["uid"] not in self._dead,
            }
        if fresh and (snapshot.silent or snapshot.request < request):
            seen["examined"] = UNSETTLED
            if seen["state"] in ("idle", "blocked in cell") and unseen is None:
                seen["state"] = "running"
        elif fresh:
            lasted = snapshot.clock - state["since"]
            seen["since"] = max(since, time.time() - lasted - SLACK)
        return seen

    def _unseen(self, member: Member) -> State:
        """The state of a member that only the directory knows."""
        about = member.identity()
        about["kind"] = "engine" if "engine_id" in member.info else "process"
        return unknown(
            member.uid,
            here=False,
            clock=0.0,
            alive=member.uid not in self._dead,
            state="running",
            since=self._met[member.uid],
            unseen=_unseen_since(self._met[member.uid]),
            info=json.dumps(about),
        )


def _unseen_since(last: float) -> float | None:
    """The time at which a process was last seen, if that is long ago; otherwise None."""
    return last if time.time() - last > SILENT_SECONDS else None


def _unpacked(snapshot: bytes) -> list[State]:
    """The snapshot's states; none if it is invalid: its processes are then unseen members."""
    try:
        return unpack(snapshot)
    except ValueError:
        return []
