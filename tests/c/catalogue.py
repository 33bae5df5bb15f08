"""Reads the comment at the top of a program: how it is started, and what it must print.

    /* Each rank says hello.
     *
     * ranks: 4
     * arguments: 10 20
     * stdin: the first line
     * stdin: the second line
     * status: 3
     * order: any
     * expected:
     *   hello from rank 0 of 4
     */

All but ``expected`` may be left out: 4 ranks, no words, no input, status 0. Lines of several ranks
come in any order where ``order: any`` stands.
"""

from __future__ import annotations

import os
from typing import NamedTuple


class Program(NamedTuple):
    """A source file, how it is started, and what it must print."""

    path: str
    ranks: int
    arguments: list[str]
    stdin: str
    status: int
    ordered: bool
    expected: list[str]

    @property
    def name(self) -> str:
        return os.path.basename(self.path)

    def lines(self, output: str) -> list[str]:
        """The lines of an output as they are compared with ``expected``."""
        lines = [line.rstrip() for line in output.splitlines()]
        return lines if self.ordered else sorted(lines)


def read(path: str) -> Program:
    """Read a program's comment; ValueError if ``expected`` is missing or a key is unknown."""
    with open(path, encoding="utf-8") as source:
        comment = source.read().partition("*/")[0].splitlines()[1:]
    said: dict[str, list[str]] = {"ranks": [], "arguments": [], "stdin": [], "status": []}
    said |= {"order": [], "expected": []}
    lines = iter(comment)
    for line in lines:
        key, colon, value = line.strip().removeprefix("*").strip().partition(":")
        if key == "expected":
            # All lines that follow; the comment's last line is a blank and the end mark.
            said["expected"] = [
                line.removeprefix(" *   ").rstrip() for line in lines if line != " "
            ]
        elif key in said:
            said[key].append(value.strip())
        elif colon and " " not in key:
            raise ValueError(f"{path}: nothing is called {key!r} in a program's comment")
    if not said["expected"]:
        raise ValueError(f"{path}: its comment does not say what is expected")
    ordered = said["order"] != ["any"]
    return Program(
        path=path,
        ranks=int((said["ranks"] or ["4"])[0]),
        arguments=" ".join(said["arguments"]).split(),
        stdin="".join(f"{line}\n" for line in said["stdin"]),
        status=int((said["status"] or ["0"])[0]),
        ordered=ordered,
        expected=said["expected"] if ordered else sorted(said["expected"]),
    )


def programs(folder: str) -> list[Program]:
    """All programs in a folder, by name."""
    names = sorted(name for name in os.listdir(folder) if name.endswith((".c", ".cpp")))
    return [read(os.path.join(folder, name)) for name in names]
