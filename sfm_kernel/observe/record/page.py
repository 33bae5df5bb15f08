"""The recorded file: HTML that any browser shows, and that loads nothing.

Texts of programs and messages are inserted as text, never as markup. The policy in the head allows
only the script with the hash that it names, whatever might get into the page.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import platform
import re
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from sfm_kernel.observe import code_locations
from sfm_kernel.observe.drawings.graph import graph
from sfm_kernel.observe.record.listing import CodeLocation, Listing, key_of
from sfm_kernel.observe.snapshot import message_text
from sfm_kernel.observe.timeline import Timeline, words
from sfm_kernel.observe.timeline.svg import Markup, clean, element

if TYPE_CHECKING:
    from sfm_kernel.observe.record import ProvenDeadlock

Facts = Mapping[str, object]
"""Facts that the times depend on, by name: processor, cores, versions."""


def page(
    *,
    title: str,
    name: str,
    deadlocks: Sequence[ProvenDeadlock],
    run: Timeline,
    diagnosis: Mapping[str, Any],
    snapshot: Mapping[str, Any],
    output: str,
    code: Sequence[Listing],
    notes: Sequence[str],
    facts: Facts | None,
) -> str:
    """The file's text."""
    links = _Links(code)
    date = time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(snapshot["time"]))
    heading = title or f"A run of {_names(run.data['processes'], snapshot['processes'])}"
    header = element("header", element("h1", heading), element("p", *_subtitle(name, date, run)))
    sections = [
        *(element("p", note, class_="note") for note in notes),
        _why(diagnosis, links),
        *_earlier_deadlocks(deadlocks, run.data["begin"], links),
        _section("Timeline", element("div", Markup(run._repr_svg_()), id="sfm-timeline")),
        *_output(output),
        *_code(code),
        *_processes(snapshot, links),
        *_queues(snapshot["processes"]),
        _section("Where and when", _facts({**(facts or machine()), "time": date}, snapshot)),
    ]
    data = {"timeline": run.data, "diagnosis": diagnosis, "snapshot": snapshot}
    data["listings"] = {listing.key: nth for nth, listing in enumerate(code)}
    script = _file("page.js")
    head = [
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">',
        '<meta name="viewport" content="width=device-width">',
        '<meta name="color-scheme" content="light dark">',
        element("title", " · ".join(filter(None, (heading, name)))),
        f"<style>{_file('page.css')}</style>",
    ]
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head>',
            *head,
            '</head><body class="sfm-Page sfm-Record">',
            header,
            element("main", *sections),
            f'<script type="text/plain" id="sfm-recorded">{_compressed(data)}</script>',
            f"<script>{script}</script>",
            "</body></html>",
            "",
        ]
    )


def machine() -> dict[str, object]:
    """Versions, and the facts about the machine that need no measuring."""
    from importlib import metadata  # 0.1 s, which most programs need not wait for

    facts: dict[str, object] = {
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "python": platform.python_version(),
    }
    for name in ("sfm-kernel", "numpy", "mpi4py"):
        try:
            facts[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            pass
    return facts


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _compressed(data: object) -> str:
    """JSON in a tenth of its bytes, as labextension/src/record/index.tsx reads it; no markup."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode())).decode()


# ---- the sections


_LOCATION = re.compile(r"(cell \d{1,9}|[\w.-]{1,200}|<[\w -]{1,60}>), line (\d{1,9})", re.ASCII)
"""A location in the form of ``code_locations.words``."""


class _Links:
    """Code locations as links to their lines, if their code is on the page."""

    def __init__(self, code: Sequence[Listing]) -> None:
        self._known = {listing.key: (nth, len(listing.lines)) for nth, listing in enumerate(code)}
        self._titles = {listing.title: self._known[listing.key] for listing in code}

    def to(self, location: CodeLocation | None) -> Markup:
        """The location in words; empty if there is none."""
        if location is None:
            return Markup("")
        text = code_locations.words(dict(location))
        listing, lines = self._known.get(key_of(location), (0, 0))
        if not 1 <= location["line"] <= lines:
            return Markup(clean(text))
        return element("a", text, href=f"#code-{listing}-{location['line']}")

    def within(self, text: str) -> Markup:
        """Sentences with their locations as links."""
        parts: list[str] = []
        end = 0
        for found in _LOCATION.finditer(text):
            listing, lines = self._titles.get(found[1], (0, 0))
            if 1 <= int(found[2]) <= lines:
                link = element("a", found[0], href=f"#code-{listing}-{int(found[2])}")
                parts += [clean(text[end : found.start()]), link]
                end = found.end()
        return Markup("".join([*parts, clean(text[end:])]))


def _subtitle(name: str, date: str, run: Timeline) -> Iterator[str]:
    if name:
        yield from (element("b", name), " · ")
    yield f"{date} · {run.heading()}"


def _names(*lists: Sequence[Mapping[str, Any]]) -> str:
    processes = {process["uid"]: process for some in lists for process in some}.values()
    ranked = [process for process in processes if process["rank"] is not None]
    ranked.sort(key=lambda process: process["rank"])
    names = [str(process["name"]) for process in ranked or processes]
    if len(names) > 6:
        return words.count(len(names), "process")
    *others, last = names or ["nobody"]
    return f"{', '.join(others)} and {last}" if others else last


def _why(diagnosis: Mapping[str, Any], links: _Links) -> Markup:
    items = [element("li", links.within(sentence)) for sentence in diagnosis["sentences"]]
    verdict = element("p", diagnosis["title"], class_=f"verdict {diagnosis['verdict']}")
    parts = [
        verdict,
        element("ul", *items) if items else "",
        element("div", graph(diagnosis) or "", id="sfm-graph"),
    ]
    return _section("When it was recorded", *parts)


def _earlier_deadlocks(
    deadlocks: Sequence[ProvenDeadlock], begin: float, links: _Links
) -> Iterator[Markup]:
    if deadlocks:
        items = []
        for deadlock in deadlocks:
            text = element("pre", links.within(deadlock.text))
            items.append(element("li", f"After {words.duration(deadlock.time - begin)}:", text))
        yield _section("What had hung before", element("ol", *items, class_="deadlocks"))


def _output(text: str) -> Iterator[Markup]:
    if text:
        shown = element("pre", text, tabindex=0, aria_label="output")
        yield _section("Output", element("div", shown, class_="sfm-Output"))


def _code(code: Sequence[Listing]) -> Iterator[Markup]:
    if not code:
        return
    shown = []
    for nth, listing in enumerate(code):
        # The style sheet draws the numbers, so that copied code has none.
        lines = [
            element("span", line, "\n", id=f"code-{nth}-{number}", data_line=number)
            for number, line in enumerate(listing.lines, 1)
        ]
        label = f"code of {listing.title}"
        text = element("pre", *lines, tabindex=0, aria_label=label)
        shown += [element("h3", listing.title), text]
    yield _section("Code", element("div", *shown, class_="sfm-Listings"))


def _processes(snapshot: Mapping[str, Any], links: _Links) -> Iterator[Markup]:
    headings = ["name", "rank", "site", "state", "for", "waits in", "where"]
    headings += ["queued", "sent", "received"]
    rows = []
    for process in snapshot["processes"]:
        lasted = words.duration(max(0.0, snapshot["time"] - process["since"]))
        waits, location = process["waits"], process["where"]
        if polls := process["polls"]:
            waits, location = f"polls {polls['wait']['text']}", polls["where"]
        state = process["state"]
        if process["unseen"] is not None:
            ago = words.duration(snapshot["time"] - process["unseen"])
            state = f"{state} (seen {ago} ago)"
        cells = [process["name"], process["rank"], process["site"], state, lasted, waits]
        counts = [process["depth"], process["sent"], process["received"]]
        rows.append(_row(process["name"], [*cells, links.to(location), *counts]))
    if rows:
        yield _section("Processes", _table(headings, rows))


def _queues(processes: Sequence[Mapping[str, Any]]) -> Iterator[Markup]:
    rows = []
    for process in processes:
        messages = [message for message in process["messages"] if not message["context_id"]]
        texts = [message_text(message) for message in messages]
        if others := process["depth"] - len(messages):
            texts.append(f"{'and ' if texts else ''}{others} more")
        rows += [
            _row(None, ["" if nth else process["name"], "" if nth else process["depth"], text])
            for nth, text in enumerate(texts)
        ]
    if rows:
        yield _section("Left in inboxes", _table(["inbox of", "queued", "the oldest first"], rows))


def _facts(facts: Facts, snapshot: Mapping[str, Any]) -> Markup:
    hosts = sorted({process["host"] for process in snapshot["processes"] if process["host"]})
    known = {**facts, "hosts": ", ".join(hosts), "world": snapshot["world"]}
    pairs = [element("dt", key) + element("dd", _text(value)) for key, value in known.items()]
    return element("dl", *map(Markup, pairs))


# ---- markup


def _section(heading: str, *parts: str) -> Markup:
    return element("section", element("h2", heading), *parts)


def _table(headings: Iterable[str], rows: Iterable[Markup]) -> Markup:
    head = element("tr", *(element("th", heading, scope="col") for heading in headings))
    table = element("table", element("thead", head), element("tbody", *rows))
    return element("div", table, class_="wide", tabindex=0)


def _row(name: object, values: Iterable[object]) -> Markup:
    cells = [
        element("td", _text(value), class_="number" if isinstance(value, int) else None)
        for value in values
    ]
    return element("tr", *cells, data_name=None if name is None else str(name))


def _text(value: object) -> str:
    if isinstance(value, Markup):
        return value
    return "" if value is None else str(value)
