"""Sites on one machine, for class work: ``%sfm start --sites A=4,B=4``.

Engines of different sites share no memory, as if each site were a machine: each site has a folder
for its segments. Each site has a gateway to the others, over TCP on the loopback interface; with
``--delay`` and ``--limit`` the gateways imitate a long and narrow path. They cannot show what such
a path does to TCP's congestion control: ``python -m sfm_kernel.lessons sites`` can.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfm_kernel.directory import check_site, make_folder, make_root, sites_folder
from sfm_kernel.directory.sites import SITE
from sfm_kernel.errors import BadName
from sfm_kernel.gateway.options import bytes_per_second, seconds
from sfm_kernel.jupyter.cluster_files import make_private
from sfm_kernel.jupyter.names import MOST_ENGINES, take_options
from sfm_kernel.spawn import process

SITES_VARIABLE = "SFM_SITES"
"""The environment variable with the sites of a cluster that was started with ``--sites``."""
LOOPBACK = "127.0.0.1"
_PATIENCE = 30.0
"""Seconds that the gateways have to end and to remove the sites' folders."""
_USAGE = "--sites takes names with numbers of engines, as in --sites A=4,B=4"


@dataclass(frozen=True)
class Sites:
    """The sites of a cluster on this machine.

    Attributes:
        counts: name and number of engines of each site; ranks are counted from the first site on.
        options: command-line options of the gateways.
    """

    counts: tuple[tuple[str, int], ...]
    options: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """The number of engines."""
        return sum(count for _, count in self.counts)

    @property
    def names(self) -> list[str]:
        """The sites by number."""
        return [name for name, _ in self.counts]

    @property
    def first(self) -> str:
        """The site that the notebook joins."""
        return self.counts[0][0]

    def number(self, rank: int) -> int:
        """The number of an engine's site."""
        for nth, (_, count) in enumerate(self.counts):
            if rank < count:
                return nth
            rank -= count
        raise BadName(f"these sites have engines for {self.total} ranks only")

    def environment(self) -> dict[str, str]:
        """The environment variables of the controller and the engines."""
        text = json.dumps([list(self.counts), list(self.options)])
        return {SITES_VARIABLE: text, SITE: self.first, "SFM_HOST_IP": LOOPBACK}

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Sites | None:
        """The sites that ``environment`` has put into the environment; None without sites."""
        if not (text := environment.get(SITES_VARIABLE)):
            return None
        counts, options = json.loads(text)
        return cls(tuple((name, count) for name, count in counts), tuple(options))


def settle(rank: int, world: str) -> None:
    """Put this process, an engine that is about to join, into its site, if there are sites."""
    sites = Sites.from_environment(os.environ)
    if sites is not None:
        nth = sites.number(rank)
        make_root()
        top = sites_folder(world)
        folder = os.path.join(top, str(nth))
        make_folder(top)
        make_folder(folder)
        os.environ |= {"SFM_DIR": folder, SITE: sites.names[nth]}


class Gateways:
    """The process that runs the gateways of a cluster's sites; see ``gateways``.

    Args:
        sites: the value of SITES_VARIABLE.
    """

    def __init__(self, cluster: Any, sites: str) -> None:
        log = os.path.join(cluster.profile_dir, "log", f"gateways-{cluster.cluster_id}.log")
        make_private(log)
        path = cluster.controller.connection_files["engine"]
        words = process.python("sfm_kernel.jupyter.gateways", str(os.getpid()), path, sites)
        with open(log, "ab") as output:
            streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
            self._running = process.start(words, **streams)

    def end(self) -> None:
        """End them, after all engines; returns when the sites' folders are removed, too."""
        process.end([self._running], _PATIENCE)


def take_sites(words: Sequence[str]) -> tuple[list[str], Sites | None]:
    """The words without ``--sites``, ``--delay`` and ``--limit``, and the sites that these give.

    Raises BadName, which says what is wrong.
    """
    rest, given = take_options(words, ("--sites", "--delay", "--limit"))
    found = {option: value or "" for option, value in given}
    if "--sites" not in found:
        if found:
            raise BadName(
                f"{next(iter(found))} is for connections between sites: it needs --sites A=4,B=4"
            )
        return rest, None
    options = [*_checked(found, "--delay", seconds), *_checked(found, "--limit", bytes_per_second)]
    return rest, Sites(tuple(_counts(found["--sites"])), tuple(options))


def _checked(found: Mapping[str, str], option: str, check: object) -> list[str]:
    if option not in found:
        return []
    try:
        check(found[option])  # type: ignore[operator]
    except argparse.ArgumentTypeError as problem:
        raise BadName(f"{option} {problem}") from None
    return [option, found[option]]


def _counts(text: str) -> Iterator[tuple[str, int]]:
    known: set[str] = set()
    for item in text.split(","):
        name, equals, count = item.rpartition("=")
        if not equals or not count.isdecimal():
            raise BadName(f"{_USAGE}; {item!r} has no number")
        check_site(name, "the name in --sites")
        if name in known:
            raise BadName(f"--sites names {name} twice: two sites need two names")
        if int(count) == 0:
            raise BadName(f"--sites gives {name} no engine: a site has at least one")
        known.add(name)
        yield name, int(count)
        if int(count) > MOST_ENGINES:
            raise BadName(
                f"{_USAGE}; {count} engines are more than the {MOST_ENGINES} there can be"
            )
