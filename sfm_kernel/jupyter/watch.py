"""The live table in a cell, for front ends without the panel: ``%sfm watch``, ``%%sfm --watch``.

It is one output that is replaced, as HTML and as text, so that every front end which can update an
output draws it: JupyterLab, the classic notebook, VS Code, Colab; nbconvert keeps its last state.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from IPython.core.error import UsageError
from IPython.display import DisplayHandle, display

from sfm_kernel.errors import SFMError
from sfm_kernel.jupyter.home import Home
from sfm_kernel.jupyter.observed import Repeated
from sfm_kernel.jupyter.settings import NEVER, seconds
from sfm_kernel.jupyter.tables import Diagnosis, Note, status_table
from sfm_kernel.observe import explain, snapshot

_PAUSE = 0.25
"""Seconds between two frames."""

_STANDS = 1.0
"""Seconds for which nothing has to go on before it is said why; and until it is said anew."""

_QUIET = 3.0
"""Seconds for which all engines have to rest before ``%sfm watch`` ends by itself."""


class Frame:
    """What the processes do now; where nothing goes on, why; a remark."""

    def __init__(
        self,
        processes: Sequence[Mapping[str, Any]],
        diagnosis: Mapping[str, Any] | None = None,
        remark: str = "",
    ) -> None:
        stuck = diagnosis["stuck"] if diagnosis else ()
        self._parts: list[Any] = [status_table(processes, stuck)]
        self._parts += [Diagnosis(diagnosis)] if diagnosis else []
        self._parts += [Note(remark)] if remark else []

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self._parts))

    def _repr_html_(self) -> str:
        return "".join(part._repr_html_() for part in self._parts)


class Picture:
    """The output that shows the newest frame."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._handle: DisplayHandle | None = None
        self._said: Mapping[str, Any] | None = None
        self._due = 0.0
        self._rests_since: float | None = None

    @property
    def quiet(self) -> float:
        """Seconds for which all engines have been seen to rest."""
        return 0.0 if self._rests_since is None else time.monotonic() - self._rests_since

    def draw(self, remark: str = "") -> None:
        """Show what is now. Raises OSError or SFMError where the world is gone."""
        sfm = self._home.sfm
        processes = snapshot(sfm, self._home.view.states())["processes"]
        others = [one for one in processes if one["alive"] and one["uid"] != sfm.uid]
        rest = all(one["state"] == "idle" for one in others)
        self._rests_since = (self._rests_since or time.monotonic()) if rest else None
        frame = Frame(processes, self._why(others), remark)
        if self._handle is None:
            self._handle = display(frame, display_id=True)
        else:
            self._handle.update(frame)

    def _why(self, others: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
        """The explanation, where somebody is blocked and nobody computes."""
        now = time.time()
        blocked = [one for one in others if one["state"].startswith("blocked") and not one["polls"]]
        acts = any(one["state"] == "running" or one["polls"] for one in others)
        if acts or not blocked or now - max(one["since"] for one in blocked) < _STANDS:
            self._said = None
        elif self._said is None or time.monotonic() >= self._due:
            self._said = explain(self._home.sfm, remote=self._home.view.states)
            self._due = time.monotonic() + _STANDS
        return self._said


def watch(home: Home, words: Sequence[str]) -> None:
    """``%sfm watch``: draw until Stop, for so many seconds, or until all engines have come to rest.

    Raises UsageError where the words are no time.
    """
    try:
        (wanted,) = [seconds(word) for word in words] or [NEVER]
    except ValueError:
        raise UsageError(
            "%sfm watch takes a time (`%sfm watch 30`); without, it ends when all engines rest"
        ) from None
    picture, began = Picture(home), time.monotonic()

    def goes_on() -> bool:
        passed = time.monotonic() - began
        return passed < wanted if words else picture.quiet < _QUIET

    try:
        while goes_on():
            picture.draw("live; Stop ends it")
            time.sleep(_PAUSE)
    except KeyboardInterrupt:
        pass
    picture.draw(f"as it was at {time.strftime('%H:%M:%S')}")


@contextmanager
def watched(home: Home, wanted: bool) -> Iterator[None]:
    """``%%sfm --watch``: draw while the block runs. What it last was stays."""
    if not wanted:
        yield
        return
    picture = Picture(home)
    picture.draw("live")
    drawing = Repeated(lambda: picture.draw("live"), _PAUSE)
    try:
        yield
    finally:
        drawing.stop()
        with suppress(OSError, SFMError):  # the world is gone
            picture.draw("as it was when the cell ended")
