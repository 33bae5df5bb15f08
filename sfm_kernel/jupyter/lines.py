"""Finds the cell that a line of code is in: tracebacks and ``%sfm why`` name it, and the panel
jumps to it."""

from __future__ import annotations

import ast
import linecache
from collections import OrderedDict
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from sfm_kernel.endpoint import bystanders, seen
from sfm_kernel.jupyter import death

_MOST_CELLS = 1000
"""Cells that are remembered, since functions of old cells are still called."""

LABEL = "sfm"
"""The key in ipyparallel's label of a task under which a notebook describes the cell."""


named_as_in_notebook = False
"""On an engine: whether code of a notebook's cell is compiled under the name that it has there, for
a debugger."""


class _Code(NamedTuple):
    """Compiled code of a cell; ``before``: the lines of the cell before it."""

    cell: seen.Cell
    before: int
    is_behind_magic: bool


class Lines:
    """The cells that a shell has run, by the file names under which IPython compiles them.

    The lines of such code are numbered as in the notebook's cell: those before it are counted.

    Attributes:
        cell: the number and id of the cell that runs now in a notebook.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._codes: OrderedDict[str, _Code] = OrderedDict()
        self.cell: tuple[int | None, str | None] = None, None
        self._file = ""  # the name of that cell's code
        self._named: tuple[str, str] | None = None  # code, and its name

    def publish(self) -> None:
        """Publish these cells to observers from now on, and in the shell's tracebacks."""
        seen.find_cell = self._cell_of
        compiler = self._shell.compile
        self.withdraw()
        compiler.get_code_name = partial(self._name, compiler.get_code_name)
        compiler.ast_parse = partial(self._parse, compiler.ast_parse)
        compiler.cache = partial(self._cache, compiler.cache)
        compiler.format_code_name = partial(self._format, compiler.format_code_name)

    def withdraw(self) -> None:
        """Undo ``publish`` for the shell's tracebacks."""
        for name in ("get_code_name", "ast_parse", "cache", "format_code_name"):
            vars(self._shell.compile).pop(name, None)

    def note(self, code: str, number: int | None, identity: str | None, before: int = 0) -> str:
        """Remember that this code is a cell's; returns the name under which it is compiled.

        Args:
            number, identity: of the cell.
            before: lines of the cell before the code.
        """
        name: str = self._shell.compile.get_code_name(code, code, 0)
        blank = len(code) - len(code.lstrip())
        lines = before + code[:blank].count("\n")  # IPython removes empty lines
        self._codes[name] = _Code((number, identity, 0), lines, before > 0)
        self._codes.move_to_end(name)
        if len(self._codes) > _MOST_CELLS:
            self._codes.popitem(last=False)
        return name

    def _cell_of(self, file: str) -> seen.Cell | None:
        code = self._codes.get(file)
        return code and code.cell

    def _lines_before(self, file: str) -> int:
        code = self._codes.get(file)
        return code.before if code else 0

    def _name(self, name: Any, raw_code: str, *rest: Any) -> str:
        if self._named is not None and self._named[0] == raw_code:
            return self._named[1]
        return str(name(raw_code, *rest))

    def _parse(self, parse: Any, source: str, filename: str = "<unknown>", *rest: Any) -> ast.AST:
        """Parse code; it begins in the line in which the cell has it."""
        before = self._lines_before(filename)
        try:
            tree: ast.AST = parse(source, filename, *rest)
        except SyntaxError as error:
            error.lineno = error.lineno and error.lineno + before
            error.end_lineno = error.end_lineno and error.end_lineno + before
            raise
        return ast.increment_lineno(tree, before)

    def _cache(self, cache: Any, code: str, *args: Any, **kwargs: Any) -> str:
        """Keep the text of code for tracebacks, with the lines before it."""
        name: str = cache(code, *args, **kwargs)
        size, modified, lines, file = linecache.cache[name]  # type: ignore[misc]
        lines = ["\n"] * self._lines_before(name) + lines
        linecache.cache[name] = size, modified, lines, file
        return name

    def _format(self, format_name: Any, file: str) -> tuple[str, str] | None:
        """The name of code in tracebacks, in two words, if it is a cell's behind a magic."""
        code = self._codes.get(file)
        if code and code.is_behind_magic:
            return "cell", str(code.cell[0])
        name: tuple[str, str] | None = format_name(file)
        return name

    def code(self, number: int | None, identity: str | None) -> str | None:
        """The text of a cell of this notebook; None if another notebook has the cell."""
        if number is None or (number, identity) not in {
            code.cell[:2] for code in self._codes.values()
        }:
            return None
        cells = self._shell.history_manager.input_hist_raw
        return str(cells[number]) if number < len(cells) else None

    def begin_notebook_cell(self, info: Any) -> None:
        """A cell of this notebook is about to run (IPython's event ``pre_run_cell``)."""
        if info.store_history:  # False for code that a front end runs by itself
            # Not execution_count: some versions of IPython raise it before this event, some after.
            self.cell = len(self._shell.history_manager.input_hist_parsed), info.cell_id
            self._file = self.note(info.raw_cell, *self.cell)
            bystanders.begin_cell(self.cell[0])

    def begin_engine_cell(self, info: Any) -> None:
        """A cell that a notebook has sent is about to run on this engine."""
        if label := self.task_label():
            number, before = label.get("cell"), int(label.get("before") or 0)
            self._named = (info.raw_cell, label["file"]) if named_as_in_notebook else None
            file = self.note(info.raw_cell, number, label.get("cell_id"), before)
            bystanders.begin_cell(number)
            death.begin_cell(number, file)

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
        cell = {"cell": number, "cell_id": identity, "file": self._file, "before": before}
        return {LABEL: {**cell, "failed": failed}}
