"""Code locations: lines of programs, as segments and traces have them."""

from __future__ import annotations

import os
import re
from typing import Any

from sfm_kernel._native import native_stack, resolve

CodeLocation = dict[str, Any]
"""See ``schema.json``, "code_location"."""


_CODE = re.compile(r"(\d{0,18})\t([^\t]*)\t(\d{1,18})\t([^\t]*)\t(.*)", re.ASCII | re.DOTALL)


_CELL = re.compile(r"cell(?: (\d{1,18}))?", re.ASCII)
"""The name of a C cell's source in its debug information: with the cell's number, if that is known
when it is compiled."""

_SYSTEM = ("/lib", "/usr/lib")

_MPI4PY = re.compile(r"/mpi4py/[^/]*$")
"""The library that Python calls MPI through: its code says nothing about the program."""


def code_location(code: str | None, line: int) -> CodeLocation | None:
    """The location that a segment describes by the text of its code, and a line.

    The text has, between tabs, the cell's number and id (empty if it is no cell), the number of
    the cell's lines before the code, its function and its file. For a program in C the function is
    an @ and the build id, the file is the binary, and the line is an address in it.
    """
    found = _CODE.fullmatch(code or "")
    if found is None:
        return None
    cell, identity, before, function, file = found.groups()
    if function.startswith("@"):
        return source(file, line, function[1:], int(cell) if cell else None, identity or None)
    return {
        "file": file,
        "line": line + int(before),
        "function": None if function.startswith("<") else function,
        "cell": int(cell) if cell else None,
        "cell_id": identity or None,
    }


def source(
    binary: str,
    address: int,
    build_id: str = "",
    cell: int | None = None,
    cell_id: str | None = None,
) -> CodeLocation | None:
    """The line of source for an address in a binary.

    Args:
        build_id: the prefix that the binary's build id must have.
        cell, cell_id: the cell that the binary was compiled from.
    Returns:
        Without debug information the binary as ``file``, and ``line`` 0. None for the system's
        libraries and mpi4py.
    """
    file, line, function = resolve(binary, address, build_id) or (None, 0, None)
    if (file is None and binary.startswith(_SYSTEM)) or _MPI4PY.search(binary):
        return None
    found = _CELL.fullmatch(os.path.basename(file or ""))
    if found is None:
        cell = cell_id = None
    elif found[1] and int(found[1]) != cell:
        cell, cell_id = int(found[1]), None
    return {
        "file": file or binary,
        "line": line,
        "function": function,
        "cell": cell,
        "cell_id": cell_id,
    }


def native_location(pid: int) -> CodeLocation | None:
    """The line in which a compiled program waits in a system call; None if it is unknown.

    Python is none: its own source says nothing about its program.
    """
    try:
        program = os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return None
    if os.path.basename(program).startswith("python"):
        return None
    frames = (address for binary, address in native_stack(pid) if str(binary) == program)
    located = (source(program, address) for address in frames)
    return next((location for location in located if location and location["line"]), None)


def words(location: CodeLocation | None) -> str:
    """The location for a sentence: "cell 7, line 3"; "" if it is unknown."""
    if location is None:
        return ""
    function = f" ({location['function']})" if location["function"] else ""
    cell, file = location["cell"], os.path.basename(location["file"])
    line = f", line {location['line']}" if location["line"] else ""
    return f"{file if cell is None else f'cell {cell}'}{line}{function}"


def in_line(location: CodeLocation | None) -> str:
    """The location with its preposition, " in a.c, line 3"; "" if the line is unknown."""
    return f" in {words(location)}" if location and location["line"] else ""
