"""What observers are told of a process beyond what its calls say by themselves.

Asked for seldom, and never by a call that does not block: what a wait is for, and what a file of
code is called in the notebook that it was typed into.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sfm_kernel._native import set_locator
from sfm_kernel.endpoint.calls import short
from sfm_kernel.errors import CollectiveMismatch

OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
"""Where this package's files are."""

helpers: weakref.WeakKeyDictionary[threading.Thread, Callable[[], str]] = (
    weakref.WeakKeyDictionary()
)
"""Threads of this package that work for calls of the program's: each says with which call it goes
on beside the program, "" if with none."""

Cell = tuple[int | None, str | None, int]
"""A cell's number, its id, and how many lines of it stand before the code that was compiled."""

find_cell: Callable[[str], Cell | None] | None = None
"""The cell that a file was compiled from; the front end's part puts its function here."""

elsewhere: dict[str, Cell] = {}
"""The same of functions that were sent here from a notebook."""


def cell_of(file: str) -> Cell | None:
    """The cell that a file was compiled from, here or in a notebook; None if from none."""
    return (find_cell and find_cell(file)) or elsewhere.get(file)


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
) -> str:
    """What a blocked call waits for, as JSON: see ``observe/schema.json``, "wait".

    Args:
        peers: who can end the wait; None where anybody can.
        every: all of them have to come.
        known: since when ``peers`` has been true for certain, where nothing else tells (s since
            1970): who came before is not among them.
        group: of a collective call: what tells this group from others, and what it is called.
    """
    conditions = [[name, short(one), callable(one)] for name, one in (template or {}).items()]
    names = None if peers is None else [name_of(one) for one in peers]
    if names is not None and None in names:
        names = None
    told = {"kind": kind, "peers": names, "known": known, "all": every, "template": conditions}
    told |= {"context_id": f"{context_id:x}" if context_id else "", "purpose": purpose}
    return json.dumps(told | {"group": group} if group else told)


Account = Mapping[str, dict[str, Any]]
"""Which calls a process has made together with others, for each group: ``title`` and ``name`` (the
group's, the own one), ``size``, ``open`` (a call has failed, or is not over), ``count`` and
``chain`` (of all calls), ``latest`` (the numbers and texts of some). What JSON can hold."""

accounts: list[Callable[[], Account]] = []
"""Of libraries: each tells which calls this process has made together with others so far."""


def account() -> Account:
    """Of all libraries, at the end of a program."""
    return {key: one for tell in accounts for key, one in tell().items()}


def disagreement(told: Iterable[Account]) -> CollectiveMismatch | None:
    """Which calls do not fit together, of programs that have come to their end; None if all do.

    Calls in which nobody waits for anybody, such as a broadcast beside a reduction, may all return
    where they do not fit. A group with an open call, or of which not all have told, is passed over.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for one in told:
        for key, member in one.items():
            groups.setdefault(key, []).append(member)
    for members in groups.values():
        whole = len(members) == members[0]["size"] and not any(one["open"] for one in members)
        if whole and len({(one["count"], one["chain"]) for one in members}) > 1:
            return CollectiveMismatch(_first_difference(members))
    return None


def _first_difference(members: list[dict[str, Any]]) -> dict[object, str]:
    """What each of them has called where they differ first, as far as that is known."""
    latest = {one["name"]: dict(one["latest"]) for one in members}
    for number in sorted(set().union(*latest.values())):
        called = {name: calls.get(number, "no more call") for name, calls in latest.items()}
        if len(set(called.values())) > 1:
            return {name: f"{what} of {members[0]['title']}" for name, what in called.items()}
    return {one["name"]: f"{one['count']} calls of {one['title']}" for one in members}


def asked(text: str, facts: str) -> str:
    """What a call has asked for in vain: its text, and what could come, as ``facts`` says it;
    nothing where that is not known."""
    return json.dumps({"text": text} | json.loads(facts)) if facts else ""


def name_of(name: object) -> str | int | None:
    """A name as JSON has it; None where it is none, and may be equal to that of anybody."""
    if isinstance(name, (str, int)):
        return name
    rank = getattr(name, "rank", None)  # which nobody has yet, see peers.py
    return rank if isinstance(rank, int) else None


def caller() -> tuple[str, str]:
    """The function of this package that the program is in, and the line of the program.

    Texts for observers: "Barrier", "prog.py, line 7" or "cell 3, line 7". Empty in threads that
    work for calls of another one.
    """
    if threading.current_thread() in helpers:
        return "", ""
    name, frame = "", sys._getframe(1)
    while is_own(frame.f_code.co_filename):
        if frame.f_back is None:
            return "", ""
        name, frame = frame.f_code.co_name, frame.f_back
    file = frame.f_code.co_filename
    number, _, before = cell_of(file) or (None, None, 0)
    where = os.path.basename(file) if number is None else f"cell {number}"
    return name, f"{where}, line {frame.f_lineno + before}"


def is_own(filename: str) -> bool:
    """Whether a file is this package's; what notebooks run of its lessons counts as programs."""
    return filename.startswith(OWN) and not filename.startswith(OWN + "lessons")


def locate(filename: str, name: str, *, always: bool = False) -> str | None:
    """A piece of code for observers; None for this package's own.

    ``always``: this package's own is described, too.
    """
    if not always and is_own(filename):
        return None
    cell, identity, before = cell_of(filename) or (None, None, 0)
    number = "" if cell is None else str(cell)
    return "\t".join((number, identity or "", str(before), name, filename))


set_locator(locate)
