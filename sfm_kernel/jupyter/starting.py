"""Parses the words after ``%sfm start`` and ``%sfm connect``."""

from __future__ import annotations

from collections.abc import Sequence

from IPython.core.error import UsageError

from sfm_kernel.directory.sites import check_site
from sfm_kernel.errors import BadName
from sfm_kernel.jupyter.commands import OPTIONS
from sfm_kernel.jupyter.names import engine_names, take_options
from sfm_kernel.jupyter.settings import Settings, in_words, seconds
from sfm_kernel.jupyter.sites import Sites, take_sites

_DEFAULT_ENGINES = 4
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
