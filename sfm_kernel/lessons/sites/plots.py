"""Plots of messages between sites: times after a silence; bars of several routes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from matplotlib.artist import Artist
from matplotlib.axes import Axes

from sfm_kernel.plots import COLOURS, QUIET, Panel, Row


class AfterSilence(Panel):
    """The time of a message against the silence before it; a line for each route.

    Columns: silence_s, seconds, way. ``rtt``: seconds of a round trip, drawn dashed.
    """

    x, y = "silence_s", "ms"

    def __init__(self, rtt: float, silences: Sequence[float], top: float = 6.0) -> None:
        super().__init__("way")
        self.rtt, self.last, self.top = rtt * 1e3, max(silences), top

    def begin(self, axes: Axes) -> None:
        super().begin(axes)
        axes.set(xlabel="silence  (s)", ylabel="160 kB and its answer  (ms)")
        axes.set(xlim=(-0.05 * self.last, 1.5 * self.last), ylim=(0, self.top * self.rtt))
        axes.axhline(self.rtt, linestyle="--", color=QUIET, linewidth=1.5)
        self.note("a round trip", (0, self.rtt), (6, -14))

    def add(self, row: Row) -> None:
        if "silence_s" in row:
            super().add(row | {"ms": row["seconds"] * 1e3})


class Bars(Panel):
    """A bar for each of ``names``: the median of a column, over the rows that have that name.

    Args:
        names: the names of the bars, from the top.
        named: returns the name of a row's bar, or None if it has none.
        label: the label of the axis; ``top``: its end.
        column, scale: the column to draw, and its factor.
        marks: values of dashed lines, by their names.
        colours: the number of bars after which colours repeat.
    """

    x, y = "at", "value"

    def __init__(
        self,
        names: Sequence[str],
        named: Callable[[Row], str | None],
        label: str,
        top: float,
        *,
        column: str = "seconds",
        scale: float = 1e3,
        marks: dict[str, float] | None = None,
        colours: int = len(COLOURS),
    ) -> None:
        super().__init__("name")
        self.names, self._named, self.label, self.top = list(names), named, label, top
        self._column, self._scale, self._marks = column, scale, marks or {}
        self._values: dict[str, list[float]] = {}
        self._colours = COLOURS[:colours]

    def begin(self, axes: Axes) -> None:
        super().begin(axes)
        axes.grid(visible=False, axis="y")
        positions = range(len(self.names))
        colours = [self._colours[position % len(self._colours)] for position in positions]
        widths = [0.0] * len(self.names)
        self._bars = axes.barh(positions, widths, 0.7, color=colours, animated=True)
        self._texts = [
            axes.annotate("not measured", (0, position), (5, 0), textcoords="offset points",
                          va="center", size=11, color=QUIET, animated=True)
            for position in positions
        ]  # fmt: skip
        axes.set(xlabel=self.label, xlim=(0, self.top), ylim=(len(self.names) - 0.2, -0.5))
        axes.set_yticks(positions, self.names)
        for name, value in self._marks.items():
            axes.axvline(value, linestyle="--", color=QUIET, linewidth=1.5)
            self.note(name, (value, len(self.names) - 0.35), (4, 0))

    def add(self, row: Row) -> None:
        name, value = self._named(row), row.get(self._column)
        if name in self.names and value is not None:
            self._values.setdefault(str(name), []).append(value * self._scale)

    def moving(self) -> list[Artist]:
        for name, bar, text in zip(self.names, self._bars, self._texts, strict=True):
            if name in self._values:
                value = median(self._values[name])
                bar.set_width(value)
                text.set(text=f"{value:.3g}", color="black")
                text.xy = (min(value, 0.87 * self.top), text.xy[1])
        return [*self._bars, *self._texts]
