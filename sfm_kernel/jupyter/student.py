"""The user of a notebook as a student of a class: what is shown to the class."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from IPython.core.error import UsageError

from sfm_kernel.classroom.progress import StudentProgress
from sfm_kernel.jupyter.home import Home
from sfm_kernel.jupyter.lines import Lines
from sfm_kernel.lessons.examine.examiner import Verdict

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
        self._progress = StudentProgress()

    def note(self, name: str, verdict: Verdict) -> None:
        """Note the result of a check. A class learns about it only while this world is shared."""
        state = "passed" if verdict.passed else "hangs" if verdict.hangs else "tried"
        self._progress.note(name, state)
        if verdict.passed and self._progress.hand is not None:
            self._progress.hand = None
            print("your hand is down again, since a check has passed")

    def commands(self) -> dict[str, Callable[[list[str]], None]]:
        """The commands of this class, by name."""
        return {"share": self._share_world, "hand": self._hand}

    def stop(self) -> None:
        """Stop sharing, and lower the hand. Harmless when repeated."""
        if self._share is not None:
            share, self._share = self._share, None
            self._progress.hand = None
            share.stop()

    def _share_world(self, words: Sequence[str]) -> None:
        from sfm_kernel.jupyter import sharing  # engines and most notebooks do not need it

        if list(words) == ["off"]:
            print("no longer shared" if self._share else "nothing was shared")
            self.stop()
        elif words:
            share = sharing.start(self._running(), self._lines, words, self._progress)
            earlier, self._share = self._share, share
            if earlier is not None:
                earlier.stop()
        else:
            print(sharing.state(self._share))

    def _hand(self, words: Sequence[str]) -> None:
        if list(words) not in ([], ["down"]):
            raise UsageError(f"%sfm hand takes nothing, or `down`, not {' '.join(words)!r}")
        if self._share is None:
            raise UsageError(
                "%sfm hand: no teacher sees it, since nothing is shared: `%sfm share URL` first"
            )
        if words:
            print("your hand is down" if self._progress.hand else "your hand was not up")
            self._progress.hand = None
            return
        self._progress.hand = self._progress.hand or time.time()
        now = f"; but now: {self._share.problem}" if self._share.problem else ""
        print(f"your hand is up: you come first on the class's page{now}")
        print("`%sfm hand down` lowers it, and so does a check that passes")
