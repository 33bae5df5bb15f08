"""Proof of a deadlock, its end, and who is told of it.

A diagnosis is true of one moment. Whoever acts on it wants more: the same processes in the same
calls, look after look, for seconds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from sfm_kernel import _native
from sfm_kernel.observe.explain import explain
from sfm_kernel.observe.snapshot import Remote, calls, folder_of, segments

PROOF = 2.0
"""Seconds for which a deadlock has to stand before it is broken."""


class DeadlockMonitor:
    """Looks at a world again and again, and tells when a deadlock is proven.

    Args:
        world: its folder on this machine, or an endpoint in it.
        proof: seconds for which the same calls must have been stuck.
        clock: for tests.
        remote: gives the processes on other machines, see ``explain``.
    """

    def __init__(
        self,
        world: Any,
        proof: float = PROOF,
        clock: Callable[[], float] = time.monotonic,
        remote: Remote | None = None,
    ) -> None:
        self._folder, self._proof, self._clock = folder_of(world), proof, clock
        self._remote = remote
        self._blocked: frozenset[tuple[str, int]] = frozenset()
        self._stuck: dict[str, int] = {}
        self._since = self._looked = 0.0

    def check(self) -> dict[str, Any] | None:
        """The diagnosis, once its deadlock is proven; None before that.

        Also one of what would be a deadlock but for a thread or a callback, when that has stood for
        as long; its verdict is another one, and nobody is stuck. To be called several times a
        second; a longer pause begins the proof anew.
        """
        before, self._blocked = self._blocked, _blocked(self._folder, self._remote)
        looked, self._looked = self._looked, self._clock()
        if self._looked - looked > self._proof / 2:
            self._stuck = {}
        if not before & self._blocked:  # who goes on all the time is not looked at closely
            self._stuck = {}
            return None
        due = bool(self._stuck) and self._clock() - self._since >= self._proof
        diagnosis = explain(self._folder, remote=self._remote, history=due)
        names = (diagnosis["but_for"] or diagnosis)["stuck"]
        stuck = {one["uid"]: one["call"] for one in diagnosis["processes"] if one["name"] in names}
        if not stuck or stuck != self._stuck:
            self._stuck, self._since = stuck, self._clock()
            return None
        return diagnosis if due else None


class DeadlockReporter:
    """Looks at a world now and then, and says once why it does not go on; or ends that.

    Args:
        watch: what looks.
        tell: called with the explanation of a deadlock, and with that of what would be one but for
            a thread or a callback; once with each.
        end: ends the calls of a deadlock, and gives those that it has ended; None lets it stand.
        quiet: nothing is told of what was ended.
        of: tells only of what this process is part of, by its uid.
    """

    def __init__(
        self,
        watch: DeadlockMonitor,
        tell: Callable[[str], object],
        end: Callable[[dict[str, Any]], list[Any]] | None = None,
        *,
        quiet: bool = False,
        of: str = "",
    ) -> None:
        self._watch, self._tell, self._end = watch, tell, end
        self._quiet, self._of = quiet, of
        self._told: set[str] = set()

    def check(self) -> None:
        """To be called several times a second."""
        found = self._watch.check()
        if found is None or not self._concerns(found):
            return
        if found["verdict"] == "deadlock" and self._end is not None:
            if self._end(found) and not self._quiet:
                self._tell(explanation(found))
        elif found["verdict"] not in self._told:
            self._told.add(found["verdict"])
            self._tell(explanation(found))

    def _concerns(self, found: dict[str, Any]) -> bool:
        names = (found["but_for"] or found)["stuck"]
        own = (one["name"] for one in found["processes"] if one["uid"] == self._of)
        return not self._of or any(name in names for name in own)


def explanation(diagnosis: dict[str, Any]) -> str:
    """A diagnosis as lines."""
    return "\n".join([f"{diagnosis['title']}.", *diagnosis["sentences"]])


def _blocked(folder: str, remote: Remote | None) -> frozenset[tuple[str, int]]:
    """Processes that are in a blocked call, each with its number."""
    known = calls(folder, remote(False) if remote else ()).items()
    return frozenset((uid, call) for uid, (call, state) in known if state.startswith("blocked"))


Judge = Callable[[str, int, str], bool]
"""``judge`` for processes on other machines."""


def end_calls(
    world: Any, diagnosis: dict[str, Any], brief: bool = False, remote: Judge | None = None
) -> list[Any]:
    """End the blocked calls of a deadlock with DeadlockDetected.

    Args:
        brief: the errors tell of their own process only, not the whole diagnosis.
        remote: ends the calls of processes that are not on this machine.
    Returns:
        The names of the processes whose calls it was. A message that a call was to send or receive
        is where it was: in the inbox, or not sent.
    """
    folder = folder_of(world)
    here = segments(folder)
    ended = []
    for one in diagnosis["processes"]:
        if one["verdict"] != "stuck":
            continue
        uid, call = one["uid"], one["call"]
        judgement = _judgement(diagnosis, [one["text"]] if brief else diagnosis["sentences"])
        if uid in here:
            is_ended = judge(folder, uid, call, judgement)
        else:
            is_ended = remote is not None and remote(uid, call, judgement)
        if is_ended:
            ended.append(one["name"])
    return ended


def judge(folder: str, uid: str, call: int, judgement: str) -> bool:
    """End the blocked call number ``call`` of a process that has its segment here.

    False if that call is over. ``judgement``: JSON, with "cycle" and "why"; where it is too long
    for a segment it is shortened.
    """
    path = segments(folder).get(uid)
    return path is not None and _native.judge(path, call, shortened(judgement))


def _judgement(diagnosis: dict[str, Any], sentences: list[str]) -> str:
    """The cycle, and why, as JSON that fits into a segment."""
    why = "\n".join([diagnosis["title"] + ".", *sentences])
    found = {"cycle": diagnosis["cycle"] or diagnosis["stuck"], "why": why}
    return shortened(json.dumps(found, ensure_ascii=False))


def shortened(judgement: str) -> str:
    """The same judgement with as many of its first lines as a segment has room for."""
    if _fits(judgement):
        return judgement
    found = json.loads(judgement)
    cycle, (title, *told) = found["cycle"], found["why"].split("\n")
    for length in range(len(told) - 1, -1, -1):
        why = "\n".join([title, *told[:length], f"… and {len(told) - length} lines more"])
        judgement = json.dumps({"cycle": cycle, "why": why}, ensure_ascii=False)
        if _fits(judgement):
            return judgement
    # Very long names, or very many of them.
    names = [one[:_NAME] if isinstance(one, str) else one for one in cycle[:5]]
    return json.dumps({"cycle": names, "why": title[:_TITLE]}, ensure_ascii=False)


_NAME, _TITLE = 64, 200
"""Characters of a name, and of a title, that are left where everything else was not enough."""


def _fits(judgement: str) -> bool:
    return len(judgement.encode()) <= _native.JUDGEMENT_BYTES
