"""Plots of chunked transfers: throughput and the receiver's memory against chunk size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from sfm_kernel.lessons.measure.rows import Row
from sfm_kernel.plots import COLOURS, Panel

PAGE = 4096
"""Bytes of a page, the kernel's unit of memory; a smaller value is drawn as one page."""


class _Chunks(Panel):
    """A quantity against the size of a chunk, a line for each window and for one send.

    Args:
        chunks: the measured sizes, in bytes. One send has no chunk size: its line is horizontal.
        only: as in ``Panel``.
    """

    x = "chunk_bytes"
    label: ClassVar[str]

    def __init__(self, chunks: Iterable[int], only: Mapping[str, object] | None = None) -> None:
        super().__init__("protocol", only)
        self.chunks = sorted(chunks)

    def begin(self, axes: Axes) -> None:
        super().begin(axes)
        first, last = self.chunks[0], self.chunks[-1]
        room = max(last / first, 16)  # space on the right for the labels of the lines
        axes.set(xlabel="size of a chunk", ylabel=self.label)
        axes.set(xscale="log", xlim=(first / 1.6, last * room**0.45))
        axes.set_xticks(self.chunks, [size(chunk) for chunk in self.chunks], rotation=45)
        axes.minorticks_off()

    def add(self, row: Row) -> None:
        if row[self.y] is None:
            return
        ends = [row["chunk_bytes"]] if row["chunk_bytes"] else [self.chunks[0], self.chunks[-1]]
        for chunk in ends:
            super().add(row | {"chunk_bytes": chunk})


class Throughput(_Chunks):
    """Megabytes per second. Columns: protocol, chunk_bytes, mb_s."""

    y = "mb_s"
    label = "throughput  (MB/s)"

    def begin(self, axes: Axes) -> None:
        super().begin(axes)
        axes.set(yscale="log", ylim=(20, 3e4))
        axes.set_yticks([100, 1_000, 10_000], ["100", "1,000", "10,000"])
        axes.minorticks_off()


class Memory(_Chunks):
    """The receiver's memory beyond its buffer. Columns: protocol, chunk_bytes, peak_bytes.

    The dashed lines, in the colours of the measured ones, are the bytes that a window allows.

    Args:
        windows: the measured windows, in their order.
        nbytes: size of the array.
    """

    y = "peak_bytes"
    label = "receiver's extra memory"

    def __init__(
        self,
        chunks: Iterable[int],
        windows: Iterable[int],
        nbytes: int,
        only: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(chunks, only)
        self.windows, self.nbytes = list(windows), nbytes

    def begin(self, axes: Axes) -> None:
        super().begin(axes)
        axes.set(yscale="log", ylim=(PAGE / 1.6, self.nbytes * 40))
        ticks = [4**k for k in range(6, 16) if 4**k <= 4 * self.nbytes]
        axes.set_yticks(ticks, [size(tick) for tick in ticks])
        axes.yaxis.set_minor_formatter(FuncFormatter(lambda *_: ""))
        axes.minorticks_off()
        left, last = axes.get_xlim()[0], self.chunks[-1]
        for colour, window in zip(COLOURS, self.windows, strict=False):
            ends = [left, min(last, self.nbytes / window)]
            bound = [window * end for end in ends]
            axes.plot(ends, bound, "--", color=colour, linewidth=1.5, scalex=False, scaley=False)
        self.note("dashed: window × chunk", (last, PAGE), (-70, 2))

    def add(self, row: Row) -> None:
        peak = row["peak_bytes"]
        super().add(row | {"peak_bytes": peak if peak is None else max(peak, PAGE)})


def size(nbytes: int) -> str:
    """4096 as "4 kB"."""
    unit, name = (1 << 20, "MB") if nbytes >= 1 << 20 else (1 << 10, "kB")
    return f"{nbytes / unit:g} {name}" if nbytes >= 1024 else f"{nbytes} B"
