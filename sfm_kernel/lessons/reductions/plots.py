"""Plots of reductions: time against processes, two laws of growth, and the model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Annotation

from sfm_kernel.lessons.measure.rows import Row, grouped
from sfm_kernel.lessons.pingpong.messages import size_of
from sfm_kernel.lessons.reductions.fit import BACK_TO_BACK, LAWS, LogGP, fit
from sfm_kernel.plots import COLOURS, DOTS_PER_INCH, MARKERS, QUIET, Panel, spread

STYLES = {"log2": "--", "linear": ":"}
"""Law -> line style."""


class Growth(Panel):
    """Microseconds of a reduction against processes, log-log, a line for each algorithm.

    Columns: transport, bytes, algorithm, processes, us.

    Args:
        transport, nbytes: select the rows to draw.
        processes: the measured numbers of processes.
        cores: the number of this machine's cores, marked by a line.
        limits: limits of y.
        by, only: as in ``Panel``; ``only`` selects rows further.
    """

    x, y = "processes", "us"

    def __init__(
        self,
        transport: str,
        processes: Iterable[int],
        *,
        nbytes: int = 8,
        cores: float | None = None,
        limits: tuple[float, float] = (3, 1e6),
        by: str = "algorithm",
        only: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(by, {"transport": transport, "bytes": nbytes, **(only or {})})
        self.transport, self.nbytes = transport, nbytes
        self.about = list(map(str, (only or {}).values()))
        self.processes, self.cores, self.limits = sorted(processes), cores, limits

    def begin(self, axes: Axes) -> None:
        super().begin(axes)
        first, last = self.processes[0], self.processes[-1]
        room = max(last / first, 4) ** 0.95  # space on the right for the labels of the lines
        title = ", ".join([*self.about, self.transport])
        axes.set(xlabel="processes", ylabel=f"{title}: µs for {size_of(self.nbytes)}")
        axes.set(xscale="log", yscale="log", xlim=(first / 1.2, last * room), ylim=self.limits)
        axes.set_xticks(self.processes, [str(n) for n in self.processes])
        axes.minorticks_off()
        if self.cores is not None and self.cores < last:
            axes.axvline(self.cores, linestyle=":", color=QUIET, linewidth=1.5)
            self.note(f"cores: {self.cores:g}", (self.cores, self.limits[1]), (5, -12))

    def add(self, row: Row) -> None:
        if row["algorithm"] != BACK_TO_BACK:  # not a reduction
            super().add(row)


def laws(listed: Sequence[Row], transport: str, nbytes: int = 8) -> Figure:
    """For each algorithm the medians, and the two laws fitted to them.

    Args:
        listed: rows of ``reductions.summary``; lines of three points and more are drawn.
    """
    selected = [row for row in listed if (row["transport"], row["bytes"]) == (transport, nbytes)]
    lines = {
        key[0]: {row["processes"]: row["us"] for row in group}
        for key, group in grouped(selected, ("algorithm",)).items()
    }
    lines = {algorithm: times for algorithm, times in lines.items() if len(times) > 2}
    count = 1 if len(lines) <= 4 else 2
    columns = -(-max(len(lines), 1) // count)
    figure = Figure(figsize=(3.3 * columns, 3.0 * count), dpi=DOTS_PER_INCH)
    figure.set_layout_engine("constrained", hspace=0.08)
    grid = figure.subplots(count, columns, squeeze=False)
    for axes in grid.flat[len(lines) :]:
        axes.set_axis_off()
    for index, (axes, (algorithm, times)) in enumerate(zip(grid.flat, lines.items(), strict=False)):
        _both_laws(axes, times, index)
        axes.set_title(algorithm, color=COLOURS[index % len(COLOURS)], size=13)
    for axes in grid[:, 0]:
        axes.set_ylabel(f"{transport}: µs", size=12)
    for axes in grid[-1]:
        axes.set_xlabel("processes", size=12)
    return figure


def _both_laws(axes: Axes, times: Mapping[int, float], index: int) -> None:
    colour, marker = COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]
    axes.grid(color="#dddddd", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.plot(list(times), list(times.values()), marker, color=colour, markersize=7)
    first, last = min(times), max(times)
    xs = [first + (last - first) * step / 60 for step in range(61)]
    for law in LAWS:
        found = fit(law, times)
        label = f"{law}: ±{found.residual:,.0f} µs ({100 * found.relative:.0f} %)"
        ys = [found.at(x) for x in xs]
        axes.plot(xs, ys, STYLES[law], color="black", linewidth=1.3, label=label)
    axes.set(xlim=(0, last * 1.05), ylim=(0, 1.45 * max(times.values())))
    axes.set_xticks(list(times))
    axes.legend(loc="upper left", frameon=False, fontsize=10)


class Model(Panel):
    """The model up to many processes, dashed, and measured medians, as dots; log-log.

    Dots are full if every process had a core, as the model assumes, and empty if processes took
    turns. Columns: transport ("zmq" is drawn), bytes, algorithm, processes, us.

    Args:
        model: the model with its prices.
        nbytes: the size of the reductions to draw.
        cores: the number of cores of the measured machine.
        upto: the largest number of processes.
    """

    x, y = "processes", "us"

    def __init__(
        self, model: LogGP, *, nbytes: int = 8, cores: float = math.inf, upto: int = 1 << 20
    ) -> None:
        super().__init__("algorithm", {"transport": "zmq", "bytes": nbytes})
        self.model, self.nbytes, self.cores, self.upto = model, nbytes, cores, upto
        self._styles = dict(
            zip(model.algorithms(), zip(COLOURS, MARKERS, strict=True), strict=False)
        )
        self._dots: dict[tuple[str, bool], Line2D] = {}
        self._labels: list[Annotation] = []

    def begin(self, axes: Axes) -> None:
        super().begin(axes)
        powers = [2**k for k in range(1, self.upto.bit_length())]
        every = []
        for algorithm, (colour, marker) in self._styles.items():
            ys = [self.model.us(algorithm, p, self.nbytes) for p in powers]
            every += ys
            axes.plot(powers, ys, "--", color=colour, linewidth=1.8)
            style: dict[str, Any] = {"color": colour, "size": 13, "va": "center", "animated": True}
            position: dict[str, Any] = {
                "xy": (powers[-1], ys[-1]),
                "xytext": (10, 0),
                "textcoords": "offset points",
            }
            self._labels.append(axes.annotate(algorithm, **position, **style))
            for shared in (False, True):
                (dots,) = axes.plot([], [], marker, color=colour, markersize=7, animated=True)
                if shared:
                    dots.set_markerfacecolor("white")
                self._dots[algorithm, shared] = dots
        axes.set(xscale="log", yscale="log", xlim=(1.4, self.upto**1.65))
        axes.set_ylim(min(every) / 3, max(every) * 30)
        axes.set(xlabel="processes", ylabel=f"zmq: µs for {size_of(self.nbytes)}")
        ticks = [2**k for k in (1, 4, 8, 12, 16, 20) if 2**k <= self.upto]
        axes.set_xticks(ticks, [f"$2^{{{p.bit_length() - 1}}}$" for p in ticks])
        axes.minorticks_off()
        self.note("dashed: model;  dots: measured", (1.4, max(every) * 30), (6, -14))

    def add(self, row: Row) -> None:
        if row["algorithm"] in self._styles:
            super().add(row)

    def moving(self) -> list[Artist]:
        for (algorithm, shared), dots in self._dots.items():
            points = self._points.get(algorithm, {})
            medians = {p: median(us) for p, us in points.items() if (p > self.cores) == shared}
            dots.set_data(list(medians), list(medians.values()))
        spread(self.axes, self._labels)
        return [*self._dots.values(), *self._labels]
