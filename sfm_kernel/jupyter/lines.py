"""Which cell a line of code stands in: ``%sfm why`` names it, and the panel goes there."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from sfm_kernel.endpoint import bystanders, seen

_KEPT = 1000
"""Cells that are remembered: functions of old ones are still called."""

LABEL = "sfm"
"""Under this key a notebook tells engines about a cell, in ipyparallel's label of the task."""


class Lines:
    """The cells that a shell has run, by the names of the files that IPython compiles them as.

    Attributes:
        cell: the number and id of the cell that runs now in a notebook.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._cells: OrderedDict[str, seen.Cell] = OrderedDict()
        self.cell: tuple[int | None, str | None] = None, None

    def publish(self) -> None:
        """From now on observers are told of these cells."""
        seen.find_cell = self._cells.get

    def note(self, code: str, cell: seen.Cell) -> None:
        """This code is a cell's, or what a magic has left of it."""
        name = self._shell.compile.get_code_name(code, code, 0)
        self._cells[name] = cell
        self._cells.move_to_end(name)
        if len(self._cells) > _KEPT:
            self._cells.popitem(last=False)

    def code(self, number: int | None, identity: str | None) -> str | None:
        """The text of a cell of this notebook; None of another notebook's."""
        if number is None or (number, identity) not in {one[:2] for one in self._cells.values()}:
            return None
        cells = self._shell.history_manager.input_hist_raw
        return str(cells[number]) if number < len(cells) else None

    def of_notebook(self, info: Any) -> None:
        """A cell of this notebook is about to run (IPython's event ``pre_run_cell``)."""
        if info.store_history:  # not what a front end asks for by itself
            # Not execution_count: whether that has been raised by now depends on IPython's version.
            self.cell = len(self._shell.history_manager.input_hist_parsed), info.cell_id
            self.note(info.raw_cell, (*self.cell, 0))
            bystanders.begin_cell(self.cell[0])

    def of_engine(self, info: Any) -> None:
        """A cell that a notebook has sent is about to run here."""
        if told := self.told():
            cell = told.get("cell"), told.get("cell_id"), int(told.get("before") or 0)
            self.note(info.raw_cell, cell)
            bystanders.begin_cell(cell[0])

    def told(self) -> Mapping[str, Any]:
        """What a notebook has told about the cell that runs in its engine; empty if it is none."""
        parent = self._shell.kernel.get_parent("shell")
        label = parent.get("metadata", {}).get("label")
        told = label.get(LABEL) if isinstance(label, Mapping) else None
        return told if isinstance(told, Mapping) else {}

    def label(self, before: int, failed: int) -> dict[str, Any]:
        """What tells engines which cell it is.

        Args:
            before: its lines in front of their code.
            failed: when one on these engines was last stopped or failed, see ``mpi/engines.py``.
        """
        number, identity = self.cell
        about = {"cell": number, "cell_id": identity, "before": before, "failed": failed}
        return {LABEL: about}
