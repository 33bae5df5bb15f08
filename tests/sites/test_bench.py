"""``python -m sfm_kernel.bench sites``: that it measures, and says what; never how long it took."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sfm_kernel.bench import sites
from sfm_kernel.bench.sites import failing, pairs
from sfm_kernel.bench.sites.emulated import Emulated
from sfm_kernel.bench.sites.lab import Disturbed, Lab
from sfm_kernel.bench.sites.ways import WAYS
from sfm_kernel.bench.sites.world import LabWorld
from sfm_kernel.errors import SFMError

MakeLab = Callable[..., Lab]


def test_bare_tcp_is_measured(make_lab: MakeLab) -> None:
    make_lab(rtt=0)  # or skip
    rows = list(sites.rows(only=["tcp silence"], quick=True))
    assert {row["way"] for row in rows} == set(sites.BARE)
    assert {row["what"] for row in rows} == {
        "160 kB after 0 s of silence",
        "160 kB after 1.2 s of silence",
    }
    assert all(row["rtts"] >= 1 for row in rows)  # the lab is never too fast
    titles = sites.tables(rows)
    assert list(titles) == ["Bare TCP"]
    assert titles["Bare TCP"][0]["direct, RTT"] >= 1


def test_programs_in_different_sites_meet(make_lab: MakeLab) -> None:
    rows = {row["what"]: row for row in pairs.start(make_lab(rtt=0.02))}
    assert set(rows) == {"join", "first message there", "first round trip", "later round trips"}
    assert rows["first round trip"]["rtts"] >= 1


def test_programs_of_one_site_are_in_a_world_with_others(make_lab: MakeLab) -> None:
    lab = make_lab({"A": 2, "B": 1}, rtt=0.005)
    with LabWorld(lab) as world:
        programs = [world.program(*one) for one in (("a", "A", 1), ("b", "A", 2), ("c", "B", 1))]
        for one in programs:
            one.do("join")
        programs[0].begin("serve")
        for one in programs[1:]:
            assert len(one.do("ask", to="a", length=1000, count=3)["seconds"]) == 3
        programs[2].do("stop", to="a")
        assert programs[0].end()["answered"] == 6


def test_gateways_carry_what_goes_between_sites(make_lab: MakeLab) -> None:
    lab = make_lab({"A": 2, "B": 2}, rtt=0.01, algorithm="cubic")
    (row,) = pairs.silent_pairs(lab, WAYS["gateway cubic"], pairs=1, count=2)
    assert row["seconds"] > 0.01 and row["connections"] == 2  # one, seen from both its ends


def test_what_a_killed_gateway_had_arrives_once(make_lab: MakeLab) -> None:
    lab = make_lab({"A": 2, "B": 2}, rtt=0.01)
    (row,) = failing.killed(lab, WAYS["gateway"], pairs=1)
    assert row["ended"] == "went on" and row["heard"] == row["sent"] > 0
    assert (row["lost"], row["doubled"], row["late"], row["kind"]) == (0, 0, 0, "tcp")


def test_where_there_is_no_lab_gateways_play_the_way() -> None:
    with Emulated({"A": 2, "B": 2}, rtt=0.04) as played:
        row, *_ = pairs.small(played, WAYS["gateway"], count=5)
    assert row["rtts"] >= 1
    with Emulated() as played, pytest.raises(SFMError, match="only between gateways"):
        LabWorld(played, WAYS["direct"])


def test_what_was_disturbed_is_measured_again_and_marked(
    make_lab: MakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_lab(rtt=0)  # or skip
    asked = []

    def measured(lab: Lab) -> list[dict[str, Any]]:
        asked.append(lab)
        return [{"what": "nothing", "seconds": 1.0}]

    def check(lab: Lab) -> None:
        raise Disturbed("always")

    experiment = {
        "nothing": sites.Experiment(measured, {"rtt": 0.01, "rate": 1e6}, ways=sites.BARE)
    }
    monkeypatch.setattr(sites, "measures", lambda quick: experiment)
    monkeypatch.setattr(Lab, "check", check)
    (row,) = sites.rows(only=["nothing"], ways=["direct"])
    assert row["disturbed"] and len(asked) == sites.AGAIN + 1
    (line,) = sites.summary([row])
    assert line["disturbed"] == "yes"
