"""Plots of the dot product and of conjugate gradients: times, residuals, the solution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sfm_kernel.plots import DOTS_PER_INCH, QUIET, Panel

if TYPE_CHECKING:
    from sfm_kernel.lessons.dot.cg import Floats


class _AgainstEngines(Panel):
    """A quantity against the number of engines, a line for each algorithm."""

    x = "engines"

    def __init__(
        self, engines: int, by: str = "algorithm", only: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(by, only)
        self.engines = engines

    def begin(self, axes: Axes) -> None:
        super().begin(axes)
        top = max(self.engines, 2)
        # Space on the right for the names of algorithms.
        axes.set(xlabel="engines", xlim=(1 - 0.05 * top, 1 + 2.1 * (top - 1)))
        axes.set_xticks(range(1, top + 1, -(-top // 8)))


class DotTime(_AgainstEngines):
    """Seconds of one dot product. Columns: engines, seconds, algorithm."""

    y = "seconds"

    def begin(self, axes: Axes) -> None:
        super().begin(axes)
        axes.set(ylabel="time of one dot product", yscale="log", ylim=(1e-6, 2e-2))
        ticks = {1e-6: "1 µs", 1e-5: "10 µs", 1e-4: "100 µs", 1e-3: "1 ms", 1e-2: "10 ms"}
        axes.set_yticks(list(ticks), list(ticks.values()))
        axes.minorticks_off()
        if "length" in self.only:
            self.note(f"{self.only['length']:,} elements", (1, 1e-6), (0, 6))


class Share(_AgainstEngines):
    """The share of the time that is communication. Columns: engines, share, algorithm."""

    y = "share"

    def begin(self, axes: Axes) -> None:
        super().begin(axes)
        axes.set(ylabel="communication  (share of the time)", ylim=(0, 1.05))
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])


class Residual(Panel):
    """The residual against iterations. Columns: iteration, residual and ``by``.

    Args:
        iterations: the length of the axis.
        tolerance: the residual at which the solver stops; a dotted line.
    """

    x, y = "iteration", "residual"

    def __init__(
        self,
        iterations: int,
        tolerance: float,
        by: str = "engines",
        only: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(by, only)
        self.iterations, self.tolerance = iterations, tolerance

    def begin(self, axes: Axes) -> None:
        super().begin(axes)
        axes.set(xlabel="iteration", ylabel="residual  (relative)", yscale="log")
        axes.set(xlim=(0, 1.45 * self.iterations), ylim=(self.tolerance / 30, 100))
        axes.minorticks_off()
        ends = [0, self.iterations], [self.tolerance, self.tolerance]
        axes.plot(*ends, linestyle=":", color=QUIET, linewidth=1.5)
        name = f"{self.tolerance:g}".replace("e-0", "e-")
        self.note(f"tolerance {name}", (0, self.tolerance), (6, -14))


def solution(u: Floats, shares: Sequence[range]) -> Figure:
    """The solution on the square, and the rows of the grid that each engine has computed.

    Args:
        u: shape (m, m), y by row.
        shares: for each engine its rows, counted from 0.
    """
    figure = Figure(figsize=(5.6, 4.6), dpi=DOTS_PER_INCH, layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(u, origin="lower", extent=(0, 1, 0, 1), cmap="viridis")
    figure.colorbar(image, ax=axes, label="u(x, y)")
    for engine, share in enumerate(shares):
        first, last = share.start / len(u), share.stop / len(u)
        if engine:
            axes.axhline(first, color="white", linewidth=1.5)
        axes.text(0.02, (first + last) / 2, f"engine {engine}", color="white", va="center", size=12)
    axes.set(xlabel="x", ylabel="y")
    axes.set_title(f"{u.shape[1]} × {len(u)} points on {len(shares)} engines", size=13)
    return figure
