"""Observes a world while a cell runs: deadlocks, and messages that nobody received."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from IPython.display import display

from sfm_kernel.errors import SFMError
from sfm_kernel.jupyter.home import Home
from sfm_kernel.jupyter.tables import Note
from sfm_kernel.observe import DeadlockMonitor, snapshot
from sfm_kernel.observe.deadlocks import DeadlockReporter, end_calls
from sfm_kernel.observe.record import ProvenDeadlock
from sfm_kernel.observe.snapshot import calls
from sfm_kernel.transport.base import Member

_PATIENCE = 1.0
"""Seconds for which a cell has to have run before its own calls are looked at."""

_HINT = "The cell goes on waiting. Stop ends it; after `%sfm detect on` so does this."

_SHOWN = 3
"""Messages that a note quotes of each inbox where there are more; one more is quoted, too."""


@contextmanager
def observed(home: Home, members: Sequence[Member], *, detect: bool) -> Iterator[None]:
    """A cell runs on engines, and this notebook waits for it.

    ``detect``: a deadlock that has stood for two seconds is told here, and ends the calls that are
    stuck with DeadlockDetected. Afterwards messages are listed that the cell has left.
    """
    before = _Left(home)
    watcher = Watcher(home, end=True) if detect else None
    try:
        with home.waiting():
            yield
    finally:
        if watcher is not None:
            watcher.stop()
        with suppress(OSError, SFMError):  # the world may be gone
            if note := _Left(home).since(before):
                display(Note(note))


class Repeated:
    """A thread that observes a world again and again, until ``stop`` or until the world is gone.

    Args:
        observe: raises OSError or SFMError where the world is gone.
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
        """It observes no more; waits until an observation that has begun is over."""
        self._over.set()
        self._thread.join()


class Watcher(Repeated):
    """Watches for deadlocks, reports them below the cell that runs, and ends them.

    Args:
        end: whether they are ended.
        own: only those that this notebook's own calls are part of, once they have lasted a while.
    """

    def __init__(self, home: Home, *, end: bool, own: bool = False) -> None:
        self._home, self._ends = home, end
        begin, of = time.monotonic() + (_PATIENCE if own else 0), home.sfm.uid if own else ""
        watch = DeadlockMonitor(home.sfm, remote=home.view.states)
        lookout = DeadlockReporter(watch, self._tell, self._end if end else None, of=of)

        def observe() -> None:
            if not own or (time.monotonic() >= begin and _is_in_a_call(home.sfm)):
                lookout.check()

        super().__init__(observe)

    def _tell(self, text: str) -> None:
        self._home.told.append(ProvenDeadlock(time.time(), text))
        hint = "" if self._ends else _HINT
        print("\n".join(filter(None, (text, hint))), file=sys.stderr)

    def _end(self, found: dict[str, Any]) -> list[Any]:
        return end_calls(self._home.sfm, found, brief=True, remote=self._home.view.judge)


def _is_in_a_call(sfm: Any) -> bool:
    """Whether this notebook is blocked in a call of its own."""
    state = calls(sfm.folder).get(sfm.uid, (0, ""))[1]
    return state.startswith("blocked") and state != "blocked in cell"


class _Left:
    """What is in a world's inboxes, and what was lost with the dead."""

    def __init__(self, home: Home) -> None:
        seen = snapshot(home.sfm, home.view.states(True))["processes"]
        self._processes = {one["uid"]: one for one in seen}

    def since(self, before: _Left) -> str:
        """What has come to that, in words; "" if nothing."""
        told = []
        for uid, one in self._processes.items():
            earlier = before._processes.get(uid)
            if one["alive"]:
                told.append(_waiting(one, earlier))
            elif earlier is not None and earlier["alive"] and (one["here"] or one["peers"]):
                told.append(_lost(one, self._processes.values()))
        return "\n".join(filter(None, told))


def _waiting(now: Mapping[str, Any], earlier: Mapping[str, Any] | None) -> str:
    fresh = list((_texts(now) - (_texts(earlier) if earlier else Counter())).elements())
    if not fresh:
        return ""
    shown = fresh if len(fresh) <= _SHOWN + 1 else fresh[:_SHOWN]
    more = "" if shown == fresh else f" and {len(fresh) - _SHOWN} more"
    verb = "message waits" if len(fresh) == 1 else "messages wait"
    return f"{len(fresh)} {verb} in {now['name']}'s inbox: {'; '.join(shown)}{more}"


def _lost(dead: Mapping[str, Any], processes: Any) -> str:
    """Messages to a process that died in this cell, which it had not received."""
    own = dead["uid"][16:]
    sent = sum(peer["sent"] for one in processes for peer in one["peers"] if peer["uid"] == own)
    lost = sent - sum(peer["received"] for peer in dead["peers"])
    if lost <= 0:
        return ""
    what = "message was" if lost == 1 else "messages were"
    return f"{lost} {what} lost with {dead['name']}, which had not received them"


def _texts(process: Mapping[str, Any]) -> Counter[str]:
    """The user's own messages in an inbox; those of libraries are received by their later calls."""
    own = [one["attributes"] for one in process["messages"] if not one["context_id"]]
    shown = [[(name, value) for name, value in one if name != "dest"] for one in own]
    return Counter(", ".join(f"{name}={value}" for name, value in one) for one in shown)
