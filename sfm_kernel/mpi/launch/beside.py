"""A Python rank beside C's: the program with the real mpi4py, on our libmpi.so.12.

It reports as ``rank`` does, on the socket that the library has, too: what ends it, with the lines
of the program alone. mpi4py's own ``python -m mpi4py`` could only call Abort.
"""

from __future__ import annotations

import atexit
import os
import signal
import socket
import sys
from types import FrameType
from typing import NoReturn

from sfm_kernel.mpi.launch import program, rank, reports
from sfm_kernel.mpi.launch.reports import Report


def main() -> None:
    """Run the program that ``sys.argv`` names, to its end; where it fails this does not return.

    Stop is taken between two calls of the library, which does not return for it.
    """
    launcher = socket.socket(fileno=int(os.environ["SFM_MPI_REPORTS"]))
    os.register_at_fork(after_in_child=launcher.close)  # what it forks is no rank
    error = _ended_by()
    report = rank.report(error) if error is not None else Report(reports.FINISHED)
    if report.kind == reports.RAISED and _is_lost(error):
        report = report._replace(kind=reports.LOST)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # from here on there is nothing to interrupt
    if report.status:
        atexit._run_exitfuncs()
        _end(launcher, report)
    launcher.detach()  # it is the library's, which now says that it has finished


def _ended_by() -> BaseException | None:
    """Run the program; what has ended it, if it has not come to its end."""
    runs = True

    def interrupt(number: int, frame: FrameType | None) -> None:
        if runs:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        try:
            program.run(sys.argv[1:])
        except BaseException as error:  # noqa: BLE001 - whatever it is, the launcher shows it
            runs = False
            return error
        runs = False
    except KeyboardInterrupt as late:  # of a call that has failed meanwhile: that is where it was
        runs = False
        where = late.__context__.__traceback__ if late.__context__ is not None else None
        return late.with_traceback(where or late.__traceback__)
    return None


def _end(launcher: socket.socket, report: Report) -> NoReturn:
    """End without MPI_Finalize, in which the library would wait for all."""
    rank.flush()
    reports.send(launcher, report)
    os._exit(report.status)


def _is_lost(error: BaseException | None) -> bool:
    """Whether a call has failed since another process is gone."""
    module = sys.modules.get("mpi4py.MPI")
    if module is None or not isinstance(error, module.Exception):
        return False
    return bool(error.Get_error_class() == getattr(module, "ERR_PROC_ABORTED", None))
