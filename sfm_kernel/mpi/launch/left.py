"""What ranks have begun and not ended when they came to MPI_Finalize, in words: requests, messages
that nobody has received, epochs of windows.

Who finds it out is native/mpi/src/left.rs. It is told when the program has come to its end in every
other respect, and changes nothing about that.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from sfm_kernel.mpi.launch.child import Child
from sfm_kernel.watching import line_of

_MOST = 10
"""Lines that are shown."""


def lines(children: Sequence[Child], told: Sequence[tuple[Child, str]]) -> list[str]:
    """What to say.

    Args:
        children: all processes of the launch.
        told: who has reported something, and the text of the report: which process of the launch it
            is about, what has become of it, whether the reporter has sent it something, and the
            call with which that has begun, its code and its line.
    """
    read = [(json.loads(text), child) for child, text in told]
    read.sort(key=lambda one: (one[0][0], one[1].place, one[0][-1]))
    shown = [_line(children, child, *report) for report, child in read[:_MOST]]
    return shown + ([f"and {len(read) - _MOST} more"] if len(read) > _MOST else [])


def _line(
    children: Sequence[Child],
    teller: Child,
    nth: int,
    what: str,
    sent: bool,
    call: str,
    code: str,
    line: int,
) -> str:
    who = str(children[nth].place) if len(children) > 1 else "the program"
    sender = "itself" if teller is children[nth] else str(teller.place)
    sender = f" from {sender}" if sent else ""
    return f"{who} {what}{sender}: {call}{line_of(code, line)}"
