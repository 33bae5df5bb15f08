"""Command-line values: each is checked when it is parsed; the error says what is allowed."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase


def at_least(lowest: int) -> Callable[[str], int]:
    """A type for argparse: an integer, at least ``lowest``."""

    def parse(text: str) -> int:
        try:
            number = int(text.replace("_", ""))
        except ValueError:
            raise ArgumentTypeError(f"{text!r} is not a whole number") from None
        if number < lowest:
            raise ArgumentTypeError(f"must be at least {lowest}, not {number}")
        return number

    return parse


def numbers(text: str) -> tuple[int, ...]:
    """A type for argparse: positive integers, separated by commas."""
    return tuple(map(at_least(1), text.split(",")))


def above_zero(text: str) -> float:
    """A type for argparse: a finite number above 0."""
    try:
        number = float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a number") from None
    if not 0 < number < float("inf"):
        raise ArgumentTypeError(f"must be above 0, not {text}")
    return number


def names(known: Sequence[str], what: str) -> Callable[[str], list[str]]:
    """A type for argparse: some of ``known``, separated by commas, with wildcards * and ?."""

    def parse(text: str) -> list[str]:
        try:
            return chosen(text.split(","), known, what)
        except ValueError as error:
            raise ArgumentTypeError(str(error)) from None

    return parse


def chosen(patterns: Sequence[str] | None, names: Sequence[str], what: str) -> list[str]:
    """The names that match one of the patterns ("array*"), in the order of ``names``; None: all.

    Raises:
        ValueError: a pattern matches nothing; the error lists the names.
    """
    if patterns is None:
        return list(names)
    matching = {
        pattern: [name for name in names if fnmatchcase(name.lower(), pattern.strip().lower())]
        for pattern in patterns
    }
    for pattern, found in matching.items():
        if not found:
            raise ValueError(f"no {what} {pattern!r}; there are {', '.join(names)}")
    return [name for name in names if any(name in found for found in matching.values())]
