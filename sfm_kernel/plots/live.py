"""Plots that are drawn while a benchmark runs.

Drawing must not disturb the measurement. A frame therefore repaints only moving artists over a
stored background (drawing logarithmic axes again takes ten times as long), and ``Live.add`` draws
between two measurements; a thread draws only when a measurement takes long.
"""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Sequence

from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image, ImageColor

from sfm_kernel.plots import COLOURS, ORDERED, QUIET, Panel, Row, begun


class Live:
    """Panels side by side, drawn again while rows come; a context manager.

    Args:
        panels: the panels to draw; every row goes to all of them.
        display: called with each frame, the bytes of a PNG, in the thread that drew it.
        rounds: how often everything is measured, in turns, if rows tell their "round", from 0 on.
            After the first one the plot says how many rows there will be, and about when.
        others: gives the share of the processors, 0 to 1, that other programs have taken since it
            was called last; the finished plot says so if that was more than ``DISTURBING``.

    ``add`` draws if the last frame was begun more than ``EAGER`` seconds ago; a thread draws when
    that was ``LATEST`` seconds ago. The last frame is drawn when the block ends, however it ends.
    If ``display`` raises, drawing ends, and the next ``add`` or the end of the block raises the
    error.
    """

    EAGER, LATEST = 0.10, 0.15
    DISTURBING = 0.1

    def __init__(
        self,
        *panels: Panel,
        display: Callable[[bytes], object],
        rounds: int = 0,
        others: Callable[[], float] | None = None,
    ) -> None:
        self.frames = self.rows = 0
        self._rounds, self._of_first = rounds, 0
        self._is_first = True
        self._others = others
        self._panels, self._display = panels, display
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._failure: BaseException | None = None
        self._started = self._drawn = time.monotonic()
        self._canvas = _Canvas(panels)
        self._pulse = threading.Thread(target=self._keep_drawing, name="sfm-live-plot", daemon=True)
        self._draw()
        self._pulse.start()

    def add(self, row: Row) -> None:
        """Add a row, and draw a frame if one is due."""
        with self._lock:
            if self._failure is not None:
                raise self._failure
            self.rows += 1
            self._is_first = self._is_first and not row.get("round")
            self._of_first += self._is_first
            for panel in self._panels:
                panel.add(row)
            if time.monotonic() - self._drawn > self.EAGER:
                self._draw()

    def close(self) -> None:
        """Draw the last frame and stop; harmless when repeated."""
        if self._done.is_set():
            return
        self._done.set()
        self._pulse.join()
        if self._failure is not None:
            raise self._failure
        self._draw()

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _keep_drawing(self) -> None:
        while not self._done.wait(self.LATEST / 4):
            with self._lock:
                if time.monotonic() - self._drawn > self.LATEST:
                    try:
                        self._draw()
                    except Exception as error:  # noqa: BLE001 - raised by add or close
                        self._failure = error
                        return

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        seconds = self._drawn - self._started
        last = self._done.is_set()
        self._display(self._canvas.frame(self._status(seconds, last), last))
        self.frames += 1

    def _status(self, seconds: float, last: bool) -> str:
        if last:
            share = self._others() if self._others else 0.0
            busy = f"; others took {share:.0%} of the processors" if share > self.DISTURBING else ""
            return f"{self.rows} rows in {seconds:.1f} s{busy}"
        if self._rounds < 2 or not self.rows:
            return f"{self.rows} rows, running for {seconds:.1f} s"
        if self._is_first:
            return f"{self.rows} rows, round 1 of {self._rounds}, running for {seconds:.1f} s"
        total = max(self._of_first * self._rounds, self.rows)
        left = seconds * (total - self.rows) / self.rows
        return f"{self.rows} of {total} rows, {left:.0f} s left"


class _Canvas:
    """A figure of panels whose background is drawn once and stored."""

    def __init__(self, panels: Sequence[Panel]) -> None:
        self._panels = panels
        self._figure = begun(panels)
        self._canvas = FigureCanvasAgg(self._figure)
        self._status = self._figure.text(0.995, 0.985, "", ha="right", va="top", animated=True)
        self._status.set(color=QUIET, size=10)
        self._canvas.draw()
        self._figure.set_layout_engine("none")  # the layout is done; repeating it is slow
        self._background = self._canvas.copy_from_bbox(self._figure.bbox)
        self._palette = _palette()

    def frame(self, status: str, last: bool) -> bytes:
        """The current frame as the bytes of a PNG.

        All frames but the last have few colours, which takes a third of the time and of the bytes.
        (A Jupyter server withholds output beyond 1 MB/s.)
        """
        self._status.set_text(status)
        self._canvas.restore_region(self._background)
        for panel in self._panels:
            for artist in panel.moving():
                artist.draw(self._canvas.renderer)
        self._status.draw(self._canvas.renderer)
        size = self._canvas.get_width_height()
        pixels = self._canvas.buffer_rgba()
        image = Image.frombuffer("RGBA", size, pixels, "raw", "RGBA", 0, 1).convert("RGB")
        if not last:
            image = image.quantize(palette=self._palette, dither=Image.Dither.NONE)
        file = io.BytesIO()
        image.save(file, "png")
        return file.getvalue()


def _palette() -> Image.Image:
    """The palette of plots: each colour in shades up to white."""
    palette = Image.new("P", (1, 1))
    shades = []
    for colour in (*COLOURS, *ORDERED, QUIET):
        for share in range(17):
            rgb = ImageColor.getrgb(colour)
            shades += [round(255 - (255 - value) * share / 16) for value in rgb]
    palette.putpalette(shades)
    return palette
