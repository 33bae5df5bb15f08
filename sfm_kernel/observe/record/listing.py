"""The code that ran: a listing for each cell and file that a code location names."""

from __future__ import annotations

import linecache
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from sfm_kernel.observe.timeline import words

CodeLocation = Mapping[str, Any]
Sources = Callable[[CodeLocation], str | None]
"""Gives the text of the cell or file that a location is in; None if it is not known to belong to
this world."""

LARGEST = 100_000
"""The most characters of a listing."""
MOST = 40
"""The most listings in a recorded file."""

_PACKAGE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
"""This package."""

_SUFFIXES = (".py", ".c", ".cc", ".cpp", ".cxx", ".h", ".hpp")


@dataclass(frozen=True)
class Listing:
    """One cell or file; ``key`` as ``lineId`` in labextension/src/record/data.ts makes it."""

    key: str
    title: str
    lines: list[str]


def key_of(location: CodeLocation) -> str:
    """The key of the cell or file that a location is in."""
    cell = location["cell"]
    return location["file"] if cell is None else f"cell {cell} {location['cell_id'] or ''}"


def listings(
    locations: Iterable[CodeLocation], sources: Sources
) -> tuple[list[Listing], list[str]]:
    """The code at locations: cells by number, then files; and sentences on what was left out.

    If there are too many, earlier locations take precedence.
    """
    first: dict[str, CodeLocation] = {}
    for location in locations:
        first.setdefault(key_of(location), location)
    found: list[tuple[CodeLocation, Listing]] = []
    notes = []
    for key, location in first.items():
        text = sources(location)
        if text is None:
            continue
        if len(found) == MOST:
            notes.append(f"The code of more than {MOST} cells and files ran: only these are shown.")
            break
        title = _title(location)
        if len(text) > LARGEST:
            notes.append(f"Of {title} only the first {words.size(LARGEST)} are shown.")
        found.append((location, Listing(key, title, text[:LARGEST].splitlines())))
    found.sort(key=lambda item: (item[0]["cell"] is None, item[0]["cell"] or 0, item[1].key))
    return [listing for _, listing in found], notes


def lines_of_files(location: CodeLocation) -> str | None:
    """The text of a program's file, or of a cell of this process; None for libraries."""
    file = location["file"]
    if not file.endswith(_SUFFIXES) or _is_library(file):
        return None
    return "".join(linecache.getlines(file)) or None


def _title(location: CodeLocation) -> str:
    cell = location["cell"]
    return os.path.basename(location["file"]) if cell is None else f"cell {cell}"


def _is_library(file: str) -> bool:
    inside = os.path.realpath(file)
    return any(inside.startswith(folder + os.sep) for folder in _libraries())


@cache
def _libraries() -> set[str]:
    import site
    import sysconfig

    paths = sysconfig.get_paths()
    folders = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders |= {site.getusersitepackages(), _PACKAGE}
    return {os.path.realpath(folder) for folder in folders}
