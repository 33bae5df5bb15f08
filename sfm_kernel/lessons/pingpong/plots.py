"""Plots of ping-pong: latency and bandwidth against size, with the paper's curves dashed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from matplotlib.axes import Axes

from sfm_kernel.lessons.pingpong.messages import SIZES
from sfm_kernel.plots import COLOURS, Panel

Curves = Mapping[str, Mapping[int, float]]
"""Series -> x -> y."""


class _Curves(Panel):
    """A quantity against bytes, log-log, a line for each mechanism.

    Args:
        sizes: the measured sizes, in bytes.
        then: the curves of 2007, dashed. They have the colours of the first series, so measure
            their mechanisms first and in their order.
        only: as in ``Panel``.
    """

    x = "bytes"
    label: ClassVar[str]
    limits: ClassVar[tuple[float, float]]
    """Limits of y, for messages of at most ``SIZES["1 MB"]``."""
    limits_beyond: ClassVar[tuple[float, float]]
    above: ClassVar[bool]
    """Whether the label "2007" is above its curves, or below."""

    def __init__(
        self,
        sizes: Iterable[int],
        then: Curves | None = None,
        only: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__("mechanism", only)
        self.sizes, self.then = sorted(sizes), then or {}

    def begin(self, axes: Axes) -> None:
        super().begin(axes)
        first, last = self.sizes[0], self.sizes[-1]
        room = max(last / first, 64)  # space on the right for the labels of the lines
        limits = self.limits if last <= SIZES["1 MB"] else self.limits_beyond
        axes.set(xlabel="size of a message", ylabel=self.label)
        axes.set(xscale="log", yscale="log", xlim=(first / 2, last * room**0.62), ylim=limits)
        ticks = {size: name for name, size in SIZES.items() if first <= size <= last}
        axes.set_xticks(list(ticks), list(ticks.values()), rotation=45)
        axes.minorticks_off()
        for colour, curve in zip(COLOURS, self.then.values(), strict=False):
            axes.plot(list(curve), list(curve.values()), "--", color=colour, linewidth=1.5)
        if self.then:
            ends = [max(curve.items()) for curve in self.then.values()]
            if self.above:
                self.note("2007", max(ends), (-28, 5))
            else:
                self.note("2007", min(ends), (-16, -14))


class Latency(_Curves):
    """Microseconds one way. Columns: mechanism, bytes, latency_us."""

    y = "latency_us"
    label = "latency  (µs one way)"
    limits, limits_beyond = (0.5, 1e4), (0.5, 1e6)
    above = True


class Bandwidth(_Curves):
    """Megabits per second. Columns: mechanism, bytes, bandwidth_mbit_s."""

    y = "bandwidth_mbit_s"
    label = "bandwidth  (Mbit/s)"
    limits, limits_beyond = (0.1, 3e6), (0.1, 3e6)
    above = False
