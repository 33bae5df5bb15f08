"""How an engine shows that a deadlock has ended its cell: the user's lines, and the explanation."""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import Any

import sfm_kernel
from sfm_kernel.errors import DeadlockDetected, SFMError

_OWN = os.path.dirname(os.path.abspath(sfm_kernel.__file__)) + os.sep

_MPI = "MPI_ERR_OTHER: "
"""How the text of an MPI.Exception begins that a deadlock has caused."""

_TITLE = "Deadlock: "
"""How every diagnosis of a deadlock begins."""


def install(shell: Any) -> None:
    """From now on this shell shows deadlocks in short; all other errors as ever."""
    shell.set_custom_exc((SFMError,), _show)


def in_short(name: str, value: str) -> tuple[str, str]:
    """The name and the text of an error for a summary: of a deadlock its title, which all share."""
    text = value.removeprefix(_MPI)
    if name == DeadlockDetected.__name__ or (text != value and text.startswith(_TITLE)):
        return DeadlockDetected.__name__, text.partition("\n")[0]
    return name, value


def _show(
    shell: Any,
    kind: type[BaseException],
    value: BaseException,
    tb: TracebackType | None,
    tb_offset: int | None = None,
) -> None:
    """Called by IPython instead of showing the error that is being handled."""
    deadlock = _deadlock(value)
    frames = _without_ours(tb)
    if deadlock is None or frames is None:
        shell.showtraceback(running_compiled_code=True)
        return
    why = str(deadlock)
    if deadlock is not value:
        why += "\n(Raised as MPI.Exception, with the code MPI_ERR_OTHER.)"
    shown = DeadlockDetected(deadlock.cycle, why)  # without what had led to it
    text = shell.InteractiveTB.structured_traceback(type(shown), shown, frames, tb_offset=0)
    shell._showtraceback(type(shown), shown, text)


def _deadlock(value: BaseException) -> DeadlockDetected | None:
    """The error itself, or what has caused it where it is MPI's."""
    if isinstance(value, DeadlockDetected):
        return value
    errors = sys.modules.get("sfm_kernel.mpi.base.errors")  # not imported for that
    if errors is not None and isinstance(value, errors.MPIError):
        cause = value.__cause__
        return cause if isinstance(cause, DeadlockDetected) else None
    return None


def _without_ours(tb: TracebackType | None) -> TracebackType | None:
    """The frames of the user's code; None where there are none.

    The first frame is IPython's, which runs the cell; those of this package have no lines to mend.
    """
    found = []
    while tb is not None:
        tb = tb.tb_next
        if tb is not None and not tb.tb_frame.f_code.co_filename.startswith(_OWN):
            found.append(tb)
    kept: TracebackType | None = None
    for one in reversed(found):
        kept = TracebackType(kept, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return kept
