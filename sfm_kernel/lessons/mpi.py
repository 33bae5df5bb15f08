"""A plot of workers that share the rows of a matrix: which worker did which rows, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from sfm_kernel.plots import COLOURS, DOTS_PER_INCH, QUIET


class Task(NamedTuple):
    """Rows ``first`` … ``last`` - 1, computed by a worker; times in seconds, all by one clock."""

    worker: int
    first: int
    last: int
    start: float
    stop: float


def rows_over_time(runs: Mapping[str, Sequence[Task]]) -> Figure:
    """A rectangle for each task: its rows upwards, its time to the right; one panel for each run.

    Args:
        runs: title -> tasks. The earliest task of each run begins at time 0.
    Raises:
        ValueError: there are no runs, or one has no tasks.
    """
    if not runs or not all(runs.values()):
        raise ValueError("rows_over_time needs runs, each with one task or more")
    figure = Figure(figsize=(5.2 * len(runs), 4.4), dpi=DOTS_PER_INCH, layout="constrained")
    panels = figure.subplots(1, len(runs), sharex=True, sharey=True, squeeze=False)[0]
    workers = sorted({task.worker for tasks in runs.values() for task in tasks})
    colours = {worker: COLOURS[worker % len(COLOURS)] for worker in workers}
    for axes, (title, tasks) in zip(panels, runs.items(), strict=True):
        begin = min(task.start for task in tasks)
        end = max(task.stop for task in tasks)
        for task in tasks:
            corner = ((task.start - begin) * 1e3, task.first)
            width, height = (task.stop - task.start) * 1e3, task.last - task.first
            colour = colours[task.worker]
            axes.add_patch(Rectangle(corner, width, height, color=colour, linewidth=0.5))
        axes.axvline((end - begin) * 1e3, color=QUIET, linestyle=":", linewidth=1.5)
        axes.set_title(f"{title}: {(end - begin) * 1e3:.0f} ms", size=13, loc="left")
        axes.set_xlabel("time  (ms)", size=13)
        axes.spines[["top", "right"]].set_visible(False)
        axes.autoscale_view()
    panels[0].set_ylabel("rows", size=13)
    handles = [Patch(color=colours[worker], label=f"worker {worker}") for worker in workers]
    figure.legend(handles=handles, loc="outside lower center", ncols=8, frameon=False, fontsize=11)
    return figure
