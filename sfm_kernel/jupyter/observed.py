"""Observes a world while a cell runs: deadlocks, and messages that are not received."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from IPython.display import display

from sfm_kernel.directory import Member
from sfm_kernel.endpoint.main_thread import awaits_futures
from sfm_kernel.errors import SFMError
from sfm_kernel.jupyter.home import Home
from sfm_kernel.jupyter.tables import Note
from sfm_kernel.observe import DeadlockMonitor, snapshot
from sfm_kernel.observe.deadlocks import DeadlockReporter, end_calls, with_hint
from sfm_kernel.observe.explain.taken import Traces
from sfm_kernel.observe.record import ProvenDeadlock
from sfm_kernel.observe.snapshot import state_of

_PATIENCE = 1.0
"""Seconds that a cell has run before its calls are checked for deadlocks."""

_HINT = "The cell goes on. Stop ends it; `%sfm detect on` ends such deadlocks from now on."

_SHOWN = 3
"""Messages that a note quotes of each inbox; a single further message is quoted, too."""


@contextmanager
def observed(home: Home, members: Sequence[Member], *, detect: bool) -> Iterator[None]:
    """Observe the world while a cell runs on engines and this notebook waits for it.

    Afterwards the messages that the cell has left in inboxes are listed.

    Args:
        detect: a deadlock that has lasted two seconds is reported, and ends its calls with
            DeadlockDetected.
    """
    before = _Inboxes(home)
    watcher = Watcher(home, end=True) if detect else None
    try:
        with home.waiting(observed=True):
            yield
    finally:
        if watcher is not None:
            watcher.stop()
        with suppress(OSError, SFMError):  # the world may have ended
            if note := _Inboxes(home).since(before):
                display(Note(note))


class Repeated:
    """A thread that observes a world repeatedly, until ``stop`` or until the world has ended.

    Args:
        observe: called each time; raises OSError or SFMError if the world has ended.
        pause: seconds before each call.
    """

    def __init__(self, observe: Callable[[], object], pause: float = 0.25) -> None:
        self._observe, self._pause, self._over = observe, pause, threading.Event()
        self._thread = threading.Thread(target=self._run, name="sfm-observe", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with suppress(OSError, SFMError):
            while not self._over.wait(self._pause):
                self._observe()

    def stop(self) -> None:
        """Stop the thread; waits until an observation that has begun is over."""
        self._over.set()
        self._thread.join()


class Watcher(Repeated):
    """Watches for deadlocks, reports them below the cell that runs, and ends them.

    Args:
        end: whether to end them.
        of_notebook: watch only for deadlocks of this notebook's calls, and of what it awaits from
            engines, once these have lasted a while.
    """

    def __init__(self, home: Home, *, end: bool, of_notebook: bool = False) -> None:
        self._home, self._ends = home, end
        begin = time.monotonic() + (_PATIENCE if of_notebook else 0.0)
        monitor = DeadlockMonitor(home.sfm, remote=home.view.states)
        reporter = DeadlockReporter(monitor, self._report, self._end if end else None)

        def observe() -> None:
            if not of_notebook or (time.monotonic() >= begin and _awaits_engines(home)):
                reporter.check()
            elif time.monotonic() >= begin and _waits(home.sfm):
                reporter.check(home.sfm.uid)

        super().__init__(observe)

    def _report(self, text: str) -> None:
        self._home.deadlocks.append(ProvenDeadlock(time.time(), text))
        print(text if self._ends else with_hint(text, _HINT), file=sys.stderr)

    def _end(self, found: dict[str, Any]) -> list[Any]:
        return end_calls(self._home.sfm, found, brief=True, remote=self._home.view.judge)


def _awaits_engines(home: Home) -> bool:
    """Whether this notebook waits for what engines do, in no call of its own: for futures, or for
    the result of a cell that was run with ``--noblock``. Whatever these wait for concerns it."""
    state = state_of(home.sfm)
    if state["state"] == "blocked in cell":
        return not home.is_observed
    return _is_held(state) and awaits_futures()


def _waits(sfm: Any) -> bool:
    """Whether this notebook is in a call of its own, polls, or waits for a lock that no thread of
    it could release.

    If it computes, or waits for other things, it owes nobody a message.
    """
    state = state_of(sfm)
    if state["state"].startswith("blocked"):
        return bool(state["state"] != "blocked in cell")
    return state["polls"] is not None or _is_held(state)


def _is_held(state: Mapping[str, Any]) -> bool:
    return bool(state["main"] and state["main"][0] == "held" and state["state"] == "running")


class _Inboxes:
    """The messages in a world's inboxes, and those that were lost with dead processes."""

    def __init__(self, home: Home) -> None:
        processes = snapshot(home.sfm, home.view.states(True))["processes"]
        self._processes = {process["uid"]: process for process in processes}
        self._folder = home.sfm.folder

    def since(self, before: _Inboxes) -> str:
        """The messages that have been added since ``before``, in words; "" if there are none."""
        notes, traces = [], Traces(self._folder)
        for uid, process in self._processes.items():
            earlier = before._processes.get(uid)
            if process["alive"]:
                notes.append(_waiting(process, earlier))
            elif earlier and earlier["alive"] and (process["here"] or process["peers"]):
                notes.append(_lost(process, self._processes.values(), traces))
        return "\n".join(filter(None, notes))


def _waiting(now: Mapping[str, Any], earlier: Mapping[str, Any] | None) -> str:
    fresh = list((_texts(now) - (_texts(earlier) if earlier else Counter())).elements())
    if not fresh:
        return ""
    shown = fresh if len(fresh) <= _SHOWN + 1 else fresh[:_SHOWN]
    more = "" if shown == fresh else f" and {len(fresh) - _SHOWN} more"
    verb = "message waits" if len(fresh) == 1 else "messages wait"
    return f"{len(fresh)} {verb} in {now['name']}'s inbox: {'; '.join(shown)}{more}"


def _lost(dead: Mapping[str, Any], processes: Any, traces: Traces) -> str:
    """The user's messages that a process had not received when it died in this cell.

    Those of libraries, such as MPI, tell the user nothing; the senders' traces distinguish them.
    """
    uid, lost = dead["uid"][16:], 0
    received = {peer["uid"]: peer["received"] for peer in dead["peers"]}
    for process in processes:
        sent = sum(peer["sent"] for peer in process["peers"] if peer["uid"] == uid)
        left = sent - received.get(process["uid"][16:], 0)
        if left > 0:
            events, _ = traces.of(process["uid"])
            contexts = [event[9] for event in events if event[2:4] == ("sent", uid)]
            lost += left - sum(map(bool, contexts[-left:]))
    if lost <= 0:
        return ""
    verb = "message was" if lost == 1 else "messages were"
    return f"{lost} {verb} lost with {dead['name']}, which had not received them"


def _texts(process: Mapping[str, Any]) -> Counter[str]:
    """The user's messages in an inbox; those of libraries are received by their later calls."""
    messages = [message for message in process["messages"] if not message["context_id"]]
    return Counter(
        ", ".join(f"{name}={value}" for name, value in message["attributes"] if name != "dest")
        for message in messages
    )
