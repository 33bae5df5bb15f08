"""Lines of programs, as they stand in segments and traces."""

from __future__ import annotations

import os
import re
from typing import Any

Place = dict[str, Any]
"""See ``schema.json``, "place"."""


_CODE = re.compile(r"(\d{0,18})\t([^\t]*)\t(\d{1,18})\t([^\t]*)\t(.*)", re.ASCII | re.DOTALL)


def place(code: str | None, line: int) -> Place | None:
    """The place that a segment describes: the text of its code, and a line.

    The text has, between tabs, the cell's number and id (empty where it is no cell), how many lines
    of the cell stand before the code, its function and its file.
    """
    found = _CODE.fullmatch(code or "")
    if found is None:
        return None
    cell, identity, before, function, file = found.groups()
    return {
        "file": file,
        "line": line + int(before),
        "function": None if function.startswith("<") else function,
        "cell": int(cell) if cell else None,
        "cell_id": identity or None,
    }


def words(where: Place | None) -> str:
    """Where that is, for a sentence: "cell 7, line 3"; "" where nothing is known."""
    if where is None:
        return ""
    function = f" ({where['function']})" if where["function"] else ""
    if where["cell"] is not None:
        return f"cell {where['cell']}, line {where['line']}{function}"
    return f"{os.path.basename(where['file'])}, line {where['line']}{function}"
