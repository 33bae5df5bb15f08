"""Plots in a notebook: the bridge between ``sfm_kernel.plots`` and IPython's display."""

from __future__ import annotations

from base64 import b64encode

from matplotlib.figure import Figure

from sfm_kernel.jupyter.progress import Output
from sfm_kernel.lessons.measure.machine import Others
from sfm_kernel.plots import Panel, png
from sfm_kernel.plots.live import Live

# A plot is light. In a dark theme the page inverts it, but for its hues: that needs no second
# drawing, and follows a user who changes the theme.
_DARK = "invert(.92) hue-rotate(180deg)"
_STYLE = (
    f"[data-jp-theme-light=false] .sfm-plot,.vscode-dark .sfm-plot,"
    f"[data-theme=dark] .sfm-plot{{filter:{_DARK}}}"
)


def live(*panels: Panel, rounds: int = 0) -> Live:
    """A plot below this cell that is redrawn while rows are added; a context manager.

    The last frame stays in the notebook as a PNG, and says whether other programs have disturbed
    what was measured.

    Args:
        rounds: how often everything is measured; the plot then says how long that still takes.

    Example:
        >>> with live(Error([10, 1000]), Speedup(4), rounds=5) as plot:   # doctest: +SKIP
        ...     for row in cpi.rows(home=sfm, repeat=5):
        ...         plot.add(row)
    """
    return Live(*panels, display=_Output(), rounds=rounds, others=Others().share)


def show(figure: Figure) -> None:
    """Show a finished figure below this cell, as a PNG."""
    _Output()(png(figure))


class _Output:
    """One output of a cell; each frame replaces the one before."""

    def __init__(self) -> None:
        self._output = Output()

    def __call__(self, frame: bytes) -> None:
        image = b64encode(frame).decode("ascii")
        shown = f'<img class="sfm-plot" alt="plot" src="data:image/png;base64,{image}"/>'
        data = {
            "text/html": f"<style>{_STYLE}</style>{shown}",
            "image/png": image,
            "text/plain": "<plot>",
        }
        self._output.show(data, raw=True)
