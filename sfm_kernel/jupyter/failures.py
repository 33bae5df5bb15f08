"""Shows the errors of a cell's engines: each once, the cause first, then who waited for it."""

from __future__ import annotations

import contextvars
import re
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from IPython import get_ipython

from sfm_kernel.errors import DeadlockDetected, PeerLost
from sfm_kernel.jupyter.tracebacks import in_short
from sfm_kernel.observe.explain.together import ranges

_TOGETHER = 1.0
"""Seconds that an error is held back, since other engines may raise an equal one."""

DIED, ABORTED = "EngineError", "TaskAborted"
"""ipyparallel's names for the end of an engine, and of a cell that it had not begun."""


_WAITED = re.compile(
    r"process (?P<peer>.+) has ended while .+ waited for it in (?P<call>.+)\. What it sent before"
)
"""The text of PeerLost, see ``errors`` and ``endpoint/peers.py``."""

_UNKNOWN = re.compile(r"name '(\w+)' is not defined")
_PLACE = re.compile(r"cell \d+, line \d+")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Failure:
    """An error that has ended a cell on an engine; ``traceback`` is as the engine shows it."""

    engine: str
    error: str
    text: str
    traceback: str

    @property
    def title(self) -> str:
        """The error in one line."""
        return ": ".join(filter(None, in_short(self.error, self.text)))

    @property
    def is_deadlock(self) -> bool:
        """Whether it has ended a call of a deadlock."""
        return in_short(self.error, self.text)[0] == DeadlockDetected.__name__

    @property
    def consequence(self) -> str:
        """The error of one who waited for another engine, in words that follow the names."""
        if found := _WAITED.match(self.text):
            places = _PLACE.findall(_COLOUR.sub("", self.traceback))
            place = f" in {places[-1]}" if places else ""
            return f"waited for {found['peer']}: {found['call']}{place}"
        return f"raised {self.title}"

    @property
    def follows(self) -> bool:
        """Whether it follows from what another engine did, if one has failed otherwise."""
        return self.is_deadlock or self.error == PeerLost.__name__


def on(engines: Iterable[str]) -> str:
    """``on A``, ``on 0, 1, 2``, ``on 0–49``."""
    return f"on {_names(engines)}"


def _names(engines: Iterable[str]) -> str:
    return ", ".join(ranges(int(name) if name.isdecimal() else name for name in engines))


class Failures:
    """The errors of one cell, shown on stderr below it.

    Args:
        engines: the names of the cell's engines by rank.
        told: whether the user has already read the explanation of this deadlock, by its title.
    """

    def __init__(self, engines: Iterable[str], told: Callable[[str], bool]) -> None:
        self._told = told
        self._order = {name: nth for nth, name in enumerate(engines)}
        self._context = contextvars.copy_context()  # ipykernel has the cell there
        self._lock = threading.Lock()
        self._all: dict[str, Failure] = {}  # by engine
        self._held: list[Failure] = []
        self._lost: list[Failure] = []  # of engines that have ended, if not shown yet
        self._shown: threading.Event | None = None  # is set when what is held back is shown

    def of(self, engine: str) -> Failure | None:
        """The first error of this engine, whether it has been shown or not."""
        with self._lock:
            return self._all.get(engine)

    def note(self, failure: Failure) -> None:
        """Take notice of the end of an engine, which the error of the cell will say.

        It is shown before what follows from it on other engines.
        """
        with self._lock:
            if failure.engine not in self._all:
                self._all[failure.engine] = failure
                self._lost.append(failure)

    def add(self, failure: Failure) -> None:
        """Show an engine's error soon, with equal ones; its first one only."""
        with self._lock:
            if failure in self._lost:
                self._lost.remove(failure)
            elif failure.engine in self._all:
                return
            self._all[failure.engine] = failure
            self._held.append(failure)
            if self._shown is not None:
                return
            self._shown = threading.Event()
            waiting = threading.Thread(target=self._wait, args=[self._shown], name="sfm-failures")
            waiting.daemon = True
            waiting.start()

    def _wait(self, shown: threading.Event) -> None:
        """Show what is held back, if nobody does before; in the thread for that."""
        if not shown.wait(_TOGETHER):
            self.show()

    def show(self) -> None:
        """Show now what is held back; in any thread."""
        self._context.copy().run(self._show)

    def _show(self) -> None:
        with self._lock:
            held, self._held = self._held, []
            if any(failure.follows for failure in held):
                held, self._lost = [*self._lost, *held], []
            held.sort(key=lambda one: self._order.get(one.engine, 0))
            if self._shown is not None:
                self._shown.set()
                self._shown = None
        has_cause = any(not failure.follows for failure in self._all.values())
        causes = [failure for failure in held if not (has_cause and failure.follows)]
        found = _engines((self._traceback(failure), failure) for failure in causes)
        lines = [f"{on(engines)}:\n{text}" for text, engines in found]
        lines += {hint: None for failure in causes if (hint := _only_in_notebook(failure))}
        rest = [failure for failure in held if failure not in causes and not self._is_told(failure)]
        found = _engines((failure.consequence, failure) for failure in rest)
        lines += [f"{_names(engines)} {text}" for text, engines in found]
        if lines:
            print("\n".join(lines), file=sys.stderr)

    def _is_told(self, failure: Failure) -> bool:
        return failure.is_deadlock and self._told(failure.text.partition("\n")[0])

    def _traceback(self, failure: Failure) -> str:
        """The traceback; of a deadlock that is told only its frames and its title."""
        if not failure.traceback:
            return failure.title
        lines, own = failure.traceback.splitlines(), failure.text.splitlines()[1:]
        if own and self._is_told(failure):
            lines[-len(own) :] = [line for line in own if line.startswith("(Raised as ")]
        return "\n".join(lines)


def _only_in_notebook(failure: Failure) -> str:
    """The hint that a name which an engine does not know is the notebook's; "" if it is not."""
    found = _UNKNOWN.match(failure.text) if failure.error == NameError.__name__ else None
    shell = get_ipython()
    if found is None or found[1] not in shell.user_ns or found[1] in shell.user_ns_hidden:
        return ""
    return (
        f"Only the notebook has {found[1]}: `%%sfm --local` runs the cell that makes it on engines "
        f"and in the notebook"
    )


def _engines(pairs: Iterable[tuple[str, Failure]]) -> list[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for text, failure in pairs:
        found.setdefault(text, []).append(failure.engine)
    return list(found.items())


def summary(failures: Iterable[Failure]) -> str:
    """The errors in one line: the causes, then who waited for them."""
    listed = list(failures)
    causes = [failure for failure in listed if not failure.follows] or listed
    found = _engines((failure.title, failure) for failure in causes)
    texts = [f"{on(engines)}: {title}" for title, engines in found]
    if rest := [failure.engine for failure in listed if failure not in causes]:
        pronoun = "it" if len(causes) == 1 else "them"
        texts.append(f"{_names(rest)} waited for {pronoun}")
    return "; ".join(texts)
