"""Command-line values: each is checked where it is read, and a bad one says what is wanted."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable


def at_least(lowest: int) -> Callable[[str], int]:
    """A type for argparse: an integer from ``lowest`` on."""

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
