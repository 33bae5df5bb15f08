"""An output of a cell that is replaced; and how far something is, as dots that turn green."""

from __future__ import annotations

from typing import Any

from IPython.display import DisplayHandle, display

_MOST = 32
"""Parts up to which each is a dot."""

_GREEN, _RED = "#2e9e4f", "#d32f2f"


class Output:
    """One output of a cell: what it shows replaces what it has shown before."""

    def __init__(self) -> None:
        self._handle: DisplayHandle | None = None

    def show(self, shown: Any, raw: bool = False) -> None:
        """Show an object; or, with ``raw``, data by their MIME types."""
        if self._handle is None:
            self._handle = display(shown, raw=raw, display_id=True)
        else:
            self._handle.update(shown, raw=raw)


class Progress:
    """How many of ``total`` parts are done; see ``end`` for what remains.

    Args:
        shell: IPython's. In a terminal, which would show each state on a line of its own, only the
            end is shown.
        what: the parts, in the plural.
    """

    def __init__(self, shell: Any, total: int, what: str) -> None:
        self._total, self._what = total, what
        self._replaces = hasattr(shell, "kernel")
        self._output = Output()

    def __call__(self, done: int, failed: bool = False) -> None:
        """Show that so many parts are done, the last one with a failure."""
        if not self._replaces:
            return
        text = f"{done} of {self._total} {self._what}"
        if self._total > _MOST:
            self._output.show({"text/plain": text}, raw=True)
            return
        good, bad = "●" * (done - failed), "✗" * failed
        rest = "○" * (self._total - done)
        html = (
            f'<span aria-hidden="true" style="letter-spacing:2px"><span style="color:{_GREEN}">'
            f'{good}</span><span style="color:{_RED}">{bad}</span>{rest}</span> {text}'
        )
        shown = {"text/plain": f"{good}{bad}{rest} {text}", "text/html": html}
        self._output.show(shown, raw=True)

    def end(self, text: str) -> None:
        """Show this instead."""
        if self._replaces:
            self._output.show({"text/plain": text}, raw=True)
        else:
            print(text)
