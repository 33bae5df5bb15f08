"""Sites: groups of processes that are near each other, with long paths between the groups.

A process's site has the name of its host, unless the user names another one. Two machines are
therefore two sites, until the user gives them one name. Collectives cross between two sites once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

SITE = "SFM_SITE"
"""The environment variable that names the site of the processes started with it."""


def are_worth_showing(processes: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the sites of a snapshot's processes say more than their machines do.

    They do if there are several, or if the user has named one.
    """
    known = [
        (process["site"], process["host"]) for process in processes if process["site"] is not None
    ]
    return len({site for site, _ in known}) > 1 or any(site != host for site, host in known)
