"""Checks the names of engines, and takes options out of the words of a command."""

from __future__ import annotations

from collections.abc import Sequence

from sfm_kernel.errors import BadName

MOST_ENGINES = 256
"""The highest number of engines of a cluster."""


def engine_names(requested: int | Sequence[str]) -> list[str]:
    """The engines' names by rank: the requested ones, or "0", "1", … for a number of engines.

    Raises BadName, which says what is wrong.
    """
    if isinstance(requested, int):
        if not 0 < requested <= MOST_ENGINES:
            raise BadName(f"a number from 1 to {MOST_ENGINES}, not {requested}")
        return [str(rank) for rank in range(requested)]
    if not 0 < len(requested) <= MOST_ENGINES:
        raise BadName(f"from 1 to {MOST_ENGINES} names, not {len(requested)}")
    for name in requested:
        if not name.isidentifier() or name.startswith("home") or name == "all":
            raise BadName(f"{name!r} is no name: use letters and digits, but not home or all")
    if len(set(requested)) < len(requested):
        raise BadName("two engines have the same name")
    return list(requested)


def take_options(
    words: Sequence[str], options: Sequence[str]
) -> tuple[list[str], list[tuple[str, str | None]]]:
    """The words without these options, and each option with its value.

    An option is ``--name VALUE`` or ``--name=VALUE``; its value is None if the words end before it.
    """
    rest: list[str] = []
    found: list[tuple[str, str | None]] = []
    given = iter(words)
    for word in given:
        option, equals, value = word.partition("=")
        if option in options:
            found.append((option, value if equals else next(given, None)))
        else:
            rest.append(word)
    return rest, found
