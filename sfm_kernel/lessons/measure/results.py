"""The parts of a measurement, one after the other: each row is printed and kept at once.

A file of results has a line of JSON for each row, with the name of its ``part``, and one at the end
of each part. Its first line has what makes results comparable: the command, its options, the
machine and its versions. ``--resume`` goes on with such a file, and measures the missing parts.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from sfm_kernel.errors import SFMError
from sfm_kernel.lessons.measure.machine import VARYING, Others
from sfm_kernel.lessons.measure.rows import Row, cell

DISTURBING = 0.1
"""The share of the processors that other programs may take before a row counts as disturbed."""


class Part(NamedTuple):
    """A part of a measurement, which ``--resume`` measures whole, or not at all.

    Attributes:
        name: a different one for each part of a command.
        rows: measures, and yields a row after each measurement.
        seconds: the time that it takes on two cores, about; of all ``rounds`` together.
    """

    name: str
    rows: Callable[[], Iterator[Row]]
    seconds: float
    rounds: int = 1


class Results:
    """The rows of a command.

    Args:
        file: keeps them; None: they are in memory alone.
        about: what makes them comparable, and other facts.
        resume: whether the rows of an existing file count.

    Raises:
        SFMError: the file exists, and should not, or is another command's. It is unchanged.
    """

    def __init__(self, file: Path | None, about: Mapping[str, Any], resume: bool = False) -> None:
        self._file, self._about = file, about
        self._rows: dict[str, list[Row]] = {}
        self.finished: set[str] = set()
        if file is not None and file.exists():
            if not resume:
                raise SFMError(f"{file} exists: --resume goes on with it; another name keeps it")
            self._read(file, about)

    def _read(self, file: Path, about: Mapping[str, Any]) -> None:
        whole, end, begun = file.read_text(encoding="utf-8").rpartition("\n")
        try:
            known, *lines = map(json.loads, whole.splitlines())
            names = [name for name in known | about if name not in VARYING]
            given = json.loads(json.dumps(about))
            differing = [
                f"{name} was {known.get(name)!r} and is {given.get(name)!r}"
                for name in names if known.get(name) != given.get(name)
            ]  # fmt: skip
            if not differing:
                for line in lines:
                    self._take(line)
        except (ValueError, TypeError, KeyError):
            raise SFMError(f"{file} has no results to go on with: give another name") from None
        if differing:
            raise SFMError(
                f"the results in {file} cannot be compared with new ones: {'; '.join(differing)}. "
                f"Give another name, or the same command on the same machine"
            )
        if begun:  # a line that was not written to its end
            file.write_text(whole + end, encoding="utf-8")

    def _take(self, line: Row) -> None:
        if "finished" in line:
            rows = self._rows.setdefault(line["finished"], [])
            del rows[: len(rows) - line["rows"]]  # those of an earlier run that was stopped
            self.finished.add(line["finished"])
        else:
            self._rows.setdefault(line["part"], []).append(line)

    def add(self, line: Row) -> None:
        """Keep a row, or the line that ends a part; the first one begins the file."""
        if self._file is not None:
            lines = [line] if self._file.exists() else [self._about, line]
            text = "".join(json.dumps(each, allow_nan=False) + "\n" for each in lines)
            with self._file.open("a", encoding="utf-8") as file:
                file.write(text)
        self._take(line)

    def rows(self, unfinished: bool = False) -> list[Row]:
        """The rows of all finished parts; ``unfinished``: and of those that were stopped."""
        parts = self._rows if unfinished else self.finished & self._rows.keys()
        return [row for part in self._rows if part in parts for row in self._rows[part]]

    def announcement(self, parts: Sequence[Part]) -> str:
        """What is going to be measured, and how long it takes."""
        left = [part for part in parts if part.name not in self.finished]
        seconds = sum(part.seconds for part in left)
        about = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} minutes"
        rounds = " or ".join(str(n) for n in dict.fromkeys(part.rounds for part in left))
        known = f" ({self._file} has {len(self.finished)} more)" if self.finished else ""
        told = f"to measure: {len(left)}{known}, rounds: {rounds or 'none'}, time: about {about}"
        return "\n  ".join([told, *(part.name for part in left)])

    def measure(self, parts: Sequence[Part]) -> None:
        """Measure the parts that are not finished; print and keep each row at once."""
        others = Others()
        for part in parts:
            if part.name in self.finished:
                continue
            started, count = time.monotonic(), 0
            with closing(part.rows()) as rows:  # type: ignore[type-var]
                for row in rows:
                    share = others.share()
                    disturbed = share > DISTURBING or row.get("disturbed", False)
                    line = {"part": part.name, **row, "others_percent": round(100 * share, 1)}
                    line["disturbed"] = disturbed
                    self.add(line)
                    count += 1
                    print(_shown(line), flush=True)
            seconds = round(time.monotonic() - started, 1)
            self.add({"finished": part.name, "rows": count, "seconds": seconds})

    def doubts(self) -> str:
        """How many rows a busy machine has disturbed; empty if it has disturbed none."""
        rows = self.rows(unfinished=True)
        disturbed = [row for row in rows if row["disturbed"]]
        if not disturbed:
            return ""
        worst = max(row["others_percent"] for row in disturbed)
        return (
            f"{len(disturbed)} of {len(rows)} rows were disturbed: this machine was busy, with up "
            f"to {worst:.0f} % of its processors' time for other programs. Measure again."
        )

    def kept(self) -> str:
        """Where the rows are, and how to go on."""
        if self._file is None:
            return "with --json FILE rows are kept, and --resume goes on"
        count = len(self.rows(unfinished=True))
        return f"{self._file} has {count} rows; the same command with --resume measures the rest"


def _shown(row: Row) -> str:
    """A row as a line; what the name of its part says is not repeated."""
    facts = [
        f"{name} {cell(value)}" for name, value in row.items()
        if value is not None and name != "disturbed"
        and not (isinstance(value, str) and value in row["part"])
    ]  # fmt: skip
    return f"{row['part']} | {', '.join(facts)}{' (disturbed)' if row['disturbed'] else ''}"
