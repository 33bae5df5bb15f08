"""Finds the cell that a line of code is in: ``%sfm why`` names it, and the panel jumps to it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from sfm_kernel.endpoint import bystanders, seen

_MOST_CELLS = 1000
"""Cells that are remembered, since functions of old cells are still called."""

LABEL = "sfm"
"""The key in ipyparallel's label of a task under which a notebook describes the cell."""


class Lines:
    """The cells that a shell has run, by the file names under which IPython compiles them.

    Attributes:
        cell: the number and id of the cell that runs now in a notebook.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._cells: OrderedDict[str, seen.Cell] = OrderedDict()
        self.cell: tuple[int | None, str | None] = None, None

    def publish(self) -> None:
        """Publish these cells to observers from now on."""
        seen.find_cell = self._cells.get

    def note(self, code: str, cell: seen.Cell) -> None:
        """Remember that this code is a cell's, or the rest of a cell below a magic."""
        name = self._shell.compile.get_code_name(code, code, 0)
        self._cells[name] = cell
        self._cells.move_to_end(name)
        if len(self._cells) > _MOST_CELLS:
            self._cells.popitem(last=False)

    def code(self, number: int | None, identity: str | None) -> str | None:
        """The text of a cell of this notebook; None if another notebook has the cell."""
        if number is None or (number, identity) not in {cell[:2] for cell in self._cells.values()}:
            return None
        cells = self._shell.history_manager.input_hist_raw
        return str(cells[number]) if number < len(cells) else None

    def begin_notebook_cell(self, info: Any) -> None:
        """A cell of this notebook is about to run (IPython's event ``pre_run_cell``)."""
        if info.store_history:  # False for code that a front end runs by itself
            # Not execution_count: some versions of IPython raise it before this event, some after.
            self.cell = len(self._shell.history_manager.input_hist_parsed), info.cell_id
            self.note(info.raw_cell, (*self.cell, 0))
            bystanders.begin_cell(self.cell[0])

    def begin_engine_cell(self, info: Any) -> None:
        """A cell that a notebook has sent is about to run on this engine."""
        if label := self.task_label():
            cell = label.get("cell"), label.get("cell_id"), int(label.get("before") or 0)
            self.note(info.raw_cell, cell)
            bystanders.begin_cell(cell[0])

    def task_label(self) -> Mapping[str, Any]:
        """The notebook's description of the cell that runs on this engine; empty without a cell."""
        parent = self._shell.kernel.get_parent("shell")
        label = parent.get("metadata", {}).get("label")
        description = label.get(LABEL) if isinstance(label, Mapping) else None
        return description if isinstance(description, Mapping) else {}

    def label(self, before: int, failed: int) -> dict[str, Any]:
        """A label that describes the current cell to engines.

        Args:
            before: lines of the cell before the code that the engines get.
            failed: when a cell on these engines last failed or was stopped, see ``mpi/engines.py``.
        """
        number, identity = self.cell
        return {LABEL: {"cell": number, "cell_id": identity, "before": before, "failed": failed}}
