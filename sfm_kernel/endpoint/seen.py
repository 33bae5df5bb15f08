"""What observers are told of a process beyond what its calls say by themselves.

Asked for seldom, and never by a call that does not block: what a wait is for, which threads could
go on meanwhile, and what a file of code is called in the notebook that it was typed into.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterable
from typing import Any

from sfm_kernel._native import set_bystanders, set_locator
from sfm_kernel.endpoint.callbacks import are_registered
from sfm_kernel.endpoint.calls import short

_LIBRARIES = frozenset(
    "IPython comm debugpy ipykernel ipyparallel jupyter_client pydevd tornado zmq".split()  # noqa: SIM905
)
"""Their threads serve the front end and ZeroMQ: they never send a message of the program's own."""

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

Cell = tuple[int | None, str | None, int]
"""A cell's number, its id, and how many lines of it stand before the code that was compiled."""

find_cell: Callable[[str], Cell | None] | None = None
"""The cell that a file was compiled from; the front end's part puts its function here."""


def facts(
    kind: str,
    peers: Iterable[object] | None,
    *,
    every: bool = False,
    template: dict[str, Any] | None = None,
    space: int = 0,
    purpose: str = "",
    known: float = 0.0,
) -> str:
    """What a blocked call waits for, as JSON: see ``observe/schema.json``, "wait".

    Args:
        peers: who can end the wait; None where anybody can.
        every: all of them have to come.
        known: since when ``peers`` has been true for certain, where nothing else tells (s since
            1970): who came before is not among them.
    """
    conditions = [[name, short(one), callable(one)] for name, one in (template or {}).items()]
    names = None if peers is None else [name_of(one) for one in peers]
    if names is not None and None in names:
        names = None
    told = {"kind": kind, "peers": names, "known": known, "all": every, "template": conditions}
    return json.dumps(told | {"space": f"{space:x}" if space else "", "purpose": purpose})


def name_of(name: object) -> str | int | None:
    """A name as JSON has it; None where it is none, and may be equal to that of anybody."""
    if isinstance(name, (str, int)):
        return name
    rank = getattr(name, "rank", None)  # which nobody has yet, see peers.py
    return rank if isinstance(rank, int) else None


def bystanders(thread: threading.Thread | None = None) -> str:
    """What of the program could go on while a thread is blocked: other threads, callbacks.

    ``thread``: this one if None.
    """
    own = thread or threading.current_thread()
    others = [one.name for one in threading.enumerate() if one is not own and not _is_known(one)]
    if signal.getitimer(signal.ITIMER_REAL)[0] > 0:
        others.append("a timer (SIGALRM)")
    if are_registered():
        others.append("its callbacks")
    return ", ".join(others)


def _is_known(thread: threading.Thread) -> bool:
    """Whether it serves the front end, the connections or observers, and runs no user's code."""
    if thread.name.startswith("sfm-"):
        return not thread.name.startswith(("sfm-mpi", "sfm-futures"))  # those send for the program
    # The function that it runs; its class, where that has a ``run`` of its own.
    target = getattr(thread, "_target", None)
    target = getattr(target, "func", target)  # ipyparallel wraps what its threads run
    module = getattr(target, "__module__", None) or type(thread).__module__
    return str(module).partition(".")[0] in _LIBRARIES


def _locate(filename: str, name: str) -> str | None:
    """A piece of code for observers; None for this package's own, except its benchmarks."""
    if filename.startswith(_OWN) and not filename.startswith(_OWN + "bench"):
        return None
    cell, identity, before = (find_cell and find_cell(filename)) or (None, None, 0)
    number = "" if cell is None else str(cell)
    return "\t".join((number, identity or "", str(before), name, filename))


set_bystanders(bystanders)
set_locator(_locate)
