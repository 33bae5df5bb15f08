"""Experiments between sites measure and report; no test asserts a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import sites as benchmark
from sfm_kernel.errors import SFMError
from sfm_kernel.gateway.options import parser
from sfm_kernel.lessons import sites
from sfm_kernel.lessons.__main__ import main
from sfm_kernel.lessons.sites import failing, lab, pairs
from sfm_kernel.lessons.sites.emulated import CANNOT_SHOW, Emulated
from sfm_kernel.lessons.sites.lab import Disturbed, Lab
from sfm_kernel.lessons.sites.routes import ROUTES
from sfm_kernel.lessons.sites.world import LabWorld
from tests.sites.conftest import MakeLab

pytestmark = pytest.mark.zmq  # in CI, a machine without labs is a failure

QUICKEST: dict[str, tuple[str, dict[str, Any]]] = {
    "silence": ("direct", {"silences": (0.0, 0.3), "count": 1}),
    "pairs 8": ("gateway cubic", {"count": 2}),
    "start": ("direct", {}),
    "short": ("gateway", {"count": 10, "amount": 8 << 20}),
    "beside tcp": ("direct bbr", {"length": 1 << 20, "count": 2}),
    "sizes": ("direct", {"lengths": (1 << 20, 4 << 20), "amount": 4 << 20}),
    "loss small": ("gateway cubic x4", {"count": 5}),
    "cut 3": ("gateway", {"seconds": 0.5, "patience": 1.5}),
    "reset": ("direct", {}),
    "died": ("direct", {"count": 1}),
    "killed": ("gateway", {"pairs": 1}),
    "barrier": ("direct", {"count": 2}),
    "requests": ("gateway", {"seconds": 0.3, "schedulers": ("fifo", "round-robin")}),
    "nas MG": ("direct", {}),
}
"""Short forms of experiments: the route, and the arguments that differ from the quick form."""
ALIKE = {
    "cut 10": "cut 3", "cut 20": "cut 3", "loss 4 MB": "loss small", "killed of two": "killed",
    "requests 3": "requests",
}  # fmt: skip
"""Experiments that differ from one of the above in a number."""


def test_bare_tcp_is_measured(make_lab: MakeLab) -> None:
    make_lab(rtt=0)  # or skip
    rows = list(sites.rows(only=["tcp bulk"], ways=["direct"], quick=True))
    assert [row["what"] for row in rows] == [f"10 MB, time {number}" for number in (1, 2, 3)]
    assert all(row["seconds"] >= 0.1 for row in rows)  # the lab is never too fast
    titles = sites.tables(rows)
    assert list(titles) == ["Bare TCP"]
    assert titles["Bare TCP"][0]["direct, s"] >= 0.1


def test_programs_of_one_site_are_in_a_world_with_others(make_lab: MakeLab) -> None:
    lab = make_lab({"A": 2, "B": 1}, rtt=0.005)
    with LabWorld(lab) as world:
        programs = [world.program(*row) for row in (("a", "A", 1), ("b", "A", 2), ("c", "B", 1))]
        for program in programs:
            program.do("join")
        programs[0].begin("serve")
        for program in programs[1:]:
            assert len(program.do("ask", to="a", length=1000, count=3)["seconds"]) == 3
        programs[2].do("stop", to="a")
        assert programs[0].end()["answered"] == 6


@pytest.mark.parametrize("measure", QUICKEST)
def test_an_experiment_is_made_and_its_targets_find_their_rows(
    measure: str, make_lab: MakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_lab(rtt=0)  # or skip
    way, shorter = QUICKEST[measure]
    experiment = sites.measures(quick=True)[measure]
    experiment = experiment._replace(arguments={**experiment.arguments, **shorter})
    monkeypatch.setattr(sites, "measures", lambda quick: {measure: experiment})
    monkeypatch.setattr(failing, "BEFORE", 0.5)
    monkeypatch.setattr(pairs, "PAUSE", 0.1)
    rows = list(sites.rows(only=[measure], ways=[way], quick=True))
    assert rows and all(row["what"] and row["late_ms"] >= 0 for row in rows)
    for row in rows:
        assert row.get("ended", "went on") == "went on" and row.get("kind", "zmq") == "zmq"
        assert not any(row.get(name) for name in ("lost", "doubled", "late", "unheard"))
        if way == "gateway cubic":
            assert row["connections"] == 2  # one, seen from both its ends

    asked = {measure, *(name for name, like in ALIKE.items() if like == measure)}
    found = [
        {**row, "measure": name, "way": each}
        for row in rows for name in asked for each in ROUTES  # rows are alike for all of them
    ]  # fmt: skip
    listed = benchmark.verdicts(found)
    targets = [target for target in benchmark.targets() if target.measure in asked]
    assert [row["what"] for row in listed] == [target.what for target in targets]
    assert not [row["what"] for row in listed if row["measured"] is None]
    assert sites.tables(found)


def test_each_target_s_experiment_is_among_these() -> None:
    assert {target.measure for target in benchmark.targets()} <= {*QUICKEST, *ALIKE}


def test_without_a_lab_gateways_emulate_the_path() -> None:
    with Emulated({"A": 2, "B": 2}, rtt=0.04) as played:
        row, *_ = pairs.small(played, ROUTES["gateway"], count=5)
    assert row["rtts"] >= 1
    with Emulated() as played, pytest.raises(SFMError, match="only gateways emulate a long path"):
        LabWorld(played, ROUTES["direct"])


def test_every_path_between_gateways_can_be_emulated_without_root() -> None:
    """Only root may be allowed to choose another congestion control of TCP than the usual one."""
    usual = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    with Emulated() as played:
        for way in filter(lambda way: way.gateways, ROUTES.values()):
            words = ["--site", "A", *way.options, *played.gateway_options]
            assert parser().parse_args(words).algorithm == usual


def test_without_a_lab_the_emulated_paths_are_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lab, "refusal", lambda: "not here")
    asked = ["tcp silence", "start", "cut 3"]
    rows = list(sites.rows(only=asked, ways=["direct", "gateway"], play=True, quick=True))
    assert {(row["measure"], row["way"], row["played"]) for row in rows} == {
        ("start", "gateway", True)
    }
    assert all(row["late_ms"] > 0 for row in rows)  # the gateways have measured it
    assert sites.tables(rows)["Messages"][0]["played"] == "yes"
    assert "have emulated the path" in sites.doubts(rows) and "Nothing" in sites.doubts([])


def test_the_command_goes_on_if_a_lab_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lab, "refusal", lambda: "not here")
    assert main(["sites", "--only", "tcp silence,start", "--ways", "direct,gateway cubic"]) == 0
    printed = capsys.readouterr().out
    assert printed.count(CANNOT_SHOW) == 1
    assert "Left out: tcp silence, direct." in printed and "not here" in printed
    assert "first round trip" in printed
    assert main(["sites", "--only", "cut 3"]) == 0
    assert "(no rows)" in capsys.readouterr().out


def test_a_path_that_was_emulated_late_has_disturbed_the_measurement() -> None:
    with Emulated() as played:
        played.add_reports([{"emulation": {"late": {"mean_s": 5e-4}}}, {"emulation": None}])
        played.check()
        played.add_reports([{"emulation": {"late": {"mean_s": 3e-3}}}])
        assert played.report() == {"late_mean_s": 3e-3}
        with pytest.raises(Disturbed, match=r"3\.00 ms late"):
            played.check()


def test_a_disturbed_measurement_is_repeated_and_marked(
    make_lab: MakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_lab(rtt=0)  # or skip
    asked = []

    def measured(lab: Lab) -> Iterator[dict[str, Any]]:
        asked.append(lab)
        yield {"what": "nothing", "seconds": 1.0}

    def check(lab: Lab) -> None:
        raise Disturbed("always")

    experiment = {
        "nothing": sites.Experiment(measured, {"rtt": 0.01, "rate": 1e6}, ways=sites.BARE)
    }
    monkeypatch.setattr(sites, "measures", lambda quick: experiment)
    monkeypatch.setattr(Lab, "check", check)
    (row,) = sites.rows(only=["nothing"], ways=["direct"])
    assert row["disturbed"] and len(asked) == sites.AGAIN + 1
    assert "direct (" in sites.doubts([row]) and "Disturbed" in sites.doubts([row])
    (row,) = sites.rows(only=["nothing"], ways=["direct"], quick=True)
    assert row["disturbed"] and len(asked) == sites.AGAIN + 2
    (line,) = sites.summary([row])
    assert line["disturbed"] == "yes"
