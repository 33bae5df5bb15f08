"""What the words after ``%sfm start`` and ``%sfm connect`` ask for."""

from __future__ import annotations

from collections.abc import Sequence

from IPython.core.error import UsageError

from sfm_kernel.errors import BadName
from sfm_kernel.jupyter.commands import OPTIONS
from sfm_kernel.jupyter.names import engine_names, take_options, take_site
from sfm_kernel.jupyter.settings import Settings, in_words, seconds
from sfm_kernel.jupyter.sites import Sites, take_sites

_DEFAULT_ENGINES = 4
_OPTIONS = OPTIONS["start"]


def wanted_engines(words: Sequence[str]) -> tuple[list[str], str | None, Sites | None]:
    """The engines' names by rank; their site; their sites. Raises UsageError."""
    words, site = wanted_site("start", words)
    for option in words:
        if option.startswith("--") and option.partition("=")[0] not in _OPTIONS:
            raise UsageError(
                f"%sfm start has no option {option}: there are {', '.join(_OPTIONS)}; `%sfm help`"
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
            f"%sfm start: {len(names)} engines are asked for, and --sites has {sites.total}: leave "
            f"the former out"
        )
    return names, None, sites


def wanted_site(command: str, words: Sequence[str]) -> tuple[list[str], str | None]:
    """The words without ``--site``, and what it says. Raises UsageError."""
    try:
        return take_site(words)
    except BadName as problem:
        raise UsageError(f"%sfm {command}: {problem}") from None


def wanted_idle(words: Sequence[str], settings: Settings) -> tuple[list[str], float | None]:
    """The words without ``--idle``, and the seconds that it says; None without it.

    Raises:
        UsageError: it is no time, or longer than the administrator allows.
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
        raise UsageError(f"%sfm start --idle: {settings.place} allows {most} at most")
    return rest, found


def _engine_names(words: Sequence[str]) -> list[str]:
    usage = "%sfm start takes a number (`%sfm start 4`) or names (`%sfm start A B`)"
    wanted: int | Sequence[str] = words
    if len(words) == 1 and words[0].lstrip("+-").isdigit():
        wanted = int(words[0])
    try:
        return engine_names(wanted)
    except BadName as problem:
        raise UsageError(f"{usage}; {problem}") from None
