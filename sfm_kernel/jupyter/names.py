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
    rest: list[str] = []
    site: str | None = None
    given = iter(words)
    for word in given:
        option, equals, value = word.partition("=")
        if option == "--site":
            site = check_site(value if equals else next(given, ""), "--site")
        else:
            rest.append(word)
    return rest, site
