"""Command-line values: each is checked where it is read, and a bad one says what is wanted."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence

from sfm_kernel.bench.messages import chosen


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
