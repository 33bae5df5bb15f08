"""Docstrings are written to be read in an editor; napoleon and reStructuredText want this instead.

Blocks: until it is there; Stop         **Blocks:** until it is there; Stop ends it.
    ends it.
name     what it is                     a literal block, of two lines or more
Every call may raise                    a list
    PeerLost: ...
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

LABELLED = re.compile(r"([A-Z][a-z]+(?:, [A-Z][a-z]+)*): (\S.*)")
SECTION = re.compile(r"(Args|Arguments|Attributes|Raises|Returns|Yields|Example|Examples):")
COLUMNS = re.compile(r" *[^\s>].*\S {2,}\S")


def depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def normalized(lines: list[str]) -> list[str]:
    """The lines of a docstring, with blank lines and marks where they are needed."""
    found: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        paragraph = at
        while (
            paragraph < len(lines) and lines[paragraph] and depth(lines[paragraph]) == depth(line)
        ):
            paragraph += 1
        columns = [COLUMNS.match(one) is not None for one in lines[at:paragraph]]
        if len(columns) > 1 and 2 * sum(columns) > len(columns):
            found += ["", "::", "", *("    " + one.lstrip() for one in lines[at:paragraph]), ""]
            at = paragraph
            continue
        end = at + 1
        while end < len(lines) and lines[end].startswith("    "):
            end += 1
        below = [one.strip() for one in lines[at + 1 : end]]
        labelled = LABELLED.fullmatch(line)
        if SECTION.fullmatch(line):
            found += ["", line]
        elif labelled and (below or at + 1 == len(lines) or labelled[1] in ("Order", "Source")):
            words = [labelled[2], *below]
            found += ["", f"**{labelled[1]}:** {' '.join(words)}", ""]
            at = end
            continue
        elif line and not line.startswith((" ", ">>>")) and below and not line.endswith("::"):
            found += [line, "", *listed(lines[at + 1 : end]), ""]
            at = end
            continue
        elif SECTION.fullmatch(_before(found)) is None and _ends_section(found, line):
            found += ["", line]
        else:
            found.append(line)
        at += 1
    return found


def listed(lines: list[str]) -> list[str]:
    """Indented entries, whose continuation lines are indented more, as a list."""
    entries: list[str] = []
    least = min(depth(line) for line in lines)
    for line in lines:
        if depth(line) == least:
            entries.append(f"* {line.strip()}")
        else:
            entries[-1] += " " + line.strip()
    return entries


def _before(found: list[str]) -> str:
    return found[-1] if found else ""


def _ends_section(found: list[str], line: str) -> bool:
    return bool(line) and not line.startswith(" ") and _before(found).startswith(" ")


def process(*arguments: Any) -> None:
    lines = arguments[-1]
    lines[:] = normalized(lines)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", process, priority=100)  # before napoleon
    return {"parallel_read_safe": True}
