"""Functions and classes that are sent by value, by cloudpickle, and keep the name of their file.

cloudpickle replaces the name, so that its bytes do not depend on it. But observers and tracebacks
show a line by its file, or by the notebook's cell.
"""

from __future__ import annotations

import io
from collections import ChainMap
from types import CodeType
from typing import Any, ClassVar

import cloudpickle

from sfm_kernel.endpoint import seen


def dumps(value: Any) -> bytes:
    """The value as cloudpickle pickles it, with the names of files and notebook cells."""
    file = io.BytesIO()
    Pickler(file, protocol=5).dump(value)
    return file.getvalue()


def _reduced(code: CodeType) -> tuple[Any, ...]:
    function, args = cloudpickle.Pickler.dispatch_table[CodeType](code)
    named = tuple(code.co_filename if arg == "<dynamic-code>" else arg for arg in args)
    return _rebuilt, (function, named, code.co_filename, seen.cell_of(code.co_filename))


class Pickler(cloudpickle.Pickler):
    """Pickles code with the name of its file."""

    dispatch_table: ClassVar = ChainMap({CodeType: _reduced}, cloudpickle.Pickler.dispatch_table)


def _rebuilt(function: Any, args: Any, file: str, cell: seen.Cell | None) -> Any:
    if cell is not None:
        seen.remote_cells[file] = cell
    return function(*args)
