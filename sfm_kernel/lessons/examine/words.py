"""Describes a trial to the student."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from sfm_kernel.lessons.examine.check import Check, same
from sfm_kernel.lessons.examine.trial import LATE, Trial

_LONGEST = 70
"""Characters shown of a value."""

_PRINTED = 12
"""Lines shown of what the processes have printed."""

_LEFT = 3
"""Messages shown of those that were not received."""

_GIVEN = 5
"""Ranks whose arguments are shown."""


def verdict(check: Check, trial: Trial) -> str:
    """The fault of a trial, in words; "" if it has none."""
    fault = _wrong(check, trial)
    if not fault:
        return ""
    lines = [fault, *_called(check, trial), *_printed(trial)]
    if check.note:
        lines.append(check.note)
    return "\n  ".join(line for text in lines for line in text.splitlines())


def _wrong(check: Check, trial: Trial) -> str:
    if trial.failed is not None:
        rank, text = trial.failed
        return f"rank {rank} {text}" if rank >= 0 else text
    if trial.hangs:
        return f"it hangs.\n{trial.hangs}"
    if trial.slow:
        return f"it had not ended after {check.seconds:g} s.\n{trial.slow}"
    assert trial.values is not None
    expected = check.wanted(trial.given)
    for rank, (got, right) in enumerate(zip(trial.values, expected, strict=True)):
        if not same(got, right, check.exact):
            return _differs(check, rank, got, right)
    return _too_much(check, trial)


def _differs(check: Check, rank: int, got: Any, right: Any) -> str:
    text = f"rank {rank} returned {short(got)}, and {short(right)} was expected."
    if got is None and right is not None:
        return f"{text} Does every branch of {check.name} end with a `return`?"
    if check.exact and same(got, right):
        return f"{text} Only the last bits differ: another order of additions rounds differently."
    return text


def _too_much(check: Check, trial: Trial) -> str:
    if trial.left:
        count = len(trial.left)
        shown = [*trial.left[:_LEFT], *(["…"] if count > _LEFT else [])]
        messages = "a message was" if count == 1 else f"{count} messages were"
        return f"the results are right, but {messages} never received: {'; '.join(shown)}."
    size = trial.size
    if check.most is not None and trial.sent > check.most(size):
        allowed = check.most(size)
        return (
            f"the results are right, but the processes sent {_messages(trial.sent)} in all; "
            f"{allowed} {'is' if allowed == 1 else 'are'} enough."
        )
    if check.fewest is not None and trial.sent < check.fewest(size):
        return (
            f"the results are right, but the processes sent only {_messages(trial.sent)} in all; "
            f"the exercise asks for {check.fewest(size)}, each with a chunk."
        )
    if check.most_between is not None and trial.between > check.most_between(size):
        return (
            f"the results are right, but {_messages(trial.between)} went from site to site; "
            f"{check.most_between(size)} are enough."
        )
    if check.busiest is not None and trial.received:
        rank = max(range(size), key=trial.received.__getitem__)
        if trial.received[rank] > check.busiest(size):
            return (
                f"the results are right, but rank {rank} received "
                f"{_messages(trial.received[rank])}; no rank needs more than {check.busiest(size)}."
            )
    return ""


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count} messages"


def _called(check: Check, trial: Trial) -> Iterable[str]:
    """The arguments of the calls, and the rank that began late."""
    calls = [
        f"{check.name}({', '.join(map(short, given))}) on rank {rank}"
        for rank, given in enumerate(trial.given[:_GIVEN])
    ]
    more = ", …" if len(trial.given) > _GIVEN else ""
    if any(trial.given):
        yield f"It was called as {', '.join(calls)}{more}."
    if trial.late is not None and trial.size > 1:
        yield f"Rank {trial.late} began {LATE * 1e3:.0f} ms after the others."
    if check.buffering == 0:
        yield "This check has no buffers: every send waits until its message is received."


def _printed(trial: Trial) -> list[str]:
    lines = [
        f"[{rank}] {line}" for rank, text in enumerate(trial.printed) for line in text.splitlines()
    ]
    if not lines:
        return []
    more = [f"… and {len(lines) - _PRINTED} lines more"] if len(lines) > _PRINTED else []
    return ["It printed:", *lines[:_PRINTED], *more]


def right(check: Check, sizes: Sequence[int]) -> str:
    """The report of an attempt that has passed."""
    return f"✓ {check.name}: right with {_sizes(sizes)}"


def wrong(check: Check, trial: Trial, passed: Sequence[int], fault: str) -> str:
    """The report of a wrong attempt, and the command that repeats its trial."""
    well = f" (right with {_listed(passed)})" if passed else ""
    return (
        f"✗ {check.name}: with {_sizes([trial.size])}{well}, {fault}\n"
        f"  To repeat only this trial: %sfm check {check.name} -n {trial.size} --seed {trial.seed}"
    )


def _sizes(sizes: Sequence[int]) -> str:
    listed = _listed(sizes)
    return f"{listed} process" if listed == "1" else f"{listed} processes"


def _listed(sizes: Sequence[int]) -> str:
    *most, last = map(str, sizes)
    return f"{', '.join(most)} and {last}" if most else last


def short(value: Any) -> str:
    """A value, shortened to about ``_LONGEST`` characters."""
    if isinstance(value, np.ndarray):
        shape = " × ".join(map(str, value.shape))
        text = np.array2string(value, precision=4, threshold=12, edgeitems=2, separator=", ")
        text = " ".join(text.split())
        return text if len(text) <= _LONGEST else f"<array of {shape} {value.dtype}>"
    if isinstance(value, np.generic):
        value = value.item()
    text = repr(value)
    if len(text) > _LONGEST:
        text = _SHORT.repr(value)
    return text if len(text) <= 2 * _LONGEST else f"{text[: 2 * _LONGEST]}…"


_SHORT = reprlib.Repr()
_SHORT.maxlist = _SHORT.maxtuple = 5
_SHORT.maxstring = _SHORT.maxother = 40
