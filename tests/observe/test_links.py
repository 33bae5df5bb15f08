"""Sites and the connections between them: their fields, and the sentences about them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from sfm_kernel.observe.explain.outside import links_in_trouble
from sfm_kernel.observe.links import EMULATED, links_of, over, sites_of

Dict = dict[str, Any]

UIDS = {"P": "1" * 32, "Q": "2" * 32}
SITES = {"P": "A", "Q": "B"}


def process(name: str, **more: Any) -> Dict:
    return {"uid": UIDS[name], "name": name, "site": SITES[name], "alive": True} | more


def line(**more: Any) -> Dict:
    """A connection from P to the site of Q, as native/src/net/report.rs publishes it."""
    return {
        "peer": UIDS["Q"],
        "count": 2,
        "algorithm": "cubic",
        "refused": "",
        "warm": "heartbeat",
        "rtt_s": 0.02,
        "rate": 1000,
        "cwnd": 80,
        "retransmissions": 3,
        "rto": 1,
        "out_of_order": 4,
        "sent_at": time.time(),
        "silent_since": None,
        "timeouts_lately": 0,
        "lately_s": 0,
        "idle_restarts": 0,
        "last_restart": None,
    } | more


def restart(**more: Any) -> Dict:
    """A restart that has just happened, also by a clock that is fast."""
    made = {"at": 1e10, "silence_s": 1.2, "from": 80, "to": 10, "rtt_s": 0.02}
    return made | {"cost_s": 0.06} | more


def direct(clock: float = 0.0, **more: Any) -> Dict:
    reports = {UIDS["P"]: [line(**more)]}
    (found,) = links_of(reports, [process("P"), process("Q")], [], {UIDS["P"]: clock})
    return found


def gateway(**more: Any) -> Dict:
    """A gateway of site A with one connection to B's, as the directory server reports it."""
    connection = {
        "algorithm_asked": "bbr",
        "algorithm": "bbr",
        "silent": False,
        "heard_s": 0.1,
        "idle_restarts": 0,
        "last_restart": None,
        "tcp": {"rtt_s": 0.02, "snd_cwnd": 90, "total_rto": 0, "rcv_ooopack": 7},
    } | more
    peer = {"site": "B", "listed": True, "unreachable_s": None, "connections": [connection]}
    report = {"emulation": None, "gateways": [peer]}
    return {"uid": "a" * 32, "site": "A", "name": "A-1", "address": "tcp://x:1", "report": report}


def test_sites_have_their_processes_and_gateways() -> None:
    found = sites_of([process("Q"), process("P")], [gateway()], {})
    assert [(site["name"], site["processes"], len(site["gateways"])) for site in found] == [
        ("A", ["P"], 1),
        ("B", ["Q"], 0),
    ]


def test_a_line_that_does_well_is_not_talked_about() -> None:
    found = direct()
    assert (found["from"], found["to"], found["via"], found["count"]) == ("A", "B", "direct", 2)
    assert (found["rtt_s"], found["cwnd"], found["rto"]) == (0.02, 80, 1)
    assert found["sentence"] == "" and not found["trouble"]
    assert found["dup_acks"] is None, "B has not told"


def test_the_other_end_tells_of_duplicate_acknowledgements() -> None:
    reports = {UIDS["P"]: [line()], UIDS["Q"]: [line(peer=UIDS["P"], out_of_order=9)]}
    there, back = links_of(reports, [process("P"), process("Q")], [], {})
    assert (there["dup_acks"], back["dup_acks"]) == (9, 4)


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        (
            {"last_restart": restart(), "idle_restarts": 1},
            "the connection A → B was silent for 1.2 s and restarted from 10 segments instead of "
            "80: +60 ms; a gateway would have kept it warm",
        ),
        (
            {"timeouts_lately": 3, "lately_s": 8},
            "the connection A → B had 3 timeouts in the last 8 s: packets are lost",
        ),
        (
            {"refused": "bbr"},
            "the connection A → B was to use bbr, but the kernel gives it cubic",
        ),
    ],
)
def test_troubles_that_cost_time_are_reported(told: Dict, sentence: str) -> None:
    found = direct(**told)
    assert found["trouble"] and found["sentence"] == sentence


def test_a_peer_that_does_not_answer() -> None:
    found = direct(silent_since=time.time() - 12)
    assert found["sentence"].startswith("the connection A → B has had no answer for 12 s; what was")


@pytest.mark.parametrize(
    "last", [restart(cost_s=0.0), restart(at=1e9), None, 7, {"cost_s": "much"}]
)
def test_a_restart_that_cost_nothing_or_is_long_past(last: object) -> None:
    assert direct(last_restart=last, idle_restarts=1)["sentence"] == ""


def test_gateways_tell_of_theirs() -> None:
    (found,) = links_of({}, [], [gateway(last_restart=restart())], {})
    assert (found["via"], found["cwnd"], found["algorithm"]) == ("gateway", 90, "bbr")
    assert "+60 ms; a heartbeat or BBR would have kept it warm" in found["sentence"]
    (silent,) = links_of({}, [], [gateway(silent=True, heard_s=5.0)], {})
    assert silent["silent_s"] == 5.0 and "has had no answer for 5 s" in silent["sentence"]
    played = gateway()
    played["report"]["emulation"] = {"delay_s": 0.02}
    (found,) = links_of({}, [], [played], {})
    assert found["emulated"] and found["sentence"] == EMULATED and not found["trouble"]
    assert found["rtt_s"] == 0.06


def test_a_gateway_that_is_not_reached() -> None:
    alone = gateway()
    (peer,) = alone["report"]["gateways"]
    peer |= {"connections": [], "unreachable_s": 9.0, "trouble": "refused"}
    (found,) = links_of({}, [], [alone], {})
    assert (found["count"], found["sentence"]) == (
        0,
        "the gateway of A has not reached that of B for 9 s (refused): is its address open to A, "
        "and its key this world's?",
    )


def test_a_gateways_notes_are_shown_with_its_site() -> None:
    (a, b) = sites_of([process("P"), process("Q")], [gateway()], {})
    assert a["sentence"] == ""
    assert b["sentence"] == "B has no gateway: messages between it and other sites go directly"
    noted = gateway()
    noted["report"]["notes"] = [
        "two sites\x1b[2J have this name",
        7,
        *("x" * 999 for _ in range(99)),
    ]
    (a,) = sites_of([], [noted], {})
    assert a["sentence"].startswith("gateway A-1: two sites[2J have this name. gateway A-1: xxx")
    assert len(a["sentence"]) < 3000


@pytest.mark.parametrize("wrong", [-3600.0, -3.0, 3.0, 3600.0])
def test_a_clock_that_is_wrong_is_told_and_corrected(wrong: float) -> None:
    their_time = time.time() + wrong
    (a, b) = sites_of([process("P"), process("Q")], [], {UIDS["P"]: -wrong, UIDS["Q"]: 0.1})
    way = "ahead of" if wrong > 0 else "behind"
    assert a["sentence"].startswith(f"a clock at A is {abs(wrong)} s {way} this machine's: times")
    assert b["sentence"] == ""
    silent = direct(clock=-wrong, silent_since=their_time - 12)
    assert silent["silent_s"] == pytest.approx(12, abs=1)
    assert "+60 ms" in direct(clock=-wrong, last_restart=restart(at=their_time - 2))["sentence"]
    assert direct(clock=-wrong, last_restart=restart(at=their_time - 3600))["sentence"] == ""


@pytest.mark.parametrize("wrong", [-3600.0, 3600.0])
def test_a_gateway_s_clock_that_is_wrong_is_corrected(wrong: float) -> None:
    their_time = time.time() + wrong
    for ago, is_reported in ((7.0, True), (3600.0, False)):
        reported = gateway(last_restart=restart(at=their_time - ago))
        reported["report"] |= {"time": their_time - 5, "age": 5.0}
        (found,) = links_of({}, [], [reported], {})
        assert ("+60 ms" in found["sentence"]) is is_reported


@pytest.mark.parametrize("nonsense", [None, 7, [], [7], {}, "x", [{"site": 1, "listed": True}]])
def test_nonsense_is_passed_over(nonsense: object) -> None:
    assert links_of({UIDS["P"]: nonsense}, [process("P")], [], {}) == []  # type: ignore[dict-item]
    connected = gateway() | {"report": {"gateways": nonsense}}
    assert links_of({}, [], [connected], {}) == []
    assert links_of({}, [], [gateway() | {"report": nonsense}], {}) == []
    noted = gateway() | {"report": {"notes": nonsense}}
    assert isinstance(sites_of([], [noted], {})[0]["sentence"], str)


def test_waits_over_a_link_in_trouble_are_reported() -> None:
    links = [direct(silent_since=time.time() - 12)]
    assert list(over(links, "B", "A")) and not list(over(links, "A", "C"))
    pairs = [(process("P"), process("Q")), (process("P"), process("P"))]
    (text,) = links_in_trouble(pairs, links)
    wait, trouble = text.split(": ", 1)
    assert wait == "P waits for Q at another site"
    assert trouble.startswith("the connection A → B has had no answer")
    assert list(links_in_trouble(pairs, [direct()])) == []
