"""Plots of programs in C: speed-up against workers, and the tasks of each worker over time."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sfm_kernel.errors import SFMError
from sfm_kernel.lessons.c import FARM, MATRIX, ONE_WAY, STREAM, TASK
from sfm_kernel.lessons.measure.machine import usable_cores
from sfm_kernel.lessons.pingpong.plots import Bandwidth, Latency
from sfm_kernel.plots import Panel, Row, Speedup, still


class Workers(Speedup):
    """Speed-up against workers, with the ideal line. Columns: workers, seconds and ``by``.

    The master is not counted, since it computes nothing. But if there are more processes than
    cores, and waiting keeps a core busy, the master slows the workers down.
    """

    x = "workers"

    def begin(self, axes: Axes) -> None:
        super().begin(axes)
        axes.set(xlabel="workers", ylabel="speed-up  (time with 1 / time)")


class Farm(Panel):
    """The number of finished tasks against time, a line for each worker of a running farm.

    Columns: worker, task, ended. The axes have room for ``tasks`` tasks and about ``seconds``.
    """

    x, y = "ended", "done"

    def __init__(self, tasks: int, seconds: float, by: str = "worker", **only: object) -> None:
        super().__init__(by, {"what": TASK, **only})
        self.tasks, self.seconds = tasks, seconds
        self._done: dict[object, int] = {}

    def begin(self, axes: Axes) -> None:
        super().begin(axes)
        axes.set(xlabel="time  (s)", ylabel="tasks done")
        axes.set(xlim=(0, self.seconds * 1.25), ylim=(0, self.tasks * 1.05))

    def add(self, row: Row) -> None:
        if row.get("what") == TASK:
            done = self._done[row[self.by]] = self._done.get(row[self.by], 0) + 1
            row = row | {"done": done}
            super().add(row)


def drawn(measured: Sequence[Row]) -> Figure:
    """One figure of all measurements: messages, matrix products, and the task farm.

    Raises:
        SFMError: none of these was measured.
    """
    panels: list[Panel] = []
    sizes = {row["bytes"] for row in measured if row["part"] == "messages"}
    if sizes:
        panels.append(Latency(sizes, only={"part": "messages", "what": ONE_WAY}))
        panels.append(Bandwidth(sizes, only={"part": "messages", "what": STREAM}))
    for part, what in (("matrices", MATRIX), ("farm", FARM)):
        counts = [row["workers"] for row in measured if row["part"] == part]
        if counts:
            only = {"part": part, "what": what}
            panels.append(Workers(max(counts), "mechanism", only, cores=usable_cores()))
    if not panels:
        raise SFMError("only messages, matrices and farm are drawn, and none was measured")
    return still(measured, *panels)
