"""The user of a notebook as a student of a class: what is shown to the class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sfm_kernel.jupyter.home import Home
from sfm_kernel.jupyter.lines import Lines

if TYPE_CHECKING:
    from sfm_kernel.classroom.sharing import Share


class Student:
    """The share of one notebook's world, and the commands for it.

    Args:
        running: returns the notebook's membership in its engines' world; raises if it has none.
    """

    def __init__(self, running: Callable[[], Home], lines: Lines) -> None:
        self._running, self._lines = running, lines
        self._share: Share | None = None

    def commands(self) -> dict[str, Callable[[list[str]], None]]:
        """The commands of this class, by name."""
        return {"share": self._share_world}

    def stop(self) -> None:
        """Stop sharing. Harmless when repeated."""
        if self._share is not None:
            share, self._share = self._share, None
            share.stop()

    def _share_world(self, words: Sequence[str]) -> None:
        from sfm_kernel.jupyter import sharing  # engines and most notebooks do not need it

        if list(words) == ["off"]:
            print("no longer shared" if self._share else "nothing was shared")
            self.stop()
        elif words:
            share = sharing.start(self._running(), self._lines, words)
            self.stop()  # the earlier share, now that the new one has begun
            self._share = share
        else:
            print(sharing.state(self._share))
