"""Sites: where the processes of a world are near each other, and between which the way is long.

A process's site is its machine's, named as the host, unless it is told otherwise. Two machines are
therefore two sites, until they are given one name. Collectives cross the way between sites once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from sfm_kernel.errors import BadName

SITE = "SFM_SITE"
"""The environment variable with the site of the processes that are started with it."""

LONGEST = 64


def check_site(site: Any, given: str = "site") -> str:
    """The name, if it can be one: 1 to 64 printable characters, none of them a space.

    ``given``: how it was given, for the error. Raises BadName.
    """
    if not isinstance(site, str):
        raise BadName(f"{given} is {site!r}, and the name of a site is a text, such as 'lyon'")
    if not site:
        raise BadName(f"{given} is empty: name the site, such as 'lyon', or leave it out")
    if len(site) > LONGEST:
        raise BadName(
            f"{given} has {len(site)} characters, and the name of a site has at most {LONGEST}: "
            f"choose a shorter one than {site[:LONGEST]!r}…"
        )
    if not site.isprintable() or any(map(str.isspace, site)):
        raise BadName(
            f"{given} is {site!r}, and the name of a site has no spaces and nothing that cannot be "
            f"printed: write it in one word, such as 'lyon' or 'lab-2'"
        )
    return site


def wished_site(site: str | None, otherwise: str = "") -> str:
    """What a process asks the directory for: what it was given, or what ``SFM_SITE`` says.

    ``otherwise``: what it is where neither says anything; "" stands for the machine's own.
    Raises BadName.
    """
    if site is not None:
        return check_site(site)
    told = os.environ.get(SITE, "")
    return check_site(told, SITE) if told else otherwise


def are_worth_telling(processes: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the sites of a snapshot's processes say more than their machines do.

    They are several, or somebody has named one.
    """
    told = [(one["site"], one["host"]) for one in processes if one["site"] is not None]
    return len({site for site, _ in told}) > 1 or any(site != host for site, host in told)
