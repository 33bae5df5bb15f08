"""How an engine shows that a deadlock has ended its cell: the user's lines, and the explanation.

And what it says of memory where an administrator has limited that."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any

import sfm_kernel
from sfm_kernel.errors import DeadlockDetected, SFMError
from sfm_kernel.jupyter.limits import memory_note

_OWN = os.path.dirname(os.path.abspath(sfm_kernel.__file__)) + os.sep
_MPI4PY = "src/mpi4py/"
"""Where its compiled code was, on the machine that compiled it."""

_MPI = "MPI_ERR_OTHER: "
"""How the text of an MPI.Exception begins that a deadlock has caused."""

_TITLE = "Deadlock: "
"""How every diagnosis of a deadlock begins."""


_restart = "%sfm restart"


def install(shell: Any, name: object) -> None:
    """From now on the shell of this engine shows deadlocks in short; all other errors as ever."""
    global _restart
    _restart = f"%sfm restart {name}"
    shell.set_custom_exc((SFMError, RuntimeError, MemoryError), _show)  # mpi4py's is the second


def in_short(name: str, value: str) -> tuple[str, str]:
    """The name and the text of an error for a summary: of a deadlock its title, which all share."""
    before, title, rest = value.partition("\n")[0].partition(_TITLE)
    if title and (name == DeadlockDetected.__name__ or before.startswith(_MPI)):
        return DeadlockDetected.__name__, title + rest
    return name, value


def _show(
    shell: Any,
    kind: type[BaseException],
    value: BaseException,
    tb: TracebackType | None,
    tb_offset: int | None = None,
) -> None:
    """Called by IPython instead of showing the error that is being handled."""
    if isinstance(value, MemoryError) and (note := memory_note(_restart)):
        value.add_note(note)
    ended = deadlock(value)
    frames = _without_ours(tb)
    if ended is None or frames is None:
        shell.showtraceback(running_compiled_code=True)
        return
    text = shell.InteractiveTB.structured_traceback(type(ended), ended, frames, tb_offset=0)
    shell._showtraceback(type(ended), ended, text)


def deadlock(value: BaseException | None) -> DeadlockDetected | None:
    """The same without what had led to it; also where MPI has raised it, as an error of its own."""
    if isinstance(value, DeadlockDetected):
        return DeadlockDetected(value.cycle, str(value))
    before, title, why = str(value).partition(_TITLE)
    if type(value).__module__ == "mpi4py.MPI" and before.startswith(_MPI) and title:
        raised = "\n(Raised as MPI.Exception, with the code MPI_ERR_OTHER.)"
        return DeadlockDetected([], title + why + raised)
    return None


def _without_ours(tb: TracebackType | None) -> TracebackType | None:
    """The frames of the user's code; None where there are none.

    The first frame is IPython's, which runs the cell; those of this package have no lines to mend.
    """
    found = []
    while tb is not None:
        tb = tb.tb_next
        if tb is not None and not tb.tb_frame.f_code.co_filename.startswith((_OWN, _MPI4PY)):
            found.append(tb)
    kept: TracebackType | None = None
    for one in reversed(found):
        kept = TracebackType(kept, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return kept
