"""``%sfm record``: writes the last run of this notebook's world into a file to hand in."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from IPython.core.error import UsageError

from sfm_kernel.jupyter.home import Home
from sfm_kernel.jupyter.inspection import JUDGE
from sfm_kernel.jupyter.lines import Lines
from sfm_kernel.jupyter.names import take_options
from sfm_kernel.jupyter.observed import Repeated
from sfm_kernel.jupyter.titles import notebook_here
from sfm_kernel.lessons.measure.machine import machine
from sfm_kernel.observe import record, timeline
from sfm_kernel.observe.record.listing import lines_of_files
from sfm_kernel.observe.timeline import Recorder, Timeline
from sfm_kernel.observe.timeline import words as said

_FOLLOW = 0.2
"""Seconds between two readings of the traces."""

_USAGE = (
    '%sfm record takes one file: `%sfm record run.html`, also with --title "Exercise 3" --name Ada'
)


def parse_words(
    words: Sequence[str], options: Sequence[str], usage: str
) -> tuple[str, dict[str, str]]:
    """The single word of a command, and the values of its options.

    Raises UsageError, with ``usage``.
    """
    values = dict.fromkeys(options, "")
    found, given = take_options(words, options)
    for name, value in given:
        if value is None:
            raise UsageError(f"{name} needs a value. {usage}")
        values[name] = value
    if len(found) != 1 or found[0].startswith("-"):
        raise UsageError(usage)
    return found[0], values


def run(home: Home, lines: Lines, words: Sequence[str]) -> None:
    """Run the command ``%sfm record``."""
    path, values = parse_words(words, ("--title", "--name"), _USAGE)
    write(home, lines, path, title=values["--title"], name=values["--name"])


@contextmanager
def recorded(home: Home, lines: Lines, path: str) -> Iterator[None]:
    """Record what happens in the block, and then write the file.

    The traces are read during the block, since each process keeps only its last events.

    Raises UsageError: before the block if the path is not one of an HTML file, after the block if
    the file cannot be written.
    """
    path, recorder = _checked(path), Recorder(home.sfm)
    following = Repeated(recorder.read, _FOLLOW)
    try:
        yield
    finally:  # also if the cell has failed or was stopped
        following.stop()
        with suppress(OSError):  # the world has ended
            recorder.read()
        write(home, lines, path, run=recorder.timeline())


def write(
    home: Home,
    lines: Lines,
    path: str,
    *,
    title: str = "",
    name: str = "",
    run: Timeline | None = None,
) -> None:
    """Write the file, and print its name and size.

    Args:
        title: by default the notebook's name.
        run: the timeline of a recorder that has followed the run; without it, the events that the
            processes still have.

    Raises UsageError if the file cannot be written.
    """
    path, found = _checked(path), run or timeline(home.sfm)
    try:
        notes = record(
            home.sfm,
            path,
            title=title or notebook_here(),
            name=name,
            deadlocks=home.deadlocks,
            sources=sources(lines),
            cells=_ran(home, since=found.data["begin"]),
            facts=machine(),
            remote=home.view.states,
            run=found,
            patience=JUDGE,
        )
    except OSError as problem:
        raise UsageError(f"%sfm record: {path} was not written: {problem.strerror}") from None
    size = said.size(os.path.getsize(path))
    print("\n".join([f"{path}: {size}; any browser opens it, without Jupyter", *notes]))


def _checked(path: str) -> str:
    path = os.path.expanduser(path)
    if not path.lower().endswith((".html", ".htm")):
        raise UsageError(f"%sfm record writes HTML, so that a browser opens it: {path}.html?")
    return path


def sources(lines: Lines) -> Callable[[Mapping[str, Any]], str | None]:
    """A function that returns the code of this notebook's cells, and of files but libraries."""

    def source(location: Mapping[str, Any]) -> str | None:
        if location["cell"] is None:
            return lines_of_files(location)
        return lines.code(location["cell"], location["cell_id"])

    return source


def _ran(home: Home, since: float) -> list[dict[str, Any]]:
    """The cells that ran on engines in the last run, as code locations."""
    nowhere = {"file": "", "line": 0, "function": None}
    # A run may begin when the first engine gets its cell, a moment after that was sent.
    first = min(max(home.ran.values(), default=since), since)
    return [
        {**nowhere, "cell": number, "cell_id": identity}
        for (number, identity), time in home.ran.items()
        if number is not None and time >= first
    ]
