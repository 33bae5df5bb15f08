"""What students have solved: noted in a student's notebook, and shown as a table to the teacher."""

from __future__ import annotations

import csv
import functools
import io
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

STATES = ("passed", "hangs", "tried")
"""Of an exercise that a check has found right; that has not ended in its last check; that was wrong
in it."""

NOT_YET = "not yet"

COLUMNS = 64
"""Most exercises of a table."""

_NOTE = "student (as the student's machine reports)"
_FORMULA = ("=", "+", "-", "@")
"""With these a spreadsheet's formulas begin."""

Json = dict[str, Any]


class StudentProgress:
    """The checks of exercises in one notebook, and whether its user has raised a hand.

    Attributes:
        hand: when the hand was raised (s since 1970); None while it is down.
    """

    def __init__(self) -> None:
        self.hand: float | None = None
        self._exercises: dict[str, Json] = {}

    def note(self, name: str, state: str) -> None:
        """Note the result of a check. What has passed stays so, whatever is tried later."""
        before = self._exercises.get(name, {"tries": 0, "state": state})
        found = "passed" if before["state"] == "passed" else state
        self._exercises[name] = {
            "name": name,
            "state": found,
            "tries": before["tries"] + 1,
            "time": time.time(),
        }

    def report(self) -> Json:
        """The fields of a report, the exercises that were tried last if there are many."""
        latest = sorted(self._exercises.values(), key=lambda exercise: exercise["time"])
        return {"hand": self.hand, "exercises": latest[-COLUMNS:]}


# ---- the teacher


def table(reports: Iterable[Mapping[str, Any]]) -> Json:
    """Students × exercises, from checked reports.

    A student may have several notebooks, and a kernel that was restarted: reports with one name
    are one student's.

    Returns:
        ``exercises``, the columns; ``students``, the rows by name: each has ``name`` and ``of``,
        which has the state and the number of tries for each exercise that the student has tried.
    """
    students: dict[str, dict[str, Json]] = {}
    for report in reports:
        row = students.setdefault(report["name"], {})
        for exercise in report["exercises"]:
            row[exercise["name"]] = _together(row.get(exercise["name"]), exercise)
    columns = _columns(students.values())
    rows = []
    for name, row in sorted(students.items(), key=lambda entry: entry[0].casefold()):
        tried = {column: row[column] for column in columns if column in row}
        shown = {
            column: {key: of[key] for key in ("state", "tries")} for column, of in tried.items()
        }
        rows.append({"name": name, "of": shown})
    return {"exercises": columns, "students": rows}


def csv_of(found: Mapping[str, Any]) -> str:
    """A table as CSV, for spreadsheets."""
    text = io.StringIO()
    written = csv.writer(text)
    written.writerow([_NOTE, *found["exercises"]])
    for student in found["students"]:
        states = [student["of"].get(name, {}).get("state", NOT_YET) for name in found["exercises"]]
        written.writerow([_no_formula(student["name"]), *states])
    return text.getvalue()


def _together(one: Json | None, other: Json) -> Json:
    """What two notebooks of a student report about an exercise."""
    if one is None:
        return {"state": other["state"], "tries": other["tries"], "time": other["time"]}
    latest = max(one, other, key=lambda exercise: exercise["time"])
    passed = "passed" in (one["state"], other["state"])
    tries = one["tries"] + other["tries"]
    return {**latest, "state": "passed" if passed else latest["state"], "tries": tries}


def _columns(rows: Iterable[Mapping[str, Json]]) -> list[str]:
    """The exercises that somebody has tried: the notebooks' in their order, then other ones.

    A student can make names up: of too many, those remain that most students report.
    """
    tried = Counter(name for row in rows for name in row)
    known = [name for name in _known() if name in tried] if tried else []
    others = [name for name, _ in tried.most_common() if name not in known]
    return (known + others)[:COLUMNS]


@functools.cache
def _known() -> Sequence[str]:
    """The exercises of the notebooks, in their order."""
    from sfm_kernel.lessons.examine.check import checks  # NumPy, which a class may not need

    return list(checks())


def _no_formula(text: str) -> str:
    """A text that a spreadsheet shows and does not run."""
    return f"'{text}" if text.startswith(_FORMULA) else text
