"""Names and sentences of many processes in few words.

Fifty processes that are in the same call are one sentence with a plural verb, about "0–49".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_RUN = 5
"""Consecutive ranks from which on a list shows only the first and the last one: "0–4"."""

_PLURAL = {
    "is": "are",
    "has": "have",
    "was": "were",
    "waits": "wait",
    "runs": "run",
    "computes": "compute",
    "sleeps": "sleep",
    "polls": "poll",
}
"""The verbs of sentences that can be about several processes."""

_AGAIN = re.compile(r"\b(it|and) (waits)\b")
"""Where a sentence says more of the same process."""

_WORDS = {"it": "they", "and": "and"}
_SINGULAR = re.compile(r"\b(it|its|itself)\b", re.IGNORECASE)
"""Words that make a sentence one about a single process."""


def ranges(names: Iterable[object]) -> list[str]:
    """The names as texts; of consecutive ranks the first and the last: "0–49"."""
    texts: list[str] = []
    for run in _runs(list(names)):
        texts += [f"{run[0]}–{run[-1]}"] if len(run) >= _RUN else map(str, run)
    return texts


def _runs(names: Sequence[object]) -> list[list[object]]:
    runs: list[list[object]] = []
    for name in names:
        last = runs[-1][-1] if runs else None
        if isinstance(name, int) and isinstance(last, int) and name == last + 1:
            runs[-1].append(name)
        else:
            runs.append([name])
    return runs


def merged(sentences: Iterable[tuple[object, str]]) -> list[tuple[list[object], str]]:
    """Put the processes together whose sentences say the same.

    Args:
        sentences: of each process its name, and the sentences about it, which begin with the name.
    Returns:
        The names of each group, and what the sentences say after the name: in the plural if there
        are several names. Sentences that can only be about one process are whole, and their group
        has no names.
    """
    groups: dict[str, list[object]] = {}
    for name, text in sentences:
        about = text.removeprefix(f"{name} ")
        if about != text and _plural(about):
            groups.setdefault(about, []).append(name)
        else:
            groups[text] = []
    return [
        (sorted(names, key=_by_rank), _plural(about) if len(names) > 1 else about)
        for about, names in groups.items()
    ]


def _by_rank(name: object) -> tuple[bool, int, str]:
    """A key to sort names: ranks first."""
    return not isinstance(name, int), name if isinstance(name, int) else 0, str(name)


def _plural(about: str) -> str:
    """The rest of a sentence after its subject, for several; "" if it can only be about one."""
    verb, space, rest = about.partition(" ")
    rest = _AGAIN.sub(lambda found: f"{_WORDS[found[1]]} {_PLURAL[found[2]]}", rest)
    if verb not in _PLURAL or _SINGULAR.search(rest):
        return ""
    return f"{_PLURAL[verb]}{space}{rest}"
