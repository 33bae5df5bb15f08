"""IPython's debugger after an error on an engine. An engine has no keyboard, so each command is a
request; the debugger stays on the engine, where the values of the failed frames are."""

from __future__ import annotations

import io
import re
import sys
from types import TracebackType
from typing import Any, NamedTuple

from IPython.core.debugger import Pdb

from sfm_kernel.endpoint import seen

_FILE = re.compile(r"(?:/[^\s:'\"()]+/)?ipykernel_\d+/\d+\.py")

_ENDS = ("q", "quit", "exit", "EOF")

_WITHOUT = ("interact", "commands")
"""Commands that ask for more at a keyboard."""

_RUNS = frozenset(
    [
        "c",
        "cont",
        "continue",
        "n",
        "next",
        "s",
        "step",
        "r",
        "return",
        "unt",
        "until",
        "j",
        "jump",
        "run",
        "restart",
        "debug",
    ]
)
"""Commands that would go on with the program."""

_session: _Session | None = None


class _Session(NamedTuple):
    debugger: Any
    output: io.StringIO
    traceback: TracebackType


class Answer(NamedTuple):
    """What the debugger has printed; ``goes_on``: whether it takes more commands."""

    text: str
    goes_on: bool = True


def answer(command: str) -> Answer | None:
    """Run one command of the debugger on this engine, at the frame where the last one has left it.

    Args:
        command: as in a terminal; "" for the frame alone.
    Returns:
        None if no cell of this engine has raised an error.
    """
    global _session
    found: TracebackType | None = getattr(sys, "last_traceback", None)
    if found is None:
        return None
    if _session is None or _session.traceback is not found:
        _session = _begun(found)
    word = command.partition(" ")[0]
    if word in _ENDS:
        _session = None
        return Answer("", False)
    if word in _WITHOUT:
        return Answer(f"{word} needs a keyboard, which an engine does not have\n")
    if word in _RUNS:
        return Answer("the cell has ended: look around by up, down, p, where, list; q ends\n")
    debugger, output, _ = _session
    if not command:
        debugger.print_stack_entry(debugger.stack[debugger.curindex])
    else:
        debugger.onecmd(debugger.precmd(command))
    text = output.getvalue()
    output.seek(0)
    output.truncate()
    return Answer(_FILE.sub(_cell, text))


def _begun(traceback: TracebackType) -> _Session:
    output = io.StringIO()
    debugger = Pdb(stdout=output, nosigint=True)
    debugger.use_rawinput = False
    debugger.reset()
    debugger.setup(None, traceback)
    # The innermost frame of the user; those below it are of libraries.
    while debugger.curindex > 0 and not seen.is_users_file(_file(debugger)):
        debugger.curindex -= 1
    debugger.curframe = debugger.stack[debugger.curindex][0]
    return _Session(debugger, output, traceback)


def _file(debugger: Any) -> str:
    return str(debugger.stack[debugger.curindex][0].f_code.co_filename)


def _cell(found: re.Match[str]) -> str:
    cell = seen.cell_of(found[0])
    return found[0] if cell is None or cell[0] is None else f"cell {cell[0]}"
