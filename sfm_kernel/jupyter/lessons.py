"""``%sfm check``: whether a cell of the student's does what an exercise asks for."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from IPython.core.error import UsageError

from sfm_kernel.jupyter.cell import CellInterrupted
from sfm_kernel.lessons import CheckFailed
from sfm_kernel.lessons.examine.cell import Unready, find, ready
from sfm_kernel.lessons.examine.check import Check, checks, of_file
from sfm_kernel.lessons.examine.check import find as find_check
from sfm_kernel.lessons.examine.examiner import Examiner, Request, Verdict

_GRADES = "NBGRADER_EXECUTION"
"""nbgrader sets it where it grades or validates a notebook: there a check that fails raises."""

_USAGE = "%sfm check NAME [-n PROCESSES] [--seed SEED] [--from FILE.py] [--strict]"


_WIDTH = 96
"""Characters of a line of output that are seen in a notebook as a rule."""


class _Wish(NamedTuple):
    name: str = ""
    file: str = ""
    size: int = 0
    seed: int = 0
    strict: bool = False


def check(shell: Any, words: Sequence[str]) -> None:
    """Try the last cell that defines the function of this name, and print what has come of it.

    Without a name: the checks that there are.

    Blocks: some seconds. Stop ends it.
    Raises:
        UsageError: the words are wrong, or no check has this name.
        CheckFailed: it has failed, with ``--strict``, or where nbgrader runs the notebook.
    """
    wish = _parsed(words)
    try:
        known = of_file(wish.file) if wish.file else checks()
        if not wish.name:
            print("\n".join(f"{one.name:16}{one.asks}" for one in known.values()))
            return
        one = find_check(wish.name, known)
    except CheckFailed as problem:
        raise UsageError(f"%sfm check: {problem}") from None
    verdict = _judged(shell, one, wish)
    if not verdict.passed and (wish.strict or os.environ.get(_GRADES)):
        raise CheckFailed(verdict.text)
    print(_wrapped(verdict.text))


def _wrapped(text: str) -> str:
    """Long lines go on in the next one: an output of a cell is cut in the middle of a word."""
    wrapped = []
    for line in text.splitlines():
        indent = line[: len(line) - len(line.lstrip())] + "    "
        lines = textwrap.wrap(line, _WIDTH, subsequent_indent=indent, break_on_hyphens=False)
        wrapped += lines or [""]
    return "\n".join(wrapped)


def _judged(shell: Any, one: Check, wish: _Wish) -> Verdict:
    attempt = find(one.name, _cells(shell))
    if attempt is None:
        return Verdict(
            False,
            f"{one.name}: no cell that was run defines `{one.name}`. Run the exercise's cell "
            f"first, then this one. It {one.asks}",
            begun=False,
        )
    try:
        ready(attempt, one.name)  # what can be said at once is
    except Unready as problem:
        return Verdict(False, f"{'✗ ' if problem.begun else ''}{one.name}: {problem}")
    try:
        with Examiner() as examiner:
            path = [one or os.getcwd() for one in sys.path]
            file = os.path.abspath(wish.file) if wish.file else ""
            return examiner.judged(Request(one.name, attempt, file, wish.size, wish.seed, path))
    except KeyboardInterrupt:
        raise CellInterrupted("the check was interrupted; its processes have ended") from None


def _cells(shell: Any) -> Iterator[tuple[int, str]]:
    """The cells that were run in this notebook."""
    return ((number, str(text)) for number, text in enumerate(shell.history_manager.input_hist_raw))


def _parsed(words: Sequence[str]) -> _Wish:
    wish, rest = _Wish(), list(words)
    while rest:
        word = rest.pop(0)
        if word == "--strict":
            wish = wish._replace(strict=True)
        elif word in ("-n", "--seed", "--from"):
            if not rest:
                raise UsageError(f"%sfm check: {word} lacks its value. It takes: {_USAGE}")
            value = rest.pop(0)
            if word == "--from":
                wish = wish._replace(file=value)
            elif not value.isdigit() or not 1 <= int(value) <= _MOST:
                raise UsageError(f"%sfm check: {word} takes a number from 1 to {_MOST}")
            elif word == "-n":
                wish = wish._replace(size=int(value))
            else:
                wish = wish._replace(seed=int(value))
        elif word.startswith("-") or wish.name:
            raise UsageError(f"%sfm check does not know {word!r}. It takes: {_USAGE}")
        else:
            wish = wish._replace(name=word)
    return wish


_MOST = 64
"""Processes that a trial may have, and the highest seed."""
