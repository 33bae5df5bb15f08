"""Plots of rows that a benchmark yields.

A *panel* draws rows into one pair of axes. ``live.Live`` draws panels side by side while rows come;
``sfm_kernel.jupyter.live`` has a function that shows that in a notebook. ``still`` draws the same
from existing rows.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any, ClassVar

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation

Row = dict[str, Any]
Points = dict[float, list[float]]
"""The points of one series: all y that were measured at each x."""

# Okabe and Ito's colours, which people with any kind of colour vision can distinguish; each series
# also has its marker and label.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# Viridis without its ends, which are hard to see in a light or in a dark theme: for series whose
# values have an order.
ORDERED = ("#482878", "#3e4a89", "#31688e", "#26828e", "#1f9e89", "#35b779")
MARKERS = "os^DvPX"
QUIET = "#666666"
DOTS_PER_INCH = 120


class Panel:
    """One pair of axes: a line for each value of the column ``by``, and a dot for every row.

    ``only`` maps columns to the values that are drawn; rows with other values are omitted.
    Subclasses name the columns x and y, and draw everything that does not move in ``begin``.
    """

    x: ClassVar[str]
    y: ClassVar[str]

    def __init__(self, by: str, only: Mapping[str, object] | None = None) -> None:
        self.by, self.only = by, dict(only or {})
        self._points: dict[Any, Points] = {}
        self._series: dict[Any, _Series] = {}

    def begin(self, axes: Axes) -> None:
        """Draw everything that does not move, and fix the limits."""
        self.axes = axes
        axes.grid(color="#dddddd", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)

    def add(self, row: Row) -> None:
        """Add a row. Nothing is drawn yet."""
        if all(row[column] == value for column, value in self.only.items()):
            value, x, y = row[self.by], row[self.x], row[self.y]
            self._points.setdefault(value, {}).setdefault(x, []).append(y)

    def moving(self) -> list[Artist]:
        """Update the moving artists, and return them."""
        for value in [value for value in self._points if value not in self._series]:
            self._series[value] = _Series(self.axes, len(self._series), _label(self.by, value))
        for value, colour in _coloured(self._points).items():
            self._series[value].colour(colour)
        for value, points in self._points.items():
            self._series[value].draw(*self.shown(points))
        spread(self.axes, [series.label for series in self._series.values()])
        return [artist for series in self._series.values() for artist in series.artists]

    def shown(self, points: Points) -> tuple[Points, dict[float, float]]:
        """The dots and the line of one series, by default through medians."""
        return points, {x: median(ys) for x, ys in points.items()}

    def note(self, text: str, point: tuple[float, float], offset: tuple[int, int] = (6, 4)) -> None:
        """Write a note at a point of the data, with an ``offset`` in points of type."""
        self.axes.annotate(text, point, offset, textcoords="offset points", color=QUIET, size=11)


class Speedup(Panel):
    """Speed-up against engines, with the ideal line. Columns: engines, seconds and ``by``.

    Speed-up is the shortest time on one engine divided by the time on several. Each time is a dot;
    the line goes through the shortest ones, which other programs on the machine disturb least.
    ``cores`` marks the number of this machine's cores.
    """

    x, y = "engines", "seconds"

    def __init__(
        self,
        engines: int,
        by: str = "n",
        only: Mapping[str, object] | None = None,
        cores: float | None = None,
    ) -> None:
        super().__init__(by, only)
        self.engines, self.cores = engines, cores

    def begin(self, axes: Axes) -> None:
        super().begin(axes)
        top = max(self.engines, 2)
        axes.set(xlabel="engines", ylabel="speed-up  (time on 1 / time)")
        axes.set(xlim=(1 - 0.05 * top, 1.36 * top), ylim=(0, 1.1 * top))
        axes.set_xticks(range(1, top + 1, -(-top // 8)))
        axes.set_yticks(range(0, top + 1, -(-top // 8)))
        axes.plot([1, top], [1, top], "--", color=QUIET, linewidth=1.5)
        self.note("ideal", (top, top))
        if self.cores is not None and self.cores < top:
            axes.axvline(self.cores, linestyle=":", color=QUIET, linewidth=1.5)
            self.note(f"cores: {self.cores:g}", (self.cores, 1.1 * top), (5, -12))

    def shown(self, points: Points) -> tuple[Points, dict[float, float]]:
        alone = min(points.get(1, [math.nan]))
        dots = {engines: [alone / time for time in times] for engines, times in points.items()}
        return dots, {engines: max(speedups) for engines, speedups in dots.items()}


class Error(Panel):
    """Error of the midpoint rule for pi against n, log-log. Columns: n, error and ``by``.

    The dashed line is h²/12, the rule's error for 4/(1+x²) as long as rounding does not matter:
    h²/24 · (f'(0) - f'(1)).
    """

    x, y = "n", "error"

    def __init__(
        self,
        intervals: Iterable[int],
        by: str = "kernel",
        only: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(by, only)
        self.intervals = sorted(intervals)

    def begin(self, axes: Axes) -> None:
        super().begin(axes)
        first, last = self.intervals[0], self.intervals[-1]
        left, right = first / 3, last * 30
        axes.set(xlabel="n  (intervals)", ylabel="error  (distance from π)")
        axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(1e-17, 1))
        line = [left, min(right, 2e7)]  # at 2e7, h²/12 is what a float near π can resolve
        axes.plot(line, [1 / (12 * n * n) for n in line], "--", color=QUIET, linewidth=1.5)
        self.note("h²/12", (first * 3, 1 / (12 * 9 * first * first)), (8, 4))
        axes.axhspan(1e-17, 2.2e-16, color=QUIET, alpha=0.15, linewidth=0)
        self.note("below what a float near π resolves", (left, 2e-17))


def still(rows: Iterable[Row], *panels: Panel) -> Figure:
    """A figure of these rows, to be saved by ``figure.savefig("x.png")`` (or .svg, .pdf)."""
    figure = begun(panels)
    for row in rows:
        for panel in panels:
            panel.add(row)
    for panel in panels:
        panel.moving()
    return figure


def rectangles(shares: Sequence[Iterable[int]]) -> Figure:
    """The midpoint rule for pi: which process computes which rectangles under 4/(1+x²).

    ``shares[p]`` are the intervals of process p, counted from 1; together they are 1 … n.
    Source: Chou, Nestinger and Cheng, "Ch MPI", Fig. 5.
    """
    owned = [list(share) for share in shares]
    n = sum(map(len, owned))
    area = sum(4 / (1 + ((i - 0.5) / n) ** 2) for i in range(1, n + 1)) / n
    figure = Figure(figsize=(7, 4.2), dpi=DOTS_PER_INCH, layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    for process, intervals in enumerate(owned):
        middles = [(i - 0.5) / n for i in intervals]
        heights = [4 / (1 + x * x) for x in middles]
        colour = COLOURS[process % len(COLOURS)]
        axes.bar(middles, heights, 1 / n, color=colour, alpha=0.75, edgecolor="white")
        if n <= 32:
            for x, height in zip(middles, heights, strict=True):
                axes.text(x, height / 2, f"P{process}", ha="center", color="white", size=13)
    xs = [i / 200 for i in range(201)]
    axes.plot(xs, [4 / (1 + x * x) for x in xs], color="black", linewidth=2)
    axes.annotate("4 / (1 + x²)", (0.5, 3.2), (8, 6), textcoords="offset points", size=13)
    axes.set(xlim=(0, 1), ylim=(0, 4.4), xlabel="x", ylabel="f(x)")
    axes.set_title(f"{n} rectangles, {len(owned)} processes: area {area:.6f}", size=13)
    return figure


def png(figure: Figure) -> bytes:
    """The figure as the bytes of a PNG."""
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


class _Series:
    """One value of ``by``: dots, a line, and a label at its end.

    Each line is thinner than the one before, so that lines that coincide are visible as several.
    """

    def __init__(self, axes: Axes, index: int, name: str) -> None:
        colour, marker = COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]
        (self._dots,) = axes.plot([], [], marker, color=colour, alpha=0.3, markersize=5)
        width = max(3.5 - 0.6 * index, 1.5)
        style: dict[str, Any] = {"marker": marker, "color": colour, "markersize": 5 + 1.5 * width}
        (self._line,) = axes.plot([], [], linewidth=width, **style)
        # The line to a label that was moved away from its point, see ``spread``.
        leader = {"arrowstyle": "-", "linewidth": 0.8, "shrinkA": 0, "shrinkB": 3}
        self.label = axes.annotate(
            name, (0, 0), (10, 0), textcoords="offset points", va="center", color=colour, size=13,
            arrowprops={**leader, "color": colour, "relpos": (0, 0.5)},
        )  # fmt: skip
        self.artists: list[Artist] = [self._dots, self._line, self.label]
        for artist in self.artists:
            artist.set_animated(True)

    def colour(self, colour: str) -> None:
        """Draw in this colour from now on."""
        for artist in self.artists:
            artist.set(color=colour)
        if self.label.arrow_patch is not None:
            self.label.arrow_patch.set_color(colour)

    def draw(self, dots: Points, line: dict[float, float]) -> None:
        pairs = [(x, y) for x, ys in dots.items() for y in ys]
        self._dots.set_data(*zip(*pairs, strict=True))
        xs = sorted(line)
        self._line.set_data(xs, [line[x] for x in xs])
        self.label.xy = (xs[-1], line[xs[-1]])


def begun(panels: Sequence[Panel]) -> Figure:
    """A figure of panels that have no rows yet."""
    figure = Figure(figsize=(4.9 * len(panels), 4.2), dpi=DOTS_PER_INCH)
    figure.set_layout_engine("constrained", rect=(0, 0, 1, 0.96))  # Live's status is above
    for panel, axes in zip(panels, figure.subplots(1, len(panels), squeeze=False)[0], strict=True):
        panel.begin(axes)
        axes.xaxis.label.set_size(13)
        axes.yaxis.label.set_size(13)
        axes.tick_params(labelsize=11)
    return figure


def _coloured(values: Iterable[Any]) -> dict[Any, str]:
    """The colours of series: of numbers in their order, of anything else by their appearance."""
    listed = list(values)
    if len(listed) > 2 and all(type(value) in (int, float) for value in listed):
        steps = (len(ORDERED) - 1) / (len(listed) - 1)
        return {value: ORDERED[round(nth * steps)] for nth, value in enumerate(sorted(listed))}
    return {value: COLOURS[nth % len(COLOURS)] for nth, value in enumerate(listed)}


def _label(column: str, value: object) -> str:
    return f"{column} = {_short(value)}" if isinstance(value, int) else str(value)


def _short(number: int) -> str:
    """1000 as 10³, 4800000 as 4.8·10⁶; numbers without many zeros unchanged."""
    factor, _, exponent = f"{number:e}".partition("e+")
    if number < 1000 or float(f"{float(factor):g}") != float(factor):
        return f"{number:,}"
    power = "10" + str(int(exponent)).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return power if float(factor) == 1 else f"{float(factor):g}·{power}"


def spread(axes: Axes, labels: Sequence[Annotation], gap: float = 18.0) -> None:
    """Move labels apart that would overlap: at least ``gap`` points between two."""
    points = 72 / DOTS_PER_INCH
    height = {label: axes.transData.transform(label.xy)[1] * points for label in labels}
    ordered = sorted(labels, key=height.__getitem__)
    position, lowest = {}, float("-inf")
    for label in ordered:
        position[label] = max(height[label], lowest)
        lowest = position[label] + gap
    # Labels that would leave the axes at the top move down again.
    highest = max([axes.bbox.y1 * points - gap / 2, *height.values()])
    for label in reversed(ordered):
        position[label] = min(position[label], highest)
        highest = position[label] - gap
        label.xyann = (10, position[label] - height[label])
