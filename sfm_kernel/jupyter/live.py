"""Plots in a notebook: the bridge between ``sfm_kernel.plots`` and IPython's display."""

from __future__ import annotations

from base64 import b64encode

from IPython.display import DisplayHandle, display
from matplotlib.figure import Figure

from sfm_kernel.plots import Live, Panel, png


def live(*panels: Panel) -> Live:
    """A plot below this cell that is redrawn while rows are added; a context manager.

    The last frame stays in the notebook as a PNG.

    Example:
        >>> with live(Error([10, 1000]), Speedup(4)) as plot:      # doctest: +SKIP
        ...     for row in cpi.rows(home=sfm):
        ...         plot.add(row)
    """
    return Live(*panels, display=_Output())


def show(figure: Figure) -> None:
    """Show a finished figure below this cell, as a PNG."""
    _Output()(png(figure))


class _Output:
    """One output of a cell; each frame replaces the one before."""

    def __init__(self) -> None:
        self._handle: DisplayHandle | None = None

    def __call__(self, frame: bytes) -> None:
        data = {"image/png": b64encode(frame).decode("ascii"), "text/plain": "<plot>"}
        if self._handle is None:
            self._handle = display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)
