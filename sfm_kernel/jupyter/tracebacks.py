"""Shows errors of this package with the user's lines only.

A MemoryError in an engine gets a note if an administrator has limited the engine's memory.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any

from sfm_kernel.errors import DeadlockDetected, SFMError
from sfm_kernel.jupyter.limits import memory_note

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_MPI4PY = "src/mpi4py/"
"""The path of mpi4py's compiled code, on the machine that compiled it."""

_MPI = "Exception"
"""The name of the error that a deadlock raises in MPI; its text is the diagnosis."""

_TITLE = "Deadlock: "
"""The beginning of every diagnosis of a deadlock."""

_SHOWN = (SFMError, RuntimeError, MemoryError)
"""The types of errors that this module may show; mpi4py's errors are RuntimeErrors."""

_restart = "%sfm restart"


def install(shell: Any, engine: object = "") -> None:
    """Have this shell show errors of this package, and deadlocks' errors in MPI, in short.

    All other errors are shown as usual; so are all errors if the user has set a handler.

    Args:
        engine: the name of the shell's engine; "" for a notebook.
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
    """The name and the text of an error for a summary; a deadlock's error is its title."""
    if name in (DeadlockDetected.__name__, _MPI) and value.startswith(_TITLE):
        return DeadlockDetected.__name__, value.partition("\n")[0]
    return name, value


def _show(
    shell: Any,
    kind: type[BaseException],
    value: BaseException,
    tb: TracebackType | None,
    tb_offset: int | None = None,
) -> None:
    """Show the error that is being handled; IPython calls this instead of showing it."""
    if isinstance(value, MemoryError) and (note := memory_note(_restart)):
        value.add_note(note)
    shown: BaseException | None = deadlock(value)
    if shown is None and isinstance(value, SFMError) and not hasattr(value, "_render_traceback_"):
        shown = value
    frames = _without_ours(tb)
    if shown is None or frames is None:
        shell.showtraceback(running_compiled_code=True)
        return
    cause, hidden = shown.__cause__, shown.__suppress_context__
    if cause is None or _without_ours(cause.__traceback__) is None:  # the error says everything
        shown.__cause__ = None
    text = shell.InteractiveTB.structured_traceback(type(shown), shown, frames, tb_offset=0)
    shown.__cause__, shown.__suppress_context__ = cause, hidden
    shell._showtraceback(type(shown), shown, text)


def deadlock(value: BaseException | None) -> DeadlockDetected | None:
    """A copy of a deadlock's error without its causes; None if the error is no deadlock's.

    MPI raises a deadlock as an MPI.Exception.
    """
    if isinstance(value, DeadlockDetected):
        return DeadlockDetected(value.cycle, str(value))
    if type(value).__module__ == "mpi4py.MPI" and str(value).startswith(_TITLE):
        raised = "\n(Raised as MPI.Exception, with the code MPI_ERR_OTHER.)"
        return DeadlockDetected([], str(value) + raised)
    return None


def _without_ours(tb: TracebackType | None) -> TracebackType | None:
    """The frames of the user's code; None if there are none.

    The first frame is IPython's, which runs the cell; a user cannot correct frames of this package.
    """
    found = []
    while tb is not None:
        tb = tb.tb_next
        if tb is not None and not tb.tb_frame.f_code.co_filename.startswith((_OWN, _MPI4PY)):
            found.append(tb)
    chain: TracebackType | None = None
    for frame in reversed(found):
        chain = TracebackType(chain, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return chain
