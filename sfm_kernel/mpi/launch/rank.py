"""A process of an MPI program in Python: a fork of the launcher.

SFM_MPI_WORLD, SFM_MPI_RANK and SFM_MPI_SIZE identify the rank. It joins the world when the program
imports ``mpi4py.MPI``, and leaves it when all ranks are done.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, suppress
from typing import NoReturn

from sfm_kernel.mpi import discovery, library
from sfm_kernel.mpi.launch import native, program, reports
from sfm_kernel.mpi.launch.reports import Report
from sfm_kernel.spawn.forked import take_signals
from sfm_kernel.spawn.lifeline import die_with

_SHARED = ("sfm_kernel.endpoint.seen", "sfm_kernel.endpoint.variables", "mpi4py", "pickle")
"""The modules that MPI imports, without ``mpi4py.MPI``, which begins MPI."""

_launcher: socket.socket | None = None


def prepare() -> None:
    """Import the modules that every rank needs, once, in the launcher before it forks.

    Raises:
        SFMError: no mpi4py is installed that accepts our library.
    """
    library.load()
    for name in _SHARED:
        importlib.import_module(name)
    discovery.install()
    gc.collect()
    gc.freeze()  # the collector would otherwise copy the pages that ranks share
    flush()


def main(
    words: Sequence[str], environment: Mapping[str, str], launcher: int, reports_fd: int
) -> NoReturn:
    """Run the program in this new process; the exit status is the program's, or 1 if it raises.

    Args:
        words: the program's command, for ``program.run``.
        environment: the complete environment.
        launcher: the launcher's process id.
        reports_fd: the descriptor of the socket for reports.
    """
    global _launcher
    die_with(launcher)
    os.environ.clear()
    os.environ.update(environment)
    os.environ["SFM_MPI_PID"] = str(os.getpid())  # its children are not ranks
    _launcher = socket.socket(fileno=reports_fd)
    take_signals(ignored=[signal.SIGINT])  # until the program runs
    _set_up_streams()
    if "numpy.random" in sys.modules:  # otherwise all ranks would draw the same numbers
        sys.modules["numpy.random"].seed()
    os.register_at_fork(after_in_child=_forget)
    os.environ["SFM_MPI_REPORTS"] = str(reports_fd)
    os.environ["SFM_MPI_ARGV"] = " ".join(words if words[0] != "-c" else [words[0], *words[2:]])
    os.environ.update(native.with_library())  # for its children
    library.install()
    error = _ended_by(words)
    end = Report(reports.FINISHED) if error is None else report(error)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # from here on there is nothing to interrupt
    if end.status:
        flush()
        _send(end)
        if library.is_running():  # skip MPI_Finalize, which would wait for all ranks
            atexit._run_exitfuncs()
            os._exit(end.status)
    sys.exit(end.status)


def _ended_by(words: Sequence[str]) -> BaseException | None:
    """Run the program; returns the exception that has ended it, or None."""
    # Python's own handler, which asyncio and others look for, leaves no frame in tracebacks.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        try:
            _send(Report(reports.READY))
            program.run(words)
        except BaseException as error:  # noqa: BLE001 - the launcher shows every error
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            return error
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt as late:  # its handler ran after a call had failed, or after the end
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        failed = late.__context__
        return None if failed is None else late.with_traceback(failed.__traceback__)
    return None


@atexit.register  # registered early, it runs late: other exit functions may still use MPI
def _leave() -> None:
    """Stay until all ranks are done, even if this one has not used MPI."""
    if _launcher is not None:
        flush()
        if library.is_running():
            _launcher.detach()  # MPI_Finalize, which follows, reports the end
        else:
            _finish()


def _finish() -> None:
    """Report that this rank no longer needs any other, and stay for ranks that send to it.

    Blocks: until all ranks have reported this, or ended.
    """
    from sfm_kernel.endpoint.seen import account

    _send(Report(reports.FINISHED, 0, json.dumps(account())))
    if "sfm_kernel.endpoint.endpoint" in sys.modules:  # otherwise there is nothing to observe
        from sfm_kernel.endpoint.bystanders import rest
        from sfm_kernel.endpoint.endpoint import open_endpoints

        rest(open_endpoints(), _has_ended)
    _has_ended(None)


def _set_up_streams() -> None:
    """Make the output line-buffered, so that the launcher shows each line at once."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:  # the launcher was started without this stream
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True, write_through=False)


def _forget() -> None:
    """In a process that the program forks: it is not a rank."""
    global _launcher
    if _launcher is not None:
        _launcher.close()
        _launcher = None


def flush() -> None:
    """Flush the program's output."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # the program may have closed or replaced the stream
            stream.flush()


def _send(report: Report) -> None:
    if _launcher is not None:
        reports.send(_launcher, report)


def _has_ended(seconds: float | None) -> bool:
    """Wait until all ranks are done or the launcher has died, at most ``seconds``; returns whether
    they are."""
    if _launcher is not None:
        with suppress(OSError):
            _launcher.settimeout(seconds)
            try:
                _launcher.recv(1)
            except TimeoutError:
                return False
    return True


def report(error: BaseException) -> Report:
    """The report of the exception that has ended the program."""
    if isinstance(error, SystemExit):
        if isinstance(error.code, int):
            status, text = error.code & 255, ""
        else:
            status, text = int(error.code is not None), f"{error.code}\n"
        return Report(reports.EXITED if status else reports.FINISHED, status, text)
    if error.__traceback__ is not None:
        error.__traceback__ = error.__traceback__.tb_next  # without `_ended_by`
    if isinstance(error, KeyboardInterrupt):
        status = 128 + signal.SIGINT
        return Report(reports.INTERRUPTED, status, program.location(error))
    is_lost = reports.is_lost(error) or library.is_lost(error)
    kind = reports.LOST if is_lost else reports.RAISED
    if is_lost:
        _send(Report(reports.PEER_LOST))  # the program's hook may end the process
    try:
        return Report(kind, 1, _traceback(error))
    except BaseException as other:  # noqa: BLE001 - the hook has called sys.exit, or was interrupted
        return report(other)


def _traceback(error: BaseException) -> str:
    """The text that Python prints for an error; "" if the program's own ``sys.excepthook`` has
    shown it.

    Raises: what the hook raises that is not an Exception.
    """
    trace = program.without_frames(error.__traceback__)
    error.__traceback__ = trace
    if sys.excepthook is not sys.__excepthook__:
        try:
            sys.excepthook(type(error), error, trace)  # it may end the process, as by MPI's Abort
            return ""
        except Exception:  # noqa: BLE001 - the hook fails itself: show the program's error
            pass
    with redirect_stderr(io.StringIO()) as text:
        sys.__excepthook__(type(error), error, trace)
    return text.getvalue()
