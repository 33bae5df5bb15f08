"""Which names engines may have, and the site that is named beside them."""

from __future__ import annotations

from collections.abc import Sequence

from sfm_kernel.directory.sites import check_site
from sfm_kernel.errors import BadName

MOST_ENGINES = 256


def engine_names(wanted: int | Sequence[str]) -> list[str]:
    """The engines' names by rank: those that are wanted, or "0", "1", … for a number of engines.

    Raises BadName, which says what is wrong with them.
    """
    if isinstance(wanted, int):
        if not 0 < wanted <= MOST_ENGINES:
            raise BadName(f"a number from 1 to {MOST_ENGINES}, not {wanted}")
        return [str(rank) for rank in range(wanted)]
    if not 0 < len(wanted) <= MOST_ENGINES:
        raise BadName(f"from 1 to {MOST_ENGINES} names, not {len(wanted)}")
    for name in wanted:
        if not name.isidentifier() or name.startswith("home") or name == "all":
            raise BadName(f"{name!r} is no name: take letters and digits, not home")
    if len(set(wanted)) < len(wanted):
        raise BadName("a name is there twice")
    return list(wanted)


def take_site(words: Sequence[str]) -> tuple[list[str], str | None]:
    """The words without ``--site NAME`` (or ``--site=NAME``), and the name; None without it.

    Raises BadName where that is no site's.
    """
    rest, found = take_options(words, ("--site",))
    site: str | None = None
    for _, value in found:
        site = check_site(value or "", "--site")
    return rest, site


def take_options(
    words: Sequence[str], options: Sequence[str]
) -> tuple[list[str], list[tuple[str, str | None]]]:
    """The words without these options, and each option with its value.

    They are ``--name VALUE`` or ``--name=VALUE``; the value is None where the words end before it.
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
