"""The inboxes of a snapshot: a box for each message, coloured by its sender."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from sfm_kernel.observe.drawings.style import LINE, of_senders
from sfm_kernel.observe.timeline.svg import Markup, cut, element

_SHOWN = 12
"""Messages of an inbox that are boxes; the others are a number."""

_WIDTH = 260.0
"""Pixels of a message's text; the whole text is its tooltip."""

_ROW = "display:flex;gap:8px;margin:3px 0"
_BOXES = "display:flex;flex-wrap:wrap;gap:4px;align-items:center"
_BOX = f"border:1px solid {LINE};border-radius:4px;padding:1px 6px;font-size:12px"


def inboxes(processes: Sequence[Mapping[str, Any]]) -> Markup:
    """A row for each process: its messages from the oldest on, as its next receive looks at them.

    What a blocked receive asks for is bold in the messages that have it.
    """
    colours = of_senders(process["name"] for process in processes)
    return element("div", *(_inbox(process, colours) for process in processes))


def _inbox(process: Mapping[str, Any], colours: Mapping[object, str]) -> Markup:
    messages = [message for message in process["messages"] if not message["context_id"]]
    boxes = [_message(message, process, colours) for message in messages[:_SHOWN]]
    rest = process["depth"] - len(boxes)
    if rest > 0:
        others = len(process["messages"]) - len(messages)
        whose = " of a library (MPI, a group, …)" if others == rest else " more"
        boxes.append(element("span", f"{rest}{whose}", style="font-size:12px;opacity:.75"))
    if not boxes:
        boxes.append(element("span", "empty", style="font-size:12px;opacity:.6"))
    name = f"{process['name']}"
    if process["unseen"] is not None:
        name += f" ({time.time() - process['unseen']:.0f} s ago)"
    title = element("b", name, style="flex:0 0 4em;text-align:right")
    return element("div", title, element("div", *boxes, style=_BOXES), style=_ROW)


def _message(
    message: Mapping[str, Any], process: Mapping[str, Any], colours: Mapping[object, str]
) -> Markup:
    asked = _asked(process)
    parts: list[str] = []
    left = _WIDTH
    for name, value in message["attributes"]:
        if name in ("src", "dest"):
            continue
        text = cut(f"{name}={value}", max(left, 30), 12)
        left -= len(text) * 6.4
        parts += [" " if parts else "", element("b", text) if (name, value) in asked else text]
        if left <= 0:
            break
    whole = ", ".join(f"{name}={value}" for name, value in message["attributes"])
    sender = element("i", f"from {message['src']} ", style="opacity:.8")
    ground = colours.get(message["src"], "rgba(130,130,130,.2)")
    return element("span", sender, *parts, title=whole, style=f"{_BOX};background:{ground}")


def _asked(process: Mapping[str, Any]) -> set[tuple[str, str]]:
    """The attributes that a blocked receive asks for, with their values."""
    wait = process["wait"] or (process["polls"] or {}).get("wait")
    template = wait["template"] if wait else ()
    return {(asked["name"], asked["value"]) for asked in template if not asked["predicate"]}
