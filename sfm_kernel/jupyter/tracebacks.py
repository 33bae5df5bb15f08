"""Shows errors with the user's lines only.

A MemoryError in an engine gets a note if an administrator has limited the engine's memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

from IPython.core import compilerop
from IPython.core.error import UsageError

from sfm_kernel.endpoint.seen import cell_of, is_own
from sfm_kernel.errors import DeadlockDetected, SFMError
from sfm_kernel.jupyter.limits import memory_note

_MPI4PY = "src/mpi4py/"
"""The path of mpi4py's compiled code, on the machine that compiled it."""

_MPI = "Exception"
"""The name of the error that a deadlock raises in MPI; its text is the diagnosis."""

_TITLE = "Deadlock: "
"""The beginning of every diagnosis of a deadlock."""

_SHOWN = (Exception, KeyboardInterrupt)
"""The types of errors that this module shows."""

_DEFECTS = (AssertionError, AttributeError, IndexError, KeyError, NameError, ZeroDivisionError)
"""Errors that this package does not raise on purpose: its frames tell what is wrong with it."""

Failed = Callable[[BaseException, "TracebackType | None"], object]

_restart = "%sfm restart"
_failed: Failed | None = None


def install(shell: Any, engine: object = "", failed: Failed | None = None) -> None:
    """Have this shell show errors without frames of this package, and deadlocks of MPI in short.

    All errors are shown as usual if the user has set a handler.

    Args:
        engine: the name of the shell's engine; "" for a notebook.
        failed: called with each error that ends a cell, and with its frames of the user's code.
    """
    global _restart, _failed
    _restart = f"%sfm restart {engine}".rstrip()
    _failed = failed
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
    frames = _without_ours(tb)
    if _failed is not None:
        _failed(value, frames)
    if _is_of_compiler(tb):
        shell.showsyntaxerror()
        if isinstance(value, SyntaxError) and (cell := cell_of(value.filename or "")):
            value.filename = f"cell {cell[0]}"  # for the error's text in other places
        return
    shown: BaseException | None = deadlock(value)
    if shown is None and _is_to_be_cut(value, tb):
        shown = value
    if shown is None or frames is None:
        shell.showtraceback(running_compiled_code=True)
        return
    sys.last_type, sys.last_value, sys.last_traceback = kind, value, tb  # for %debug
    cause, hidden = shown.__cause__, shown.__suppress_context__
    # An error of this package says everything, unless code of the user is its cause.
    if isinstance(shown, SFMError) and (
        cause is None or _without_ours(cause.__traceback__) is None
    ):
        shown.__cause__ = None
    text = shell.InteractiveTB.structured_traceback(type(shown), shown, frames, tb_offset=0)
    shown.__cause__, shown.__suppress_context__ = cause, hidden
    shell._showtraceback(type(shown), shown, text)


def _is_of_compiler(tb: TracebackType | None) -> bool:
    """Whether the error came while the cell was compiled."""
    frames = _frames(tb)
    return bool(frames) and _file(frames[-1]) == compilerop.__file__


def _is_to_be_cut(value: BaseException, tb: TracebackType | None) -> bool:
    """Whether an error has frames of this package that the user need not see."""
    files = [_file(frame) for frame in _frames(tb)]
    if hasattr(value, "_render_traceback_") or isinstance(value, UsageError):
        return False  # IPython shows its text alone
    if isinstance(value, SFMError):
        return True
    return any(map(_is_ours, files)) and not (isinstance(value, _DEFECTS) and _is_ours(files[-1]))


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
    chain: TracebackType | None = None
    for frame in reversed(_frames(tb)[1:]):
        if not _is_ours(_file(frame)):
            chain = TracebackType(chain, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return chain


def _frames(tb: TracebackType | None) -> list[TracebackType]:
    found = []
    while tb is not None:
        found.append(tb)
        tb = tb.tb_next
    return found


def _file(frame: TracebackType) -> str:
    return frame.tb_frame.f_code.co_filename


def _is_ours(file: str) -> bool:
    return is_own(file) or file.startswith(_MPI4PY)
