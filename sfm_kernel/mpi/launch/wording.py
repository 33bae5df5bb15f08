"""The ends of ranks, and their unfinished operations, in words."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sfm_kernel.mpi.launch import reports
from sfm_kernel.mpi.launch.child import Child
from sfm_kernel.mpi.launch.reports import Report
from sfm_kernel.spawn.report import died
from sfm_kernel.watching import call, crash, line_of, stopped, with_lines

DIED = "died"
UNFINISHED = "unfinished"  # the rank ended after MPI_Init, and has not called MPI_Finalize
ABSENT = "absent"  # the rank ended without MPI_Init, in which others wait for it
"""Kinds of reports that only the launcher makes."""

CERTAIN = 2
_CONSEQUENCES = {reports.LOST: 0, reports.CUT_OFF: 0, UNFINISHED: 1}
"""Kinds of failures that another rank's failure may have caused. MPI_Finalize fails, too, if a rank
has given up a call."""

IN_WORDS = (
    reports.INTERRUPTED, reports.CHECKED, reports.CRASHED, reports.FAILED, reports.CUT_OFF,
    reports.ABORTED,
)  # fmt: skip
"""Kinds whose text is not shown itself, but put into words by ``deed``."""

_MOST = 10
"""Largest number of unfinished operations that are shown."""


def weight(child: Child, report: Report) -> int:
    """How likely a failure is the first: ``CERTAIN``, or less if another rank's failure may have
    caused it, as everything that a rank does after it has lost another."""
    return 0 if child.has_lost else _CONSEQUENCES.get(report.kind, CERTAIN)


def deed(child: Child, report: Report) -> str:
    """The end of a rank in words, which follow "rank 3"."""
    if report.kind == reports.ABORTED:
        place, code = call(report.text) if report.text else ("", str(report.status))
        return f"called {'MPI_' if place else ''}Abort({code}){place}"
    if report.kind in (reports.FAILED, reports.CUT_OFF):
        place, why = call(report.text)
        return f"was stopped{place}: {why}"
    if report.kind == reports.INTERRUPTED:
        return f"was interrupted in {interrupted_in(child, report)}"
    if report.kind == UNFINISHED and child.differed:
        return "could not complete MPI_Finalize"
    if report.kind == UNFINISHED:
        return "ended without MPI_Finalize, which every rank calls at its end"
    if report.kind == ABSENT:
        return "ended without MPI_Init, in which others wait for it: every rank calls that"
    if report.kind == reports.CHECKED:
        return f"was stopped in {report.text}"
    if report.kind == reports.CRASHED:
        return f"was killed by {crash(report.text)}"
    if report.kind in (DIED, reports.EXITED):
        return died(child.code if report.kind == DIED else report.status)
    return "raised this"


def failure(child: Child, report: Report, is_alone: bool) -> str:
    """What is shown when a rank has failed: its report, and a sentence.

    Args:
        is_alone: whether there is no other rank.
    """
    text = "" if report.kind in IN_WORDS else report.text
    done = deed(child, report) + (f" (it ran {child.command})" if child.command else "")
    if not is_alone:
        rest = "\nsfm:" if "\n" in done else ";"
        return f"{text}sfm: {child.rank} {done}{rest} the other ranks were ended\n"
    says_all = report.kind == reports.RAISED or (
        report.kind == reports.EXITED and not child.command
    )
    return text if says_all else f"{text}sfm: the program {done}\n"


def interrupted_in(child: Child, report: Report) -> str:
    """The line in which a rank was interrupted, or heard first that another one was."""
    text = report.text
    if report.kind == reports.CUT_OFF:  # the place of its call, as in the report of a signal
        cell, place, _ = text.split("\n", 2)
        text = f"\n{cell}\n{place}"
    elif child.program is None:
        return text
    return stopped(text) or "an unknown line"


def too_soon(child: Child, report: Report | None = None) -> str:
    """The reason why a program was not spawned: a rank has ended before MPI_Init, or reported its
    end."""
    if report is None:
        return f"{child.rank} {died(child.code)} before MPI_Init"
    if report.kind == reports.EXITED and report.text:  # the process could not become its program
        return report.text.strip()
    return f"{child.rank} {deed(child, report)}"


def starting(children: Sequence[Child]) -> str:
    """The ranks that have not begun MPI; "" if there is none."""
    late = [str(child.rank.rank) for child in children if not child.joined]
    if not late:
        return ""
    shown = late if len(late) <= _MOST else [*late[:_MOST], f"{len(late) - _MOST} more"]
    listed = " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
    return f"{listed} {'has' if len(late) == 1 else 'have'} not called MPI_Init yet."


def difference(child: Child, text: str) -> str:
    """A rank's report that collective calls have differed."""
    return f"{child.rank}, in MPI_Finalize: {with_lines(text)}"


def unfinished(children: Sequence[Child], reported: Sequence[tuple[Child, str]]) -> list[str]:
    """The operations that ranks had begun and not ended at MPI_Finalize, in words: requests,
    messages that were not received, epochs of windows.

    native/mpi/src/unfinished.rs reports them. They are shown if the program has otherwise ended
    well, and do not change its exit status.

    Args:
        children: all processes of the launch.
        reported: each reporter, and the text of its report: the number of the process concerned,
            the state of the operation, whether the reporter has sent it a message, and the call
            that has begun it, with its code and its line.
    """
    pairs = [(child, json.loads(text)) for child, text in reported]
    pairs.sort(key=lambda pair: (pair[1][0], pair[0].rank, pair[1][-1]))
    shown = [_operation(children, child, *report) for child, report in pairs[:_MOST]]
    return shown + ([f"and {len(pairs) - _MOST} more"] if len(pairs) > _MOST else [])


def _operation(
    children: Sequence[Child],
    reporter: Child,
    index: int,
    state: str,
    sent: bool,
    call: str,
    code: str,
    line: int,
) -> str:
    subject = str(children[index].rank) if len(children) > 1 else "the program"
    sender = "itself" if reporter is children[index] else str(reporter.rank)
    sender = f" from {sender}" if sent else ""
    return f"{subject} {state}{sender}: {call}{line_of(code, line)}"
