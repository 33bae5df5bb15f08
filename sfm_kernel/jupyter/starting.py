"""Parses the words after ``%sfm start`` and ``%sfm connect``, and says what has started."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

from IPython.core.error import UsageError

from sfm_kernel.directory import Member, check_site
from sfm_kernel.errors import BadName
from sfm_kernel.jupyter.commands import OPTIONS
from sfm_kernel.jupyter.home import Home
from sfm_kernel.jupyter.names import engine_names, take_options
from sfm_kernel.jupyter.settings import Settings, in_words, seconds
from sfm_kernel.jupyter.sites import Sites, take_sites
from sfm_kernel.observe.explain.together import ranges

_DEFAULT_ENGINES = 4

_CROWDED = 4
"""Engines for each core above which ``%sfm start`` says what they cost."""

_DOTS = 16
"""Engines up to which each is a dot while they start."""
_OPTIONS = OPTIONS["start"]


def parse_engines(words: Sequence[str]) -> tuple[list[str], str | None, Sites | None]:
    """The engines' names by rank, their site, and their sites. Raises UsageError."""
    words, site = parse_site("start", words)
    for option in words:
        if option.startswith("--") and option.partition("=")[0] not in _OPTIONS:
            raise UsageError(
                f"%sfm start has no option {option}: it has {', '.join(_OPTIONS)}; see `%sfm help`"
            )
    try:
        words, sites = take_sites(words)
    except BadName as problem:
        raise UsageError(f"%sfm start: {problem}") from None
    if sites is None:
        return _engine_names(words or [str(_DEFAULT_ENGINES)]), site, None
    if site is not None:
        raise UsageError("%sfm start takes --site or --sites, not both")
    names = _engine_names(words or [str(sites.total)])
    if len(names) != sites.total:
        raise UsageError(
            f"%sfm start: {len(names)} engines are requested, but --sites has {sites.total}: give "
            f"only --sites"
        )
    return names, None, sites


def parse_site(command: str, words: Sequence[str]) -> tuple[list[str], str | None]:
    """The words without ``--site``, and its value. Raises UsageError."""
    rest, given = take_options(words, ("--site",))
    try:
        sites = [check_site(value or "", "--site") for _, value in given]
    except BadName as problem:
        raise UsageError(f"%sfm {command}: {problem}") from None
    return rest, sites[-1] if sites else None


def parse_idle(words: Sequence[str], settings: Settings) -> tuple[list[str], float | None]:
    """The words without ``--idle``, and its value in seconds; None without the option.

    Raises:
        UsageError: the value is no time, or longer than the administrator allows.
    """
    rest, given = take_options(words, ("--idle",))
    found: float | None = None
    for _, value in given:
        try:
            found = seconds(value or "")
        except ValueError as problem:
            raise UsageError(f"%sfm start --idle: {problem}") from None
    if found is not None and found > settings.max_idle:
        most = in_words(settings.max_idle)
        raise UsageError(f"%sfm start --idle: {settings.scope} allows {most} at most")
    return rest, found


def _engine_names(words: Sequence[str]) -> list[str]:
    usage = "%sfm start takes a number (`%sfm start 4`) or names (`%sfm start A B`)"
    requested: int | Sequence[str] = words
    if len(words) == 1 and words[0].lstrip("+-").isdigit():
        requested = int(words[0])
    try:
        return engine_names(requested)
    except BadName as problem:
        raise UsageError(f"{usage}; {problem}") from None


# ---- the output ----


def engines_text(home: Home) -> str:
    """The engines of a notebook in a sentence."""
    engines = home.engines()
    plural = "engine" if len(engines) == 1 else "engines"
    names = [member.rank if member.name == member.rank else title(member) for member in engines]
    lost = "".join(f"; {name} has ended (`%sfm restart {name}`)" for name in home.cluster.ended())
    text = ", ".join(ranges(names))
    return f"{len(engines)} {plural}: {text}{lost}; this notebook is {home.sfm.name!r}"


def clusters_text(words: Sequence[str], known: Sequence[object]) -> str:
    """What ``%sfm connect`` can take, in a sentence, after a wrong word."""
    unknown = f"no cluster is called {words[0]}. " if words else ""
    if not known:
        return f"{unknown}No cluster is running; `%sfm start 4` starts one"
    return f"{unknown}Choose one: " + ", ".join(f"`%sfm connect {cluster}`" for cluster in known)


def title(member: Member) -> str:
    """An engine's name, and its rank if that is another."""
    named = str(member.name) != str(member.rank)
    return f"{member.name} (rank {member.rank})" if named else str(member.name)


def cost(home: Home) -> str:
    """What many engines cost on this machine, in a sentence; "" if they are few."""
    cores, engines = len(os.sched_getaffinity(0)), home.engines()
    if len(engines) <= _CROWDED * cores:
        return ""
    memory = sum(_private_memory(member.pid) for member in engines)
    share = "one core" if cores == 1 else f"{cores} cores"
    return (
        f". They share {share}, so each is that much slower while all compute, and they take "
        f"{memory / 1e9:.1f} GB of memory"
    )


def _private_memory(pid: int) -> int:
    """Bytes that would be free without this process; 0 if it has ended."""
    with suppress(OSError), open(f"/proc/{pid}/smaps_rollup") as file:
        private = [line.split() for line in file if line.startswith("Private_")]
        return sum(1024 * int(words[1]) for words in private)
    return 0
