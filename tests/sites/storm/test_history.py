"""The checker finds broken promises, and no others."""

from __future__ import annotations

import pytest

from tests.sites.storm.faults import Plan
from tests.sites.storm.history import Event, violations

A: list[Event] = [[1, "ends", "B", 0], [9, "done"]]
B: list[Event] = [[1, "got", "A", 0], [2, "got", "A", 1], [3, "ends", "A", 2], [9, "done"]]


def test_a_history_without_faults() -> None:
    assert violations({"A": A, "B": B}, {}) == []


@pytest.mark.parametrize(
    ("a", "b", "killed", "found"),
    [
        (A, [*B[:1], [2, "got", "A", 0], *B[1:]], {}, "came twice"),
        (A, [B[1], B[0], *B[2:]], {}, "not the order"),
        (A, [B[1], *B[2:]], {}, "[0] did not come"),
        (A, [B[0], *B[2:]], {}, "[1] did not come"),
        (A[:1], B, {}, "A has not come to its end"),
        ([[1, "lost", "B", "why"], *A], B, {}, "which lives"),
        ([[1, "lost", "B", "why"], *A], B[:2], {"B": 2}, "which was killed"),
        (A[:1], [B[1]], {"A": 3}, "[0] did not come"),
    ],
)
def test_a_broken_promise(
    a: list[Event], b: list[Event], killed: dict[str, float], found: str
) -> None:
    assert any(found in violation for violation in violations({"A": a, "B": b}, killed))


@pytest.mark.parametrize(
    ("a", "b", "killed"),
    [
        ([[1, "told", "B", 0], *A], [B[1], *B[2:]], {}),
        ([[3, "lost", "B", "why"], *A], B[:1], {"B": 2}),
        ([], B[:1], {"A": 2}),  # its second message died with it
    ],
)
def test_a_promise_that_is_kept(a: list[Event], b: list[Event], killed: dict[str, float]) -> None:
    assert [v for v in violations({"A": a, "B": b}, killed) if "end" not in v] == []


def test_a_seed_repeats_its_faults() -> None:
    def faults(seed: int) -> list[str]:
        return [str(fault) for fault in Plan(seed, 60, ["A1", "B2"], 2, 30).faults]

    assert faults(1) == faults(1) != faults(2)
