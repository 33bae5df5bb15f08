"""How errors of this package are shown: the user's lines, and what the error says.

And what an engine says of memory where an administrator has limited that.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any

from sfm_kernel.errors import DeadlockDetected, SFMError
from sfm_kernel.jupyter.limits import memory_note

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_MPI4PY = "src/mpi4py/"
"""Where its compiled code was, on the machine that compiled it."""

_MPI = "MPI_ERR_OTHER: "
"""How the text of an MPI.Exception begins that a deadlock has caused."""

_TITLE = "Deadlock: "
"""How every diagnosis of a deadlock begins."""


_SHOWN = (SFMError, RuntimeError, MemoryError)
"""What may be ours: mpi4py's errors are the second."""

_restart = "%sfm restart"


def install(shell: Any, engine: object = "") -> None:
    """From now on this shell shows them in short, and those that deadlocks raise in MPI.

    All other errors are shown as ever, and all where the user has a way of his own. ``engine`` is
    the name of the engine whose shell it is.
    """
    global _restart
    _restart = f"%sfm restart {engine}".rstrip()
    if not shell.custom_exceptions:
        shell.set_custom_exc(_SHOWN, _show)


def uninstall(shell: Any) -> None:
    """Undo ``install``."""
    if shell.custom_exceptions == _SHOWN:
        shell.custom_exceptions = ()


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
    told: BaseException | None = deadlock(value)
    if told is None and isinstance(value, SFMError) and not hasattr(value, "_render_traceback_"):
        told = value
    frames = _without_ours(tb)
    if told is None or frames is None:
        shell.showtraceback(running_compiled_code=True)
        return
    cause, hidden = told.__cause__, told.__suppress_context__
    if cause is None or _without_ours(cause.__traceback__) is None:  # the error says it
        told.__cause__ = None
    text = shell.InteractiveTB.structured_traceback(type(told), told, frames, tb_offset=0)
    told.__cause__, told.__suppress_context__ = cause, hidden
    shell._showtraceback(type(told), told, text)


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
