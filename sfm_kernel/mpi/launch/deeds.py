"""What a rank has done that ends the program, in words."""

from __future__ import annotations

from sfm_kernel.mpi.launch import reports
from sfm_kernel.mpi.launch.child import Child
from sfm_kernel.mpi.launch.reports import Report
from sfm_kernel.watching import call, crash

DIED = "died"
UNFINISHED = "unfinished"  # it ended after MPI_Init, and has not called MPI_Finalize
ABSENT = "absent"  # it ended without MPI_Init, in which others wait for it
"""Kinds of reports that no rank can make."""

TOLD = (
    reports.INTERRUPTED, reports.CHECKED, reports.CRASHED, reports.FAILED, reports.CUT_OFF,
    reports.ABORTED,
)  # fmt: skip
"""Kinds whose text is not shown as it is: a deed says it."""


def deed(child: Child, report: Report) -> str:
    """What comes after "rank 3"."""
    if report.kind == reports.ABORTED:
        where, told = call(report.text) if report.text else ("", str(report.status))
        return f"called {'MPI_' if where else ''}Abort({told}){where}"
    if report.kind in (reports.FAILED, reports.CUT_OFF):
        where, told = call(report.text)
        return f"was stopped{where}: {told}"
    if report.kind == reports.INTERRUPTED:
        return f"was interrupted in {report.text}"
    if report.kind == UNFINISHED:
        return "ended without MPI_Finalize, which every rank calls at its end"
    if report.kind == ABSENT:
        return "ended without MPI_Init, in which others wait for it: every rank calls that"
    if report.kind == reports.CHECKED:
        return f"was stopped in {report.text}"
    if report.kind == reports.CRASHED:
        return f"was killed by {crash(report.text)}"
    if report.kind == DIED and child.killed_by:
        return f"was killed by {child.killed_by}"
    if report.kind in (DIED, reports.EXITED):
        return f"ended with exit status {report.status}"
    return "raised this"


def too_soon(child: Child, report: Report | None = None) -> str:
    """Why a program was not spawned that has ended before MPI_Init, or tells why it ends."""
    if report is None:
        return f"{child.place} {deed(child, Report(DIED, child.status or 0))} before MPI_Init"
    if report.kind == reports.EXITED and report.text:  # it could not become its program
        return report.text.strip()
    return f"{child.place} {deed(child, report)}"
