"""Facts for observers that native calls do not publish themselves.

These are the reasons of waits, and the cells of files that were compiled from a notebook. They are
computed seldom, and never by a call that does not block.
"""

from __future__ import annotations

import contextlib
import functools
import json
import linecache
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sfm_kernel._native import set_locator
from sfm_kernel.endpoint.calls import short
from sfm_kernel.errors import CollectiveMismatch

OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
"""The folder of this package's files, with a slash at its end."""

_LESSONS = os.path.join(OWN, "lessons") + os.sep

_LIBRARY = os.path.dirname(os.__file__) + os.sep

_CALLERS = frozenset(
    {threading.__file__, _LIBRARY + "concurrent/futures/thread.py", contextlib.__file__}
)
"""Files whose functions call those of threads, and those that a ``with`` enters and leaves: calls
that are none of the program's lines."""


@functools.lru_cache(1024)
def is_users_file(file: str) -> bool:
    """Whether code of this file is the user's: not a library's, and not this package's."""
    if file.startswith(("<frozen ", "<decorator-gen", OWN, _LIBRARY)):
        return False
    return not any(part in file for part in ("/site-packages/", "/dist-packages/"))


Cell = tuple[int | None, str | None, int]
"""A cell's number, its id, and the number of its lines before the code that was compiled."""

find_cell: Callable[[str], Cell | None] | None = None
"""Finds the cell that a file was compiled from; set by ``sfm_kernel.jupyter``."""

remote_cells: dict[str, Cell] = {}
"""The cells of functions that a notebook has sent to this process, by file."""


def cell_of(file: str) -> Cell | None:
    """The cell that a file was compiled from, in this process or in a notebook; None if none."""
    return (find_cell and find_cell(file)) or remote_cells.get(file)


_FRAME = re.compile(
    r'^  File "(?P<file>[^"\n]*)", line (?P<line>\d+)(?P<rest>.*)\n(?P<source>    )?', re.MULTILINE
)


def with_cells(trace: str) -> str:
    """A traceback of another process, with this notebook's cells for the files of their code."""

    def shown(frame: re.Match[str]) -> str:
        if (cell := cell_of(frame["file"])) is None or cell[0] is None:
            return frame[0]
        number, _, before = cell
        line = int(frame["line"])
        source = "" if frame["source"] else linecache.getline(frame["file"], line).strip()
        source = f"    {source}\n" if source else frame["source"] or ""
        return f"  cell {number}, line {line + before}{frame['rest']}\n{source}"

    return _FRAME.sub(shown, trace)


MEMBERS = 8
"""The most members of a group that observers are told."""


def facts(
    kind: str,
    peers: Iterable[object] | None,
    *,
    every: bool = False,
    template: dict[str, Any] | None = None,
    context_id: int = 0,
    purpose: str = "",
    known: float = 0.0,
    group: tuple[str, str] | None = None,
    members: Sequence[object] = (),
) -> str:
    """The facts about a blocked call, as JSON: see ``observe/schema.json``, "wait".

    Args:
        peers: the processes that can end the wait; None if any process can.
        every: all of them have to come.
        known: seconds since 1970 since which ``peers`` is certainly right, if nothing else shows
            it: no process that came before is among them.
        group: of a collective call: the group's key and its title.
        members: the group's members; more than ``MEMBERS`` are not shown.
    """
    conditions = conditions_of(template or {})
    names = None if peers is None else [name_of(peer) for peer in peers]
    if names is not None and None in names:
        names = None
    wait: dict[str, Any] = {
        "kind": kind,
        "peers": names,
        "known": known,
        "all": every,
        "template": conditions,
    }
    wait |= {"context_id": f"{context_id:x}" if context_id else "", "purpose": purpose}
    if group:
        wait["group"] = group
    if 0 < len(members) <= MEMBERS:
        wait["members"] = [name_of(member) for member in members]
    return json.dumps(wait)


def conditions_of(template: Mapping[str, Any]) -> list[list[Any]]:
    """The conditions of a template, as JSON for observers can hold them."""
    return [[name, short(value), callable(value)] for name, value in template.items()]


Account = Mapping[str, dict[str, Any]]
"""The collective calls of a process, for each group: ``title`` and ``name`` (the group's, the
process's), ``size``, ``open`` (a call has failed, or is not over), ``count`` and ``chain`` (of all
calls), ``latest`` (the numbers, texts and lines of some). Values that JSON can hold."""

accounts: list[Callable[[], Account]] = []
"""Added by libraries: each returns the collective calls that this process has made with it."""


def account() -> Account:
    """The collective calls of this process, of all libraries, at the end of a program."""
    return {key: calls for library in accounts for key, calls in library().items()}


def disagreement(accounts: Iterable[Account]) -> CollectiveMismatch | None:
    """The first collective calls that differ among programs that have ended; None if none do.

    Calls in which no process waits for another, such as a broadcast on one and a reduction on
    another, may all return although they differ. A group with an open call, or without the account
    of every member, is not compared.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for program in accounts:
        for key, member in program.items():
            groups.setdefault(key, []).append(member)
    for members in groups.values():
        complete = len(members) == members[0]["size"] and not any(m["open"] for m in members)
        if complete and len({(member["count"], member["chain"]) for member in members}) > 1:
            return CollectiveMismatch(_first_difference(members), members[0]["title"])
    return None


def _first_difference(members: list[dict[str, Any]]) -> dict[object, str]:
    """Each member's call at the first difference, as far as that is known."""
    latest = {
        member["name"]: {number: (text, line) for number, text, line in member["latest"]}
        for member in members
    }
    for number in sorted(set().union(*latest.values())):
        called = {name: calls.get(number, ("no more call", "")) for name, calls in latest.items()}
        if len({text for text, _ in called.values()}) > 1:
            return {name: "".join(call) for name, call in called.items()}
    return {member["name"]: f"{member['count']} calls" for member in members}


def name_of(name: object) -> str | int | None:
    """A name as JSON has it; None if it is no name, and may equal any process's."""
    if isinstance(name, (str, int)):
        return name
    rank = getattr(name, "rank", None)  # a rank that no process has yet, see peers.py
    return rank if isinstance(rank, int) else None


def caller() -> tuple[str, str]:
    """The function of this package that the program is in, and the line of the program.

    Texts for observers: "Barrier", "prog.py, line 7" or "cell 3, line 7". Both are empty if no code
    of the program has called.
    """
    name, frame = "", sys._getframe(1)
    while is_own(frame.f_code.co_filename):
        if frame.f_back is None:
            return "", ""
        name, frame = frame.f_code.co_name, frame.f_back
    file = frame.f_code.co_filename
    number, _, before = cell_of(file) or (None, None, 0)
    source = os.path.basename(file) if number is None else f"cell {number}"
    return name, f"{source}, line {frame.f_lineno + before}"


def is_own(filename: str) -> bool:
    """Whether a file is this package's. Outside of notebooks its lessons count as programs; a
    notebook's user has written the cell that calls them."""
    return filename.startswith(OWN) and not (find_cell is None and filename.startswith(_LESSONS))


def locate(filename: str, name: str, *, always: bool = False) -> str | None:
    """The description of a code object for observers; None for this package's, and for callers'.

    ``always``: also describe these.
    """
    if not always and (is_own(filename) or filename in _CALLERS):
        return None
    cell, identity, before = cell_of(filename) or (None, None, 0)
    number = "" if cell is None else str(cell)
    return "\t".join((number, identity or "", str(before), name, filename))


set_locator(locate)
