"""Sites on one machine, for class work: ``%sfm start --sites A=4,B=4``.

Engines of different sites share no memory, as if each site were a machine: they have folders of
their own for their segments. A gateway each leads to the others, over TCP of the loopback;
``--delay`` and ``--limit`` have the gateways play a long and narrow way. What such a way does to
TCP's congestion control they cannot show: ``python -m sfm_kernel.lessons sites`` can.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfm_kernel.directory.cleaning import sites_folder
from sfm_kernel.directory.folders import make_folder, make_root
from sfm_kernel.directory.sites import SITE, check_site
from sfm_kernel.errors import BadName
from sfm_kernel.gateway.options import bytes_per_second, seconds
from sfm_kernel.jupyter.names import MOST_ENGINES, take_options
from sfm_kernel.jupyter.places import make_private
from sfm_kernel.spawn import process

TOLD = "SFM_SITES"
"""The environment variable with the sites of a cluster that was started with some."""
LOOPBACK = "127.0.0.1"
_PATIENCE = 30.0
_USAGE = "--sites takes names with numbers of engines, as in --sites A=4,B=4"


@dataclass(frozen=True)
class Sites:
    """The sites of a cluster on this machine.

    Attributes:
        counts: how many engines each has; ranks are counted from the first site on.
        options: of the gateways, for their command line.
    """

    counts: tuple[tuple[str, int], ...]
    options: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """How many engines there are."""
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
        """Of the site in which an engine is."""
        for nth, (_, count) in enumerate(self.counts):
            if rank < count:
                return nth
            rank -= count
        raise BadName(f"these sites have engines for {self.total} ranks only")

    def told(self) -> dict[str, str]:
        """What controller and engines find in their environment."""
        text = json.dumps([list(self.counts), list(self.options)])
        return {TOLD: text, SITE: self.first, "SFM_HOST_IP": LOOPBACK}

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Sites | None:
        """Of what ``told`` has told; None where there are none."""
        if not (text := environment.get(TOLD)):
            return None
        counts, options = json.loads(text)
        return cls(tuple((name, count) for name, count in counts), tuple(options))


def settle(rank: int, world: str) -> None:
    """Have this process, an engine that is about to join, be in its site. Without sites nothing."""
    sites = Sites.of(os.environ)
    if sites is not None:
        nth = sites.number(rank)
        make_root()
        top = sites_folder(world)
        folder = os.path.join(top, str(nth))
        make_folder(top)
        make_folder(folder)
        os.environ |= {"SFM_DIR": folder, SITE: sites.names[nth]}


class Gateways:
    """The gateways of a cluster's sites, which run from now on; see ``gateways``."""

    def __init__(self, cluster: Any, told: str) -> None:
        log = os.path.join(cluster.profile_dir, "log", f"gateways-{cluster.cluster_id}.log")
        make_private(log)
        path = cluster.controller.connection_files["engine"]
        words = process.python("sfm_kernel.jupyter.gateways", str(os.getpid()), path, told)
        with open(log, "ab") as output:
            streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
            self._running = process.start(words, **streams)

    def end(self) -> None:
        """End them, after all engines; returns when the folders of their sites are gone, too."""
        process.end([self._running], _PATIENCE)


def take_sites(words: Sequence[str]) -> tuple[list[str], Sites | None]:
    """The words without ``--sites``, ``--delay`` and ``--limit``, and what these say.

    Raises BadName, which says what is wrong.
    """
    rest, given = take_options(words, ("--sites", "--delay", "--limit"))
    found = {option: value or "" for option, value in given}
    if "--sites" not in found:
        if found:
            raise BadName(
                f"{next(iter(found))} is of the way between sites: it needs --sites A=4,B=4"
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
    for part in text.split(","):
        name, equals, count = part.rpartition("=")
        if not equals or not count.isdecimal():
            raise BadName(f"{_USAGE}; {part!r} has no number")
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
