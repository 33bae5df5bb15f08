"""The matrix of messages: who has sent how many to whom, and how many bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sfm_kernel.observe.drawings.style import LINE
from sfm_kernel.observe.timeline import words
from sfm_kernel.observe.timeline.svg import Markup, element

MOST = 40
"""Processes that a matrix shows."""


_CELL = "text-align:right;padding:2px 8px;min-width:1.6em"


class Matrix(NamedTuple):
    """The messages of a run.

    Attributes:
        names: of the processes.
        counts, sizes: the number of messages, and of their bytes, from each process (row) to each
            (column).
        hidden: the number of processes that are left out.
    """

    names: Sequence[object]
    counts: Sequence[Sequence[int]]
    sizes: Sequence[Sequence[int]]
    hidden: int

    @classmethod
    def of(cls, timeline: Mapping[str, Any]) -> Matrix:
        """The matrix of a "timeline" of ``schema.json``."""
        processes = timeline["processes"][:MOST]
        place = {process["uid"]: nth for nth, process in enumerate(processes)}
        counts = [[0] * len(processes) for _ in processes]
        sizes = [[0] * len(processes) for _ in processes]
        for flight in timeline["flights"]:
            src, dest = place.get(flight["src"]), place.get(flight["dest"])
            if src is not None and dest is not None:
                counts[src][dest] += 1
                sizes[src][dest] += flight["bytes"]
        names = [process["name"] for process in processes]
        return cls(names, counts, sizes, len(timeline["processes"]) - len(processes))

    def __repr__(self) -> str:
        heads = ["from \\ to", *map(str, self.names)]
        rows = [
            [str(name), *(str(count or "·") for count in row)]
            for name, row in zip(self.names, self.counts, strict=True)
        ]
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        lines = [
            "  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True))
            for line in [heads, *rows]
        ]
        return "\n".join([*lines, *self._notes()])

    def _repr_html_(self) -> str:
        most = max((count for row in self.counts for count in row), default=0)
        head = element("tr", element("th", "from \\ to"), *(_head(name) for name in self.names))
        rows = [
            element("tr", _head(name), *(self._cell(src, dest, most) for dest in range(len(row))))
            for src, (name, row) in enumerate(zip(self.names, self.counts, strict=True))
        ]
        table = element("table", head, *rows, style="border-collapse:collapse")
        notes = [element("div", note, style="opacity:.75") for note in self._notes()]
        return element("div", table, *notes, style="overflow-x:auto", tabindex="0")

    def _cell(self, src: int, dest: int, most: int) -> Markup:
        count, size = self.counts[src][dest], self.sizes[src][dest]
        names = f"{self.names[src]} → {self.names[dest]}"
        share = 0.08 + 0.6 * count / most if count else 0
        style = f"{_CELL};border:1px solid {LINE};background:rgba(0,114,178,{share:.2f})"
        title = f"{names}: {words.count(count, 'message')} of {words.size(size)}"
        return element("td", str(count) if count else "", title=title, style=style)

    def _notes(self) -> list[str]:
        total = sum(map(sum, self.counts))
        size = words.size(sum(map(sum, self.sizes)))
        notes = [f"{words.count(total, 'message')}{f' of {size}' if total else ''} in the last run"]
        if self.hidden:
            notes.append(f"{self.hidden} more processes are not shown")
        return notes


def _head(name: object) -> Markup:
    return element("th", str(name), scope="row", style=_CELL)
