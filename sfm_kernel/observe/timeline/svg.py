"""SVG and HTML as text: elements whose texts and attributes are always escaped."""

from __future__ import annotations

import re
from html import escape
from unicodedata import east_asian_width

# XML has no way to write these; a message may contain them.
_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def element(name: str, /, *children: str, **attributes: str | float | None) -> Markup:
    """``<name attributes>children</name>``.

    Children that are not Markup are texts. In an attribute's name a trailing ``_`` is dropped, and
    other ``_`` become ``-``; an attribute that is None is left out. Numbers get at most two
    decimals.
    """
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{clean(number(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(child if isinstance(child, Markup) else clean(child) for child in children)
    return Markup(f"<{name}{shown}>{inside}</{name}>")


def clean(text: str) -> str:
    """The text, escaped, and without the characters that XML cannot have."""
    return escape(_UNWRITABLE.sub("\ufffd", text))


def number(value: str | float) -> str:
    """A number in as few characters as possible; a text unchanged."""
    if isinstance(value, str):
        return value
    return f"{round(value, 2) + 0.0:.2f}".rstrip("0").rstrip(".")  # + 0.0: no "-0"


def length(text: str, size: float = 11) -> float:
    """The estimated width of a text in a font of ``size`` px, rather too large than too small."""
    wide = sum(east_asian_width(letter) in "WF" for letter in text)
    return (len(text) + wide * 0.8) * size * 0.53


def cut(text: str, width: float, size: float = 11) -> str:
    """The text, shortened to ``width`` px with an ellipsis if it is longer."""
    if length(text, size) <= width:
        return text
    while text and length(text + "…", size) > width:
        text = text[:-1]
    return text + "…"
