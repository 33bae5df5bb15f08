"""Docstrings are written to be read in an editor; napoleon and reStructuredText want this instead.

Blocks: until it is there; Stop         **Blocks:** until it is there; Stop ends it.
    ends it.
name     what it is                     a literal block, of two lines or more
Every call may raise                    a list
    PeerLost: ...
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from sphinx.application import Sphinx

LABELLED = re.compile(r"((?:Blocks|Cost|Order|Raises|Source)(?:, [A-Z][a-z]+)*): (\S.*)")
SECTION = re.compile(r"(Args|Attributes|Raises|Example|Examples):")
COLUMNS = re.compile(r" *[^\s>].*\S {2,}\S")
ERRORS = re.compile(r"[A-Z]\w+(, \w+)*: ")


def depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def normalized(lines: list[str]) -> list[str]:
    """The lines of a docstring, with blank lines and marks where they are needed."""
    found: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        paragraph = end_of(lines, at, partial(is_as_deep, line))
        below = end_of(lines, at + 1, is_indented)
        is_table = sum(COLUMNS.match(one) is not None for one in lines[at:paragraph])
        labelled = LABELLED.fullmatch(line)
        end = at + 1
        if paragraph > at + 1 and 2 * is_table > paragraph - at:
            table = ["   " + one.lstrip() for one in lines[at:paragraph]]
            end, new = paragraph, ["", ".. code-block:: text", "", *table, ""]
        elif labelled:
            # What is said goes on in lines that are indented, or else until the paragraph ends.
            end = below if below > at + 1 else end_of(lines, at + 1, is_same_sentence)
            words = " ".join([labelled[2], *(one.strip() for one in lines[at + 1 : end])])
            new = ["", f"**{labelled[1]}:** {words}", ""]
        elif line == "Returns:":
            words = " ".join(one.strip() for one in lines[at + 1 : below])
            end, new = below, ["", f"**Returns:** {words}", ""]
        elif line == "Raises:":
            end, new = below, ["", line, *complete(lines[at + 1 : below]), ""]
        elif SECTION.fullmatch(line):
            end, new = below, ["", *lines[at:below], ""]
        elif line and below > at + 1 and not line.startswith((" ", ">>>")) and line[-2:] != "::":
            end, new = below, [line, "", *listed(lines[at + 1 : below]), ""]
        else:
            new = [line]
        found += new
        at = end
    return found


def is_as_deep(first: str, line: str) -> bool:
    return line != "" and depth(line) == depth(first)


def is_indented(line: str) -> bool:
    return line.startswith("    ")


def is_same_sentence(line: str) -> bool:
    begins = LABELLED.fullmatch(line) or SECTION.fullmatch(line) or line == "Returns:"
    return line != "" and not begins


def end_of(lines: list[str], at: int, holds: Callable[[str], bool]) -> int:
    """Where the lines from ``at`` on end of which ``holds`` is true."""
    while at < len(lines) and holds(lines[at]):
        at += 1
    return at


def complete(entries: list[str]) -> list[str]:
    """Entries of "Raises", of which one that names no error continues the one before."""
    least = min(map(depth, entries), default=0)
    return [
        one if nth == 0 or depth(one) > least or ERRORS.match(one.strip()) else "    " + one
        for nth, one in enumerate(entries)
    ]


def listed(lines: list[str]) -> list[str]:
    """Indented entries, whose continuation lines are indented more, as a list."""
    entries: list[str] = []
    least = min(map(depth, lines))
    for line in lines:
        if depth(line) == least:
            entries.append(f"* {line.strip()}")
        else:
            entries[-1] += " " + line.strip()
    return entries


def process(_app: object, what: str, *arguments: Any) -> None:
    lines = arguments[-1]
    lines[:] = normalized(lines)
    if what in ("attribute", "data", "property"):
        lines.insert(0, "")  # or napoleon takes what stands before a colon for a type


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", process, priority=100)  # before napoleon
    return {"parallel_read_safe": True}
