"""Targets between sites, without a lab."""

from __future__ import annotations

from benchmarks import sites
from sfm_kernel.lessons import sites as experiments
from tests.lessons.test_sites import row


def test_verdicts_say_whether_a_target_is_met_and_by_how_much_not() -> None:
    eight = "160 kB after 1.4 s of silence, 8 pairs"
    broken = {"lost": 0, "doubled": 0, "late": 0, "ended": "went on"}
    measured = [
        row("pairs 8", "direct", eight, seconds=0.08),
        row("pairs 8", "gateway", eight, seconds=0.02),
        row("pairs 8", "gateway cubic", eight, seconds=0.04),
        row("cut 3", "gateway", "cut of 3 s", seconds=0.5, **broken),
        row("cut 3", "direct", "cut of 3 s", seconds=None, **{**broken, "lost": 2}),
    ]
    found = {(line["what"], line["way"]): line for line in sites.verdicts(measured)}
    silent = "8 pairs, each silent for 1.4 s, 160 kB: times direct"
    assert found[silent, "gateway"]["verdict"] == "met"
    assert found[silent, "gateway cubic"]["verdict"] == "missed by 67%"
    assert found["cut 3: lost, doubled, errors", "gateway"]["verdict"] == "met"
    assert found["cut 3: lost, doubled, errors", "direct"]["verdict"] == "missed"
    assert found["cut 3: flowing again after", "direct"]["verdict"] == "not measured"
    assert not any(what.startswith("barrier") for what, _ in found)


def test_a_disturbed_run_meets_and_misses_no_target() -> None:
    found = {"lost": 0, "doubled": 0, "late": 0, "ended": "went on", "seconds": 0.5}
    measured = [row("cut 3", "gateway", "cut of 3 s", **found) | {"disturbed": True}]

    def verdict(what: str) -> tuple[float, str]:
        (line,) = (line for line in sites.verdicts(measured) if what in line["what"])
        return line["measured"], line["verdict"]

    assert verdict("flowing") == (0.5, "disturbed") and verdict("lost") == (0.0, "disturbed")
    measured.append(row("cut 3", "gateway", "cut of 3 s", **{**found, "seconds": 0.1}))
    assert verdict("flowing") == (0.1, "met")  # the verdict on the other row alone
    measured[0]["lost"] = 1
    assert verdict("lost") == (1.0, "missed")  # which no load excuses


def test_an_answer_that_was_never_heard_is_lost() -> None:
    kept = {"doubled": 0, "late": 0, "ended": "went on", "seconds": 0.5}

    def wrong(**more: int) -> float:
        listed = sites.verdicts([row("cut 3", "gateway", "cut of 3 s", **kept, **more)])
        (line,) = (line for line in listed if "lost" in line["what"])
        return float(line["measured"])

    assert wrong(lost=0, unheard=0) == 0
    assert wrong(lost=0, unheard=2) == 2
    assert wrong(lost=2, unheard=2) == 2  # the same ones


def test_all_targets_are_of_ways_that_their_experiments_have() -> None:
    known = experiments.measures(quick=True)
    for target in sites.targets():
        assert target.way in known[target.measure].ways
