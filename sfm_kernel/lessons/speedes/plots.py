"""Plots of SpeedesComm: what engines do over time, and messages between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from sfm_kernel.lessons.measure.rows import Row
from sfm_kernel.lessons.speedes.steps import (
    LONG_MS,
    OTHERS_MS,
    SHORT_MS,
    STEP,
    STEPS,
    Flight,
    Span,
    predicted,
)
from sfm_kernel.plots import COLOURS, DOTS_PER_INCH, QUIET, Panel

ACTIVITIES = {"work": COLOURS[0], "other work": COLOURS[5], "waiting": "#dddddd"}
"""Activity of an engine -> its colour."""


class StepTime(Panel):
    """The time of a step against other work, for each barrier. Columns: other_ms, step_ms, how.

    The dashed lines are for messages that cost nothing.
    """

    x, y = "other_ms", "step_ms"

    def __init__(
        self,
        engines: int = 4,
        others_ms: Iterable[float] = OTHERS_MS,
        long_ms: float = LONG_MS,
        short_ms: float = SHORT_MS,
        steps: int = STEPS,
    ) -> None:
        super().__init__("how")
        last = max(others_ms) or 1.0
        ideal = [last * tenth / 40 for tenth in range(41)]
        self._ideal = {
            how: {x: predicted(how, engines, steps, long_ms, short_ms, x) for x in ideal}
            for how in STEP
        }

    @classmethod
    def of(cls, measured: Sequence[Row]) -> StepTime:
        """The panel for these rows, with their predictions dashed."""
        panel = cls(others_ms=[row["other_ms"] for row in measured])
        panel._ideal = {how: {} for how in STEP}
        for row in sorted(measured, key=lambda row: row["other_ms"]):
            panel._ideal[row["how"]][row["other_ms"]] = row["predicted_ms"]
        return panel

    def begin(self, axes: Axes) -> None:
        super().begin(axes)
        right = max(max(line) for line in self._ideal.values()) or 1.0
        top = max(max(line.values()) for line in self._ideal.values())
        axes.set(xlabel="other work in a step  (ms)", ylabel="time of a step  (ms)")
        axes.set(xlim=(-0.04 * right, 1.6 * right), ylim=(0, 1.35 * top))
        for colour, line in zip(COLOURS, self._ideal.values(), strict=False):
            axes.plot(list(line), list(line.values()), "--", color=colour, linewidth=1.2)


class Waiting(Panel):
    """The share of time in which engines only wait. Columns: other_ms, waiting_percent, how."""

    x, y = "other_ms", "waiting_percent"

    def __init__(self, others_ms: Iterable[float] = OTHERS_MS) -> None:
        super().__init__("how")
        self._right = max(others_ms) or 1.0

    def begin(self, axes: Axes) -> None:
        super().begin(axes)
        axes.set(xlabel="other work in a step  (ms)", ylabel="waiting  (% of the engines' time)")
        axes.set(xlim=(-0.04 * self._right, 1.6 * self._right), ylim=(-6, 100))


def gantt(runs: Mapping[str, Sequence[Span]]) -> Figure:
    """The activities of every engine, a row for each; runs one below the other, on one time scale.

    Args:
        runs: title -> spans. The earliest span of each run is its time 0.
    """
    figure = Figure(figsize=(9, 0.8 + 1.9 * len(runs)), dpi=DOTS_PER_INCH, layout="constrained")
    panels = figure.subplots(len(runs), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (title, spans) in zip(panels, runs.items(), strict=True):
        begin = min(span.start for span in spans)
        end = max(span.stop for span in spans)
        for span in spans:
            length = (span.stop - span.start) * 1e3
            left = (span.start - begin) * 1e3
            axes.barh(span.node, length, 0.72, left, color=ACTIVITIES[span.what], edgecolor="white")
        nodes = sorted({span.node for span in spans})
        axes.set_yticks(nodes, [f"engine {node}" for node in nodes], size=11)
        axes.invert_yaxis()
        axes.spines[["top", "right"]].set_visible(False)
        axes.axvline((end - begin) * 1e3, color=QUIET, linestyle=":", linewidth=1.5)
        axes.set_title(f"{title}: {(end - begin) * 1e3:.0f} ms", size=13, loc="left")
    panels[-1].set_xlabel("time  (ms)", size=13)
    patches = [Patch(color=colour, label=activity) for activity, colour in ACTIVITIES.items()]
    panels[0].legend(handles=patches, ncols=3, loc="lower right", bbox_to_anchor=(1, 1),
                     frameon=False, fontsize=11)  # fmt: skip
    return figure


def space_time(flights: Sequence[Flight], over: Mapping[int, float]) -> Figure:
    """The messages of one cycle as arrows between the nodes' lines, and when each knew its end.

    Args:
        flights: the messages.
        over: node -> when it knew that nothing more is in transit, by the same clock.
    """
    figure = Figure(figsize=(9, 1.6 + 0.75 * len(over)), dpi=DOTS_PER_INCH, layout="constrained")
    axes = figure.subplots()
    begin = min([flight.sent for flight in flights] or over.values())
    end = max([flight.received for flight in flights] or over.values())

    def ms(moment: float) -> float:
        return (moment - begin) * 1e3

    last = ms(max(over.values())) or 1.0
    for node, known in over.items():
        axes.plot([0, ms(known)], [node, node], color=QUIET, linewidth=1.2, zorder=1)
        axes.plot(ms(known), node, "s", color="black", markersize=9, zorder=3)
    for flight in flights:
        colour = COLOURS[flight.src % len(COLOURS)]
        if flight.src == flight.dest:
            axes.plot(ms(flight.received), flight.dest, "o", color=colour, zorder=3)
            continue
        axes.annotate(
            "",
            (ms(flight.received), flight.dest),
            (ms(flight.sent), flight.src),
            arrowprops={
                "arrowstyle": "-|>",
                "color": colour,
                "shrinkA": 0,
                "shrinkB": 0,
                "linewidth": 1.6,
            },
            zorder=2,
        )
    axes.axvline(ms(end), color=QUIET, linestyle=":", linewidth=1.5)
    axes.set_xlim(-0.02 * last, 1.05 * last)
    axes.set_xlabel("time  (ms)", size=13)
    axes.set_yticks(sorted(over), [f"node {node}" for node in sorted(over)], size=11)
    axes.set_ylim(max(over) + 0.6, -0.6)
    axes.spines[["top", "right"]].set_visible(False)
    after = (max(over.values()) - end) * 1e3
    axes.set_title(
        f"{len(flights)} messages; all know that it is over {after:.1f} ms after the last one",
        size=13,
        loc="left",
    )
    handles = [
        Line2D([], [], color=COLOURS[0], marker=">", label="message, in its sender's colour"),
        Line2D([], [], color=COLOURS[0], marker="o", linestyle="", label="to itself"),
        Line2D([], [], color=QUIET, linestyle=":", label="the last is received"),
        Line2D([], [], color="black", marker="s", linestyle="", label="None: it is over"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=11)
    return figure
