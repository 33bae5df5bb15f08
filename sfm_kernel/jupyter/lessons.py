"""``%sfm check`` checks a student's cell; ``%sfm notebooks`` copies the package's notebooks."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from IPython.core.error import UsageError

from sfm_kernel.jupyter.cell import CellInterrupted
from sfm_kernel.jupyter.progress import Progress
from sfm_kernel.lessons import CheckFailed
from sfm_kernel.lessons.examine.cell import Unready, find, ready
from sfm_kernel.lessons.examine.check import Check, checks, of_file
from sfm_kernel.lessons.examine.check import find as find_check
from sfm_kernel.lessons.examine.examiner import MOST_SEED, Examiner, Request, Verdict
from sfm_kernel.lessons.students import COPIES, NOTEBOOKS, NotebookError, laid_out

_GRADES = "NBGRADER_EXECUTION"
"""nbgrader sets this variable when it grades a notebook; a check that fails then raises."""

_USAGE = "%sfm check NAME [-n PROCESSES] [--seed SEED] [--from FILE.py] [--strict]"

_MOST = 64
"""The highest number of processes of a trial."""

_WIDTH = 96
"""Characters of a line of output that a notebook usually shows."""


class _Arguments(NamedTuple):
    name: str = ""
    file: str = ""
    size: int = 0
    seed: int = 0
    strict: bool = False


Note = Callable[[str, Verdict], None]
"""Takes the name of a check and its result."""


def commands(shell: Any, note: Note) -> dict[str, Callable[[list[str]], None]]:
    """The commands of this module, by name; ``note`` gets the results of checks."""
    return {"check": partial(check, shell, note), "notebooks": notebooks}


def check(shell: Any, note: Note, words: Sequence[str]) -> None:
    """Try the last cell that defines the function of this name, and print the result.

    Without a name: list the checks.

    Blocks: some seconds. Stop ends it.
    Raises:
        UsageError: the words are wrong, or no check has this name.
        CheckFailed: the check has failed, and ``--strict`` is given or nbgrader runs the notebook.
    """
    arguments = _parsed(words)
    try:
        known = of_file(arguments.file) if arguments.file else checks()
        if not arguments.name:
            print("\n".join(f"{check.name:16}{check.asks}" for check in known.values()))
            return
        check = find_check(arguments.name, known)
    except CheckFailed as problem:
        raise UsageError(f"%sfm check: {problem}") from None
    verdict = _judged(shell, check, arguments)
    raises = not verdict.passed and bool(arguments.strict or os.environ.get(_GRADES))
    if not raises:
        print(_wrapped(verdict.text))
    is_single = arguments.size or arguments.seed  # one good trial does not make an exercise right
    if verdict.begun and not (verdict.passed and is_single):
        note(check.name, verdict)
    if raises:
        raise CheckFailed(verdict.text)


def notebooks(words: Sequence[str]) -> None:
    """Copy the notebooks into a folder, and print which one comes first.

    Raises:
        UsageError: the words are wrong, the folder has other files, or it cannot be written.
    """
    if len(words) > 1 or (words and words[0].startswith("-")):
        raise UsageError(
            f"%sfm notebooks takes one folder, which may be new, not {' '.join(words)!r}"
        )
    folder = Path(*words or [COPIES]).expanduser()
    try:
        written = laid_out(NOTEBOOKS, folder)
    except NotebookError as problem:
        raise UsageError(f"%sfm notebooks: {problem}") from None
    print(f"{len(written)} notebooks in {folder}: begin with {written[0]}")


def _wrapped(text: str) -> str:
    """Break long lines between words: a notebook breaks them in the middle of a word."""
    wrapped = []
    for line in text.splitlines():
        indent = line[: len(line) - len(line.lstrip())] + "    "
        lines = textwrap.wrap(line, _WIDTH, subsequent_indent=indent, break_on_hyphens=False)
        wrapped += lines or [""]
    return "\n".join(wrapped)


def _judged(shell: Any, check: Check, arguments: _Arguments) -> Verdict:
    cells = enumerate(map(str, shell.history_manager.input_hist_raw))
    attempt = find(check.name, cells)
    if attempt is None:
        return Verdict(
            False,
            f"{check.name}: no cell that has run defines `{check.name}`. Run the exercise's cell "
            f"first, then this one. The function {check.asks}",
            begun=False,
        )
    try:
        ready(attempt, check.name)  # finds without a trial what is wrong at first sight
    except Unready as problem:
        mark = "✗ " if problem.begun else ""
        return Verdict(False, f"{mark}{check.name}: {problem}", problem.begun)
    try:
        with Examiner() as examiner:
            path = [folder or os.getcwd() for folder in sys.path]
            file = os.path.abspath(arguments.file) if arguments.file else ""
            size, seed = arguments.size, arguments.seed
            request = Request(check.name, attempt, file, size, seed, path)
            return examiner.judged(request, _Dots(shell))
    except KeyboardInterrupt:
        raise CellInterrupted("the check was interrupted; its processes have ended") from None


class _Dots:
    """Shows each trial as a dot that turns green, or ends as a cross."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._progress: Progress | None = None

    def __call__(self, done: int, total: int, failed: bool) -> None:
        if total == 1:
            return
        if self._progress is None:
            self._progress = Progress(self._shell, total, "trials")
        self._progress(done, failed)


def _parsed(words: Sequence[str]) -> _Arguments:
    arguments, rest = _Arguments(), list(words)
    while rest:
        word = rest.pop(0)
        if word == "--strict":
            arguments = arguments._replace(strict=True)
        elif word in ("-n", "--seed", "--from"):
            if not rest:
                raise UsageError(f"%sfm check: {word} needs a value. Usage: {_USAGE}")
            value = rest.pop(0)
            most = _MOST if word == "-n" else MOST_SEED
            if word == "--from":
                arguments = arguments._replace(file=value)
            elif not value.isdecimal() or not 1 <= int(value) <= most:
                raise UsageError(f"%sfm check: {word} takes a number from 1 to {most}")
            elif word == "-n":
                arguments = arguments._replace(size=int(value))
            else:
                arguments = arguments._replace(seed=int(value))
        elif word.startswith("-") or arguments.name:
            raise UsageError(f"%sfm check does not know {word!r}. Usage: {_USAGE}")
        else:
            arguments = arguments._replace(name=word)
    return arguments
