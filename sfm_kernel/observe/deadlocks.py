"""The proof of a deadlock, its report, and the end of its calls.

A diagnosis is true of one moment. To act on it takes a proof: the same processes in the same calls
in every check, for seconds.
"""

from __future__ import annotations

import itertools
import json
import secrets
import time
from collections.abc import Callable, Hashable
from typing import Any

from sfm_kernel import _native
from sfm_kernel.observe.explain import Graph, diagnose, look
from sfm_kernel.observe.explain.but_for import LASTING, but_for
from sfm_kernel.observe.explain.graph import YOUNG
from sfm_kernel.observe.explain.repetition import Repetition
from sfm_kernel.observe.explain.taken import Traces
from sfm_kernel.observe.snapshot import Remote, calls, folder_of, segments

PROOF = 2.0
"""Seconds that a deadlock must last before its calls are ended."""

CONFIRMED = 0.5
"""Seconds of a proof that a monitor must have seen itself. Calls say since when they wait, but a
monitor that has just begun does not know what else has happened meanwhile."""

DOUBT = 1.0
"""Seconds for which a deadlock that something could resolve is seen before it is reported. It has
lasted for ``but_for.LASTING`` then."""

SELDOM = 1.0
"""Seconds between two looks at a world in which no process stays in a call: they may go on, or do
nothing but poll."""


class DeadlockMonitor:
    """Checks a world repeatedly, and says when a deadlock is proven.

    Args:
        world: its folder on this machine, or an endpoint in it.
        proof: seconds that the same calls must have been stuck.
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
        self._stuck: Hashable = None
        self._since = self._checked = self._looked = 0.0
        self._credit = max(0.0, proof - CONFIRMED)  # of a deadlock that is older than this monitor
        self._repetition = Repetition(self._folder)

    def check(self) -> dict[str, Any] | None:
        """The diagnosis, once its deadlock is proven; None before that.

        Also a diagnosis of a deadlock that only a thread, a callback, a lock or a newcomer could
        resolve, or that is none if a process does more than poll, and one that suspects a livelock
        (see ``repetition``): their verdicts differ, and no process is stuck. Call it several times
        a second; a longer pause restarts the proof.
        """
        before, self._blocked = self._blocked, _blocked(self._folder, self._remote)
        checked, self._checked = self._checked, self._clock()
        if self._checked - checked > self._proof / 2:
            self._stuck = None
        rested = bool(before & self._blocked)
        is_quiet = self._stuck is None and not self._repetition.is_suspected
        if not rested and is_quiet and self._checked - self._looked < SELDOM:
            return None
        self._looked = self._checked
        graph = look(self._folder, self._remote)
        stuck, proof = (_stuck(graph), self._proof) if graph.stuck else (_doubt(graph), DOUBT)
        credit, self._credit = self._credit, YOUNG
        if stuck is None:
            self._stuck, doubt = None, self._repetition.look(graph)
            return doubt and self._repetition.told(doubt, graph, diagnose(graph, self._folder))
        if stuck != self._stuck:
            self._stuck, self._since = stuck, self._clock() - min(credit, _lasted(graph))
            return None
        if self._clock() - self._since < min(proof, self._proof):
            return None
        found = diagnose(graph, self._folder, Traces(self._folder))
        return found if found["stuck"] or found["but_for"] else None


def _lasted(graph: Graph) -> float:
    """Seconds for which the processes of a deadlock have certainly been in it; 0 without one.

    The clocks of other machines differ, and nobody knows when a process has died.
    """
    stuck = [graph.nodes[uid].process for uid in graph.stuck]
    if not all(one["here"] for one in stuck) or not all(one["alive"] for one in graph.processes):
        return 0.0
    return max(0.0, graph.time - max((one["since"] for one in stuck), default=graph.time))


def _stuck(graph: Graph) -> Hashable:
    """The calls of a deadlock."""
    return frozenset((node.uid, node.process["call"]) for node in graph.blocked())


def _doubt(graph: Graph) -> Hashable:
    """The processes of a deadlock that something could resolve, and all that they have done.

    None if there is none. Polling calls are not counted: each has a number of its own. Nor is what
    a process that polls has sent: none of the others has received it.
    """
    found = but_for(graph, LASTING - DOUBT)
    if found is None:
        return None
    processes = [graph.nodes[node.uid].process for node in found[1].blocked()]
    return frozenset(
        (one["uid"], bool(one["polls"]) or (one["call"], one["sent"]), one["received"])
        for one in processes
    )


class DeadlockReporter:
    """Reports once why a world does not go on, or ends the calls of its deadlock.

    Args:
        monitor: checks the world.
        report: called with the explanation of a deadlock, and with that of a deadlock that only a
            thread or a callback could resolve; once with each.
        end: ends the calls of a deadlock, and returns the names of their processes; None ends none.
        quiet: does not report deadlocks whose calls were ended.
    """

    def __init__(
        self,
        monitor: DeadlockMonitor,
        report: Callable[[str], object],
        end: Callable[[dict[str, Any]], list[Any]] | None = None,
        *,
        quiet: bool = False,
    ) -> None:
        self._monitor, self._report, self._end = monitor, report, end
        self._quiet = quiet
        self._reported: set[str] = set()

    def check(self, of: str = "") -> None:
        """Check the world; call it several times a second.

        Args:
            of: the uid of a process; only deadlocks that it is part of are reported, and ended.
        """
        found = self._monitor.check()
        if found is None or not _concerns(found, of):
            return
        if found["verdict"] == "deadlock" and self._end is not None:
            if self._end(found) and not self._quiet:
                self._report(explanation(found))
        elif found["verdict"] not in self._reported:
            self._reported.add(found["verdict"])
            self._report(explanation(found))


def _concerns(found: dict[str, Any], uid: str) -> bool:
    names = (found["but_for"] or found)["stuck"]
    named = (process["name"] for process in found["processes"] if process["uid"] == uid)
    return not uid or any(name in names for name in named)


def explanation(diagnosis: dict[str, Any]) -> str:
    """A diagnosis as lines of text."""
    return "\n".join([f"{diagnosis['title']}.", *diagnosis["sentences"]])


def with_hint(text: str, hint: str) -> str:
    """An explanation, and what the user can do; after a semicolon about proven deadlocks alone."""
    if not text.startswith("Deadlock"):
        hint = f"{hint.partition(';')[0]}." if hint else ""
    return "\n".join(filter(None, (text, hint)))


def _blocked(folder: str, remote: Remote | None) -> frozenset[tuple[str, int]]:
    """Processes that are in a blocked call, each with its number."""
    known = calls(folder, remote(False) if remote else ()).items()
    return frozenset((uid, call) for uid, (call, state) in known if state.startswith("blocked"))


Judge = Callable[[str, str, int, str], bool]
"""``judge``, without its folder, for processes on other machines."""

STEPS = ("prepare", "commit", "abort")
"""Of the end of a call."""

_OBSERVERS = (1 << 63 - _native.OBSERVER_SHIFT) - 1
"""Numbers of observers; each end of a deadlock takes another one."""


def end_calls(
    world: Any, diagnosis: dict[str, Any], brief: bool = False, remote: Judge | None = None
) -> list[Any]:
    """End the blocked calls of a deadlock with DeadlockDetected: all of them, or none.

    None has ended before all are certain to end: a process that goes on would otherwise send to one
    that still waits in the old call. Of several observers one ends a call, and the others none of
    those that belong to it: what one has prepared, no other commits or aborts.

    Args:
        brief: each error describes only its own process, not the whole diagnosis.
        remote: ends the calls of processes that are not on this machine.
    Returns:
        The names of the processes whose calls were ended; none if one of the calls is over, since
        this is no deadlock any more, or if another observer is about to end it. A message that a
        call was to send or receive is where it was: not sent, or in the inbox.
    """
    folder = folder_of(world)
    local = segments(folder)
    observer = 1 + secrets.randbelow(_OBSERVERS)

    def take(step: str, process: dict[str, Any]) -> bool:
        text = [process["text"]] if brief else diagnosis["sentences"]
        judgement = _judgement(diagnosis, text) if step == "prepare" else ""
        uid, call = process["uid"], process["call"] | observer << _native.OBSERVER_SHIFT
        if uid in local:
            return judge(folder, step, uid, call, judgement)
        return remote is not None and remote(step, uid, call, judgement)

    stuck = [process for process in diagnosis["processes"] if process["verdict"] == "stuck"]
    prepared = list(itertools.takewhile(lambda process: take("prepare", process), stuck))
    are_all = len(prepared) == len(stuck)
    # The last one may be prepared after all: an order to another machine that was given up may have
    # arrived.
    for process in stuck[: len(prepared) + 1]:
        take("commit" if are_all else "abort", process)
    return [process["name"] for process in stuck] if are_all else []


def judge(folder: str, step: str, uid: str, call: int, judgement: str = "") -> bool:
    """Take one of ``STEPS`` to end the blocked call of a process; its segment is on this machine.

    False if that call is over, or another observer has prepared its end. ``call``: its number, and
    that of the observer, see ``_native.judge``. ``judgement``: JSON, with "cycle" and "why", to be
    prepared; it is shortened if it is too long for a segment.
    """
    path = segments(folder).get(uid)
    return path is not None and _native.judge(path, step, call, shortened(judgement))


def _judgement(diagnosis: dict[str, Any], sentences: list[str]) -> str:
    """The cycle and its explanation, as JSON that fits into a segment."""
    why = "\n".join([diagnosis["title"] + ".", *sentences])
    found = {"cycle": diagnosis["cycle"] or diagnosis["stuck"], "why": why}
    return shortened(json.dumps(found, ensure_ascii=False))


def shortened(judgement: str) -> str:
    """The same judgement with as many of its first lines as a segment has room for."""
    if _fits(judgement):
        return judgement
    found = json.loads(judgement)
    cycle, (title, *lines) = found["cycle"], found["why"].split("\n")
    for length in range(len(lines) - 1, -1, -1):
        why = "\n".join([title, *lines[:length], f"… and {len(lines) - length} more lines"])
        judgement = json.dumps({"cycle": cycle, "why": why}, ensure_ascii=False)
        if _fits(judgement):
            return judgement
    # Very long names, or very many of them.
    names = [name[:_NAME] if isinstance(name, str) else name for name in cycle[:5]]
    return json.dumps({"cycle": names, "why": title[:_TITLE]}, ensure_ascii=False)


_NAME, _TITLE = 64, 200
"""Characters of a name and of a title in a judgement that is still too long without its lines."""


def _fits(judgement: str) -> bool:
    return len(judgement.encode()) <= _native.JUDGEMENT_BYTES
