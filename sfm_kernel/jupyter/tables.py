"""Small tables, diagnoses and notes that print as text and show as HTML in a notebook."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from sfm_kernel.observe.places import words
from sfm_kernel.observe.snapshot import message_text

_LONGEST = 60
"""Characters of a value in the text form; the HTML form shows all."""


class Table:
    """Rows under headings. ``str(table)`` is text; a notebook shows ``_repr_html_()``.

    Values are shown as ``str`` does, None as nothing. Columns of numbers are set to the right.
    """

    def __init__(self, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        self.headings = list(headings)
        self.rows = [list(row) for row in rows]
        columns = zip(*self.rows, strict=True) if self.rows else ([] for _ in headings)
        self._right = [all(map(_is_number, column)) for column in columns]

    def __repr__(self) -> str:
        lines = [self.headings, *([_short(value) for value in row] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        lines.insert(1, ["-" * width for width in widths])
        return "\n".join(self._line(texts, widths) for texts in lines)

    def _line(self, texts: Sequence[str], widths: Sequence[int]) -> str:
        cells = (
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(texts, widths, self._right, strict=True)
        )
        return "  ".join(cells).rstrip()

    def _repr_html_(self) -> str:
        head = self._html("th", self.headings)
        body = "".join(self._html("td", row) for row in self.rows)
        return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"

    def _html(self, tag: str, values: Sequence[object]) -> str:
        cells = []
        for value, right in zip(values, self._right, strict=True):
            side = "right" if right else "left"
            cells.append(f'<{tag} style="text-align:{side}">{escape(_text(value))}</{tag}>')
        return f"<tr>{''.join(cells)}</tr>"


def status_table(processes: Sequence[Mapping[str, Any]]) -> Table:
    """What the processes of a snapshot do."""
    now = time.time()
    rows = [
        [
            one["name"],
            one["rank"],
            *_doing(one, now),
            one["depth"],
            one["sent"],
            one["received"],
            one["pid"],
        ]
        for one in processes
    ]
    front = ["name", "rank", "state", "for", "waits in", "where"]
    return Table([*front, "queued", "sent", "received", "pid"], rows)


def _doing(one: Mapping[str, Any], now: float) -> Iterator[object]:
    """Its state, for how long, the call that waits, and where."""
    state, waits = one["state"] if one["alive"] else "ended", one["waits"]
    if polls := one["polls"]:
        state, waits, one = "polling", polls["wait"]["text"], polls
    yield from (state, f"{max(0.0, now - one['since']):.1f} s", waits)
    yield words(one["where"]) if waits else None


def queue_table(processes: Sequence[Mapping[str, Any]]) -> Table:
    """What waits in their inboxes; messages of libraries are only counted."""
    rows: list[list[object]] = []
    for one in processes:
        rows.append([one["name"], one["depth"], one["bytes"], None])
        own = [message for message in one["messages"] if not message["space"]]
        texts = [message_text(message) for message in own]
        if others := len(one["messages"]) - len(own):
            texts.append(f"{'and ' if own else ''}{others} of a library (MPI, a group, …)")
        if (more := one["depth"] - len(one["messages"])) > 0:
            texts.append(f"and {more} more")
        if texts:
            rows[-1][-1] = texts[0]
            rows += [[None, None, None, text] for text in texts[1:]]
    return Table(["name", "queued", "bytes", "messages, the oldest first"], rows)


class Diagnosis:
    """Why a world does not go on: a title and sentences."""

    def __init__(self, diagnosis: Mapping[str, Any]) -> None:
        self.title: str = diagnosis["title"]
        self.sentences: list[str] = diagnosis["sentences"]

    def __repr__(self) -> str:
        return "\n".join([self.title, *(f"  {one}" for one in self.sentences)])

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{escape(one)}</li>" for one in self.sentences)
        return f"<b>{escape(self.title)}</b><ul>{items}</ul>"


class Note:
    """A remark below a cell: text, and small in a notebook."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f'<div style="opacity: 0.75; white-space: pre-wrap">{escape(self.text)}</div>'


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _short(value: object) -> str:
    text = " ".join(_text(value).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))
