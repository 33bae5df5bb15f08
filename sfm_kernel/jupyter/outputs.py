"""``%sfm output``: what engines have printed in their last cell, shown again.

A browser that reloads its page while a cell runs loses what the cell prints meanwhile. ipyparallel
keeps the texts of each cell with its result, in the notebook's kernel; this module keeps the
result of each engine's last cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from IPython.core.error import UsageError

from sfm_kernel.errors import UnknownName

if TYPE_CHECKING:
    from sfm_kernel.jupyter.cell import CellResult
    from sfm_kernel.jupyter.home import Home

MOST = 100_000
"""Characters shown of what an engine has printed: the last ones."""


class _LastCell(NamedTuple):
    cell: int | None
    result: CellResult
    child: Any  # ipyparallel's future of this engine's answer


class Outputs:
    """The last cell of each engine that has run cells of this notebook, by the engine's name."""

    def __init__(self) -> None:
        self._last: dict[str, _LastCell] = {}

    def keep(self, result: CellResult, cell: int | None) -> CellResult:
        """Keep the result of a cell that has been sent to its engines; returns it."""
        for name, child in zip(result.engine_id, result._children, strict=True):
            self._last[name] = _LastCell(cell, result, child)
        return result

    def names(self) -> list[str]:
        """The names of the engines that have run a cell, numbers first."""
        return sorted(self._last, key=lambda name: (not name.isdecimal(), name.zfill(20)))

    def text(self, name: str) -> str:
        """What an engine has printed in its last cell, and the error that has ended the cell."""
        cell, result, child = self._last[name]
        printed: Mapping[str, Any] = child.output.metadata
        failure = result.failures.of(name)
        parts = {"stdout": printed["stdout"], "stderr": printed["stderr"]}
        parts["error"] = failure and (failure.traceback or failure.title)
        where = "" if cell is None else f", cell {cell}"
        runs = "" if child.done() else ", still running"
        lines = [
            f"[{kind}:{name}{where}{runs}]\n{_end_of(text)}" for kind, text in parts.items() if text
        ]
        return "\n".join(lines or [f"[{name}{where}{runs}] has printed nothing"])


def output(home: Home, words: Sequence[str]) -> None:
    """Print what engines have printed since the beginning of their last cell.

    Args:
        words: engines, also those that have ended; empty for all.
    Raises:
        UsageError: a word names no engine, or no cell has run.
    """
    kept = home.outputs.names()
    if not kept:
        raise UsageError("%sfm output: no cell has run on the engines yet: `%%sfm` runs one")
    for name in _chosen(home, words, kept) if words else kept:
        print(home.outputs.text(name))


def _chosen(home: Home, words: Iterable[str], kept: Sequence[str]) -> list[str]:
    found: list[str] = []
    for word in ",".join(words).split(","):
        try:  # an engine that has ended is not among the living ones that ``resolve`` knows
            found += [word] if word in kept else [str(one.name) for one in home.resolve([word])]
        except UnknownName:
            raise UsageError(
                f"%sfm output: no engine is called {word}. Known: {', '.join(kept)}"
            ) from None
    if silent := [name for name in found if name not in kept]:
        raise UsageError(f"%sfm output: {', '.join(silent)} has run no cell of this notebook yet")
    return list(dict.fromkeys(found))


def _end_of(text: str) -> str:
    """The last characters of a text; the first line says if there were more."""
    if len(text) > MOST:
        text = f"… the last {MOST} of {len(text)} characters:\n{text[-MOST:]}"
    return text.removesuffix("\n")
