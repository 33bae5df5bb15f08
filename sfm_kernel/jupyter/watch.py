"""The live table in a cell, for front ends without the panel: ``%sfm watch``, ``%%sfm --watch``.

The table is one output that is replaced, as HTML and as text, so that every front end that can
update an output draws it: JupyterLab, the classic notebook, VS Code, Colab; nbconvert keeps its
last state.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from IPython.core.error import UsageError

from sfm_kernel.errors import SFMError
from sfm_kernel.jupyter.home import Home
from sfm_kernel.jupyter.observed import Repeated
from sfm_kernel.jupyter.progress import Output
from sfm_kernel.jupyter.settings import NEVER, seconds
from sfm_kernel.jupyter.tables import Diagnosis, Note, status_table
from sfm_kernel.observe import explain, snapshot

_PAUSE = 0.25
"""Seconds between two frames."""

_STANDS = 1.0
"""Seconds without progress before the table explains why, and between two explanations."""

_QUIET = 3.0
"""Seconds for which all engines have been idle when ``%sfm watch`` ends by itself."""


class Frame:
    """The processes' states, the diagnosis if nothing goes on, and a remark."""

    def __init__(
        self,
        processes: Sequence[Mapping[str, Any]],
        diagnosis: Mapping[str, Any] | None = None,
        remark: str = "",
    ) -> None:
        stuck = diagnosis["stuck"] if diagnosis else ()
        self._outputs: list[Any] = [status_table(processes, stuck)]
        self._outputs += [Diagnosis(diagnosis)] if diagnosis else []
        self._outputs += [Note(remark)] if remark else []

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self._outputs))

    def _repr_html_(self) -> str:
        return "".join(output._repr_html_() for output in self._outputs)


class LiveTable:
    """The output that shows the newest frame."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._output = Output()
        self._diagnosis: Mapping[str, Any] | None = None
        self._due = 0.0
        self._rests_since: float | None = None

    @property
    def quiet(self) -> float:
        """Seconds for which all engines have been idle."""
        return 0.0 if self._rests_since is None else time.monotonic() - self._rests_since

    def draw(self, remark: str = "") -> None:
        """Show the current state. Raises OSError or SFMError if the world has ended."""
        sfm = self._home.sfm
        processes = snapshot(sfm, self._home.view.states())["processes"]
        living = (process for process in processes if process["alive"])
        others = [process for process in living if process["uid"] != sfm.uid]
        rest = all(process["state"] == "idle" and process["unseen"] is None for process in others)
        self._rests_since = (self._rests_since or time.monotonic()) if rest else None
        frame = Frame(processes, self._why(others), remark)
        self._output.show(frame)

    def _why(self, others: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
        """The diagnosis if a process is blocked and none computes; otherwise None."""
        now = time.time()
        acts = any(process["state"] == "running" or process["polls"] for process in others)
        blocked = (process for process in others if process["state"].startswith("blocked"))
        since = [process["since"] for process in blocked]
        if acts or not since or now - max(since) < _STANDS:
            self._diagnosis = None
        elif self._diagnosis is None or time.monotonic() >= self._due:
            self._diagnosis = explain(self._home.sfm, remote=self._home.view.states)
            self._due = time.monotonic() + _STANDS
        return self._diagnosis


def watch(home: Home, words: Sequence[str]) -> None:
    """``%sfm watch``: draw until Stop, for a number of seconds, or until all engines are idle.

    Raises UsageError if the words are no time.
    """
    try:
        (duration,) = [seconds(word) for word in words] or [NEVER]
    except ValueError:
        raise UsageError(
            "%sfm watch takes a time (`%sfm watch 30`); without it, it ends when all engines are "
            "idle"
        ) from None
    table, began = LiveTable(home), time.monotonic()

    def goes_on() -> bool:
        passed = time.monotonic() - began
        return passed < duration if words else table.quiet < _QUIET

    try:
        while goes_on():
            table.draw("live; Stop ends it")
            time.sleep(_PAUSE)
    except KeyboardInterrupt:
        pass
    table.draw(f"as it was at {time.strftime('%H:%M:%S')}")


@contextmanager
def watched(home: Home, enabled: bool) -> Iterator[None]:
    """``%%sfm --watch``: draw while the block runs; the last state remains."""
    if not enabled:
        yield
        return
    table = LiveTable(home)
    table.draw("live")
    drawing = Repeated(lambda: table.draw("live"), _PAUSE)
    try:
        yield
    finally:
        drawing.stop()
        with suppress(OSError, SFMError):  # the world has ended
            table.draw("as it was when the cell ended")
