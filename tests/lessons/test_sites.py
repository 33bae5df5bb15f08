"""Sites: experiments, patterns and counts, without a lab."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from sfm_kernel.lessons import sites
from sfm_kernel.lessons.sites import counts, nas, patterns
from sfm_kernel.lessons.sites.patterns import PATTERNS, RANKS, between_sites, played
from sfm_kernel.lessons.sites.program import Numbers
from sfm_kernel.lessons.sites.routes import ROUTES

GIGABYTES = {"BT": 2.8, "CG": 2.37, "IS": 0.74, "LU": 0.62, "MG": 0.19, "SP": 5.1}
"""Between the sites, in all of class B: the paper's Table 2."""


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_ends_and_all_ranks_take_part(name: str) -> None:
    received = played(PATTERNS[name], 3)
    assert len(received) == RANKS and min(received) > 0


def test_a_pattern_that_would_wait_for_ever_is_noticed() -> None:
    def wrong(rank: int) -> list[patterns.Step]:
        return [([], [(rank + 1) % RANKS])]

    with pytest.raises(ValueError, match="wait for ever"):
        played(patterns.Pattern(wrong, 1, 1, ""))


@pytest.mark.parametrize(("name", "gigabytes"), GIGABYTES.items())
def test_as_much_goes_between_the_sites_as_in_the_paper(name: str, gigabytes: float) -> None:
    pattern = PATTERNS[name]
    total = sum(between_sites(pattern)) * pattern.iterations / 1e9
    assert total == pytest.approx(gigabytes, rel=0.08)


def test_messages_between_the_sites_are_those_of_the_paper() -> None:
    found = {name: Counter(between_sites(pattern)) for name, pattern in PATTERNS.items()}
    # Table 2 counts writes of a whole run: 9648 and 16112 of BT's 200 iterations (and one before).
    assert found["BT"] == {26_000: 9648 // 201, 160_000: 16112 // 201}
    assert sum(found["SP"].values()) == (19248 + 32112) // 401
    assert found["CG"] == {150_000: 8}  # 15800 in 1950
    assert found["LU"] == {1000: 200_000 // 250, 200_000: 2000 // 250}
    assert found["FT"][1 << 19] == 2816 // 22 and found["IS"][525_000] == 1400 // 11 + 1
    assert max(found["MG"]) == pytest.approx(135_000, rel=0.01)
    assert sum(found["EP"].elements()) < 2000


def connection(restarts: int, **tcp: Any) -> dict[str, Any]:
    known = {"total_rto": None, "total_retrans": 2, "rcv_ooopack": 1}
    return {"gateway": None, "idle_restarts": restarts, "tcp": {**known, **tcp}}


def test_counts_of_processes_and_of_gateways_are_added_up_alike() -> None:
    restarted, other = connection(1, total_rto=3), connection(0)
    added = {"connections": 2, "restarts": 1, "rto": 3, "retransmitted": 4, "dup_acks": 2}
    assert counts.of_links([restarted, other, {**restarted, "gateway": "its uid"}]) == added
    peer = {"connections": [restarted, other]}
    reports: list[dict[str, Any]] = [{"gateways": [peer]}, {"gateways": []}]
    assert counts.of_reports(reports) == added
    assert counts.of_links([{**restarted, "tcp": None}])["restarts"] == 1  # it has just ended
    assert counts.total([added, added])["rto"] == 6
    assert set(counts.of_reports([])) == set(counts.of_links([])) == set(added)


def test_numbers_that_are_missing_late_or_doubled_are_told() -> None:
    numbers = Numbers()
    for src, number in (("a", 0), ("b", 0), ("a", 1), ("a", 4), ("a", 2), ("a", 4), ("b", 1)):
        numbers.add(src, number)
    assert numbers.counts() == {"lost": 1, "doubled": 1, "late": 1}


def row(measure: str, way: str, what: str, **more: Any) -> dict[str, Any]:
    return {"measure": measure, "way": way, "what": what, "disturbed": False, "rtt_ms": 20.0,
            "late_ms": 0.1, **more}  # fmt: skip


def test_experiments_that_need_no_lab() -> None:
    known = sites.measures(quick=True)
    playable = {name for name, measure in known.items() if measure.playable}
    assert {"start", "pairs 8", "requests", "barrier", "killed", "killed of two"} <= playable
    assert not playable & {"tcp silence", "loss", "cut 3", "reset", *sites.NAS}


def test_all_experiments_are_of_ways_that_there_are() -> None:
    known = sites.measures(quick=True)
    assert list(known) == [*sites.MEASURES, *sites.NAS]
    assert set(sites.QUICK) <= set(known)
    for measure in known.values():
        assert set(measure.usual) <= set(measure.ways) <= set(ROUTES)
    assert ROUTES["gateway"].kind == "gateway" and ROUTES["direct bbr"].kind == "zmq"
    assert ROUTES["direct"].with_gateways(2).gateways == 0
    assert ROUTES["gateway"].with_gateways(2).gateways == 2


def test_the_whole_lab_takes_a_quarter_of_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = sites._parts(sites.MEASURES, None, 1, quick=False, play=False)
    assert len({part.name for part in planned}) == len(planned)
    assert {part.name.partition(":")[0] for part in planned} == set(sites.MEASURES)
    assert sum(part.seconds for part in planned) <= sites.LIMIT

    repeated: list[int] = []
    monkeypatch.setattr(sites, "made", lambda *asked: iter([{"again": asked[-1]}]))
    experiment = sites.measures()["start"]._replace(seconds=100.0)
    for spare in (1000.0, 150.0, 50.0, -50.0):
        (row,) = sites._made({"way": "direct"}, experiment, [spare], quick=False, play=False)
        repeated.append(row["again"])
    assert repeated == [2, 1, 0, 0]


def test_the_nas_tables_say_where_a_gateway_hurts() -> None:
    common = {"pattern": "FT", "computing_s": 1.2, "iterations": 2, "connections": 2}
    measured = [
        row("nas FT", way, "FT", seconds=seconds, **common, **dict.fromkeys(counts.COUNTED, 3))
        for way, seconds in (("direct", 2.0), ("gateway", 3.0), ("direct bbr", 1.0))
    ]
    (line,) = nas.table(measured)
    assert (line["direct, s"], line["gateway"], line["direct bbr"]) == (2.0, 1.5, 0.5)
    assert line["a gateway"] == "hurts"
    assert nas.counts(measured)[0]["restarts"] == 1.5
    assert "NAS: an iteration direct, and times that" in sites.tables(measured)
