"""Calls as texts, for tables and errors; and checks of their arguments."""

from __future__ import annotations

from typing import Any


def seconds(timeout: Any) -> float:
    """The timeout as a float; ValueError if it is not a valid one."""
    try:
        number = float(timeout)
    except (TypeError, ValueError):
        number = -1.0
    if not number >= 0:  # NaN as well
        raise ValueError(f"timeout is a number of seconds, 0 or more, not {timeout!r}")
    return number


def short(value: Any) -> str:
    """A value as the user wrote it, short enough for a table; a predicate by its name."""
    if callable(value):
        name = str(getattr(value, "__name__", "predicate"))
        return name if name.startswith("<") else f"<{name}>"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def call(function: str, template: dict[str, Any]) -> str:
    """The call as the user wrote it."""
    return f"{function}({', '.join(f'{k}={short(v)}' for k, v in template.items())})"
