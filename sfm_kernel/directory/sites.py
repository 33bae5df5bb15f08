"""Sites: groups of processes that are near each other, with long paths between the groups.

A process's site has the name of its host, unless the user names another one. Two machines are
therefore two sites, until the user gives them one name. Collectives cross between two sites once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from sfm_kernel.errors import BadName

SITE = "SFM_SITE"
"""The environment variable that names the site of the processes started with it."""

LONGEST = 64


def check_site(site: Any, given: str = "site") -> str:
    """The name, if it is valid: 1 to 64 printable characters, none of them a space.

    ``given``: the argument or variable that it comes from, for the error. Raises BadName.
    """
    if not isinstance(site, str):
        raise BadName(f"{given} is {site!r}, but the name of a site is a text, such as 'lyon'")
    if not site:
        raise BadName(f"{given} is empty: name the site, such as 'lyon', or leave it out")
    if len(site) > LONGEST:
        raise BadName(
            f"{given} has {len(site)} characters, but the name of a site has at most {LONGEST}: "
            f"choose a shorter one than {site[:LONGEST]!r}…"
        )
    if not site.isprintable() or any(map(str.isspace, site)):
        raise BadName(
            f"{given} is {site!r}, but the name of a site has no spaces and only printable "
            f"characters: write it in one word, such as 'lyon' or 'lab-2'"
        )
    return site


def requested_site(site: str | None, default: str = "") -> str:
    """The site that a process requests: ``site``, or that of ``SFM_SITE``, or ``default``.

    "" stands for the machine's site. Raises BadName.
    """
    if site is not None:
        return check_site(site)
    named = os.environ.get(SITE, "")
    return check_site(named, SITE) if named else default


def are_worth_showing(processes: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the sites of a snapshot's processes say more than their machines do.

    They do if there are several, or if the user has named one.
    """
    known = [
        (process["site"], process["host"]) for process in processes if process["site"] is not None
    ]
    return len({site for site, _ in known}) > 1 or any(site != host for site, host in known)
