"""Small tables, diagnoses and notes that print as text and are shown as HTML in a notebook."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from sfm_kernel.directory.sites import are_worth_showing
from sfm_kernel.observe.code_locations import words
from sfm_kernel.observe.drawings.graph import graph
from sfm_kernel.observe.drawings.inboxes import inboxes
from sfm_kernel.observe.snapshot import message_text

_LONGEST = 60
"""Most characters of a value in the text form; the HTML form shows all."""


class Table:
    """Rows under headings. ``str(table)`` is text; a notebook shows ``_repr_html_()``.

    Values are shown by ``str``, None as an empty text. Columns of numbers are aligned to the right.

    Args:
        shades: background colours for a notebook, by row and column.
    """

    def __init__(
        self,
        headings: Sequence[str],
        rows: Sequence[Sequence[object]],
        shades: Mapping[tuple[int, int], str] | None = None,
    ) -> None:
        self.headings = list(headings)
        self.rows = [list(row) for row in rows]
        self._shades = dict(shades or {})
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
        body = "".join(self._html("td", row, nth) for nth, row in enumerate(self.rows))
        return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"

    def _html(self, tag: str, values: Sequence[object], row: int = -1) -> str:
        cells = []
        for column, (value, right) in enumerate(zip(values, self._right, strict=True)):
            style = f"text-align:{'right' if right else 'left'}"
            if shade := self._shades.get((row, column)):
                style += f";background:{shade}"
            cells.append(f'<{tag} style="{style}">{escape(_text(value))}</{tag}>')
        return f"<tr>{''.join(cells)}</tr>"


# Half transparent, so that the text is readable in light and dark themes.
_SHADES = {"running": "rgba(46,160,67,.3)", "blocked": "rgba(219,160,25,.35)"}
_SHADES |= {"polling": _SHADES["blocked"], "unreachable": "rgba(130,130,130,.35)"}
_SHADES |= dict.fromkeys(("ended", "unseen"), _SHADES["unreachable"])
_SHADES |= {"stuck": "rgba(229,72,67,.4)"}


def status_table(processes: Sequence[Mapping[str, Any]], stuck: Collection[object] = ()) -> Table:
    """The states of a snapshot's processes, and their sites if they are informative.

    Args:
        stuck: the names of processes that can never go on; their state has another colour.
    """
    now = time.time()
    sites = are_worth_showing(processes)
    rows = [
        [
            process["name"],
            process["rank"],
            *([process["site"]] if sites else []),
            *_activity(process, now),
            process["depth"],
            process["sent"],
            process["received"],
            process["pid"],
        ]
        for process in processes
    ]
    front = ["name", "rank", *(["site"] if sites else []), "state", "for", "waits in", "where"]
    column = front.index("state")
    kinds = ["stuck" if row[0] in stuck else str(row[column]).partition(" ")[0] for row in rows]
    shades = {(nth, column): _SHADES.get(kind, "") for nth, kind in enumerate(kinds)}
    return Table([*front, "queued", "sent", "received", "pid"], rows, shades)


def _activity(process: Mapping[str, Any], now: float) -> Iterator[object]:
    """A process's state, its duration, the blocked call, and its line."""
    state, waits = process["state"] if process["alive"] else "ended", process["waits"]
    waits = waits if process["alive"] else process["end"]
    if process["unreachable"] is None and process["unseen"] is not None:
        then = f"was {state}{f': {waits}' if waits else ''}"
        yield from ("unseen", f"{max(0.0, now - process['unseen']):.1f} s")
        yield None if state == "running" else then  # the directory alone may know the process
        yield words(process["where"])
        return
    if polls := process["polls"]:
        state, waits, process = "polling", polls["wait"]["text"], polls
    elif process["unreachable"] is not None:
        yield from ("unreachable", f"{max(0.0, now - process['unreachable']):.1f} s", waits, None)
        return
    yield from (state, f"{max(0.0, now - process['since']):.1f} s", waits)
    yield words(process["where"]) if waits and state not in ("idle", "ended") else None


def queue_table(processes: Sequence[Mapping[str, Any]]) -> Table:
    """The messages in the processes' inboxes; messages of libraries are only counted."""
    rows: list[list[object]] = []
    now = time.time()
    for process in processes:
        name, unseen = process["name"], process["unseen"]
        name = name if unseen is None else f"{name} ({now - unseen:.0f} s ago)"
        rows.append([name, process["depth"], process["bytes"], None])
        listed = [message for message in process["messages"] if not message["context_id"]]
        texts = [message_text(message) for message in listed]
        if others := len(process["messages"]) - len(listed):
            texts.append(f"{'and ' if listed else ''}{others} of a library (MPI, a group, …)")
        if (more := process["depth"] - len(process["messages"])) > 0:
            texts.append(f"and {more} more")
        if texts:
            rows[-1][-1] = texts[0]
            rows += [[None, None, None, text] for text in texts[1:]]
    return Table(["name", "queued", "bytes", "messages, the oldest first"], rows)


class SitesView:
    """The sites of a snapshot and the connections between them: two tables, and sentences."""

    def __init__(self, snapshot: Mapping[str, Any]) -> None:
        links = snapshot["links"]
        self._tables = [_sites_table(snapshot["sites"]), *([_links_table(links)] if links else [])]
        self.sentences = sorted({site["sentence"] for site in snapshot["sites"]} - {""})
        self.sentences += [link["sentence"] for link in links if link["trouble"]]
        remarks = {link["sentence"] for link in links if not link["trouble"]}
        self.sentences += sorted(remarks - {""})
        if len(snapshot["sites"]) > 1 and not links:
            self.sentences.append("no connection between these sites is known yet")

    def __repr__(self) -> str:
        return "\n\n".join([*map(repr, self._tables), *self.sentences])

    def _repr_html_(self) -> str:
        tables = "".join(table._repr_html_() for table in self._tables)
        return tables + (_bullets(self.sentences) if self.sentences else "")


def _sites_table(sites: Sequence[Mapping[str, Any]]) -> Table:
    rows = [
        [
            site["name"],
            len(site["processes"]),
            ", ".join(map(str, site["processes"])),
            ", ".join(gateway["name"] for gateway in site["gateways"]),
        ]
        for site in sites
    ]
    return Table(["site", "processes", "who", "gateways"], rows)


def _links_table(links: Sequence[Mapping[str, Any]]) -> Table:
    rows = [
        [
            f"{link['from']} → {link['to']}",
            f"{link['count']} {link['via']}",
            link["algorithm"],
            None if link["rtt_s"] is None else f"{1e3 * link['rtt_s']:.1f}",
            None if link["rate"] is None else f"{8e-6 * link['rate']:.1f}",
            link["cwnd"],
            link["rto"],
            link["retransmissions"],
            link["dup_acks"],
            link["idle_restarts"],
            None if link["silent_s"] is None else f"{link['silent_s']:.0f} s",
        ]
        for link in links
    ]
    front = ["link", "connections", "algorithm", "RTT ms", "Mbit/s", "window"]
    counts = ["timeouts", "resent", "dup acks", "idle restarts", "unanswered"]
    return Table([*front, *counts], rows)


class Diagnosis:
    """The explanation why nothing goes on in a world: a drawing, a title and sentences."""

    def __init__(self, diagnosis: Mapping[str, Any]) -> None:
        self.title: str = diagnosis["title"]
        self.sentences: list[str] = diagnosis["sentences"]
        self._graph = graph(diagnosis)

    def __repr__(self) -> str:
        return "\n".join([self.title, *(f"  {sentence}" for sentence in self.sentences)])

    def _repr_html_(self) -> str:
        drawing = f"<div>{self._graph}</div>" if self._graph else ""
        return f"{drawing}<b>{escape(self.title)}</b>{_bullets(self.sentences)}"


class Queues:
    """The inboxes of a snapshot's processes: boxes in a notebook, a table as text."""

    def __init__(self, processes: Sequence[Mapping[str, Any]]) -> None:
        self._processes = list(processes)

    def __repr__(self) -> str:
        return repr(queue_table(self._processes))

    def _repr_html_(self) -> str:
        return inboxes(self._processes)


class Note:
    """A remark below a cell; a notebook shows it dimmed."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f'<div style="opacity: 0.75; white-space: pre-wrap">{escape(self.text)}</div>'


def _bullets(sentences: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in sentences)}</ul>"


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _short(value: object) -> str:
    text = " ".join(_text(value).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))
