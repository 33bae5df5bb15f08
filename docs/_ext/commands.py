"""The directive ``sfm-commands``: the reference of ``%sfm`` and ``%%sfm``.

It is made from what ``%sfm help`` prints and from the options that Tab offers
(``sfm_kernel.jupyter.commands``), so that the page cannot say anything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from sfm_kernel.jupyter.cell import options
from sfm_kernel.jupyter.commands import HELP, OPTIONS

Entry = tuple[str, str]
"""What is typed, and what it does."""


def entries(block: str) -> Iterator[Entry]:
    """The entries of one block of the help; an indented line continues the one before.

    Raises:
        ValueError: a line is neither.
    """
    typed, does = "", ""
    for line in block.splitlines():
        if line.startswith(" "):
            does += " " + line.strip()
            continue
        if typed:
            yield typed, does
        found = re.fullmatch(r"(%.*\S) {2,}(\S.*)", line)
        if not found:
            raise ValueError(f"the help of %sfm has a line without explanation: {line!r}")
        typed, does = found[1], found[2]
    yield typed, does


def blocks() -> tuple[str, str]:
    """The help of the line magic, and that of the cell magic."""
    line, cell, *_ = HELP.split("\n\n")
    return line, cell


def text(words: str) -> list[nodes.Node]:
    """Text in which `this` is code, and so is --this."""
    found: list[nodes.Node] = []
    for plain, quoted, option in re.findall(r"([^`]*?)(?:`(.+?)`|(?<![\w-])(--[\w-]+)|$)", words):
        found.append(nodes.Text(plain))
        if code := quoted or option:
            found.append(nodes.literal(code, code))
    return found


def definitions(listed: Iterator[Entry]) -> nodes.definition_list:
    found = nodes.definition_list(classes=["sfm-commands"])
    for typed, does in listed:
        terms = [nodes.literal(one, one) for one in re.split(r" {2,}", typed)]
        term = nodes.term()
        for nth, one in enumerate(terms):
            term += ([nodes.Text("   ")] if nth else []) + [one]
        definition = nodes.definition("", nodes.paragraph("", "", *text(does)))
        found += nodes.definition_list_item("", term, definition)
    return found


def completions() -> Iterator[Entry]:
    for command, offered in OPTIONS.items():
        if offered:
            yield f"%sfm {command}", " ".join(f"`{one}`" for one in offered)


def cell_options() -> Iterator[Entry]:
    for action in options.parser._actions:
        typed = ", ".join(action.option_strings) or str(action.dest)
        if action.option_strings and action.nargs != 0:
            typed += f" {action.metavar or action.dest.upper()}"
        yield typed, re.sub(r"\s+", " ", action.help or "")


PARTS = {
    "line": lambda: entries(blocks()[0]),
    "cell": lambda: entries(blocks()[1]),
    "completions": completions,
    "cell-options": cell_options,
}


class Commands(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        part = directives.choice(self.arguments[0], tuple(PARTS))
        return [definitions(PARTS[part]())]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("sfm-commands", Commands)
    return {"parallel_read_safe": True}
