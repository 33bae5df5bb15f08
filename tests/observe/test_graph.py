"""Stuck processes in made-up snapshots: the waits, and each reason to doubt."""

from __future__ import annotations

from typing import Any

import pytest

from sfm_kernel.observe.explain.graph import YOUNG
from sfm_kernel.observe.snapshot import SHARED
from tests.observe.pictures import (
    NOW,
    Dict,
    blocked,
    collective,
    dead,
    engine,
    idle,
    judge,
    notebook,
    other,
    peer,
    process,
    recv,
    send,
    uid,
)


def stuck(*processes: Dict) -> tuple[list[Any], list[Any]]:
    """The cycle, and all stuck processes."""
    found = judge(*processes)
    assert (found["verdict"] == "deadlock") == bool(found["stuck"])
    return found["cycle"], found["stuck"]


NOBODY: tuple[list[Any], list[Any]] = ([], [])
ended = {"kind": "process"}


# ---- waits ----


def test_two_receive_from_each_other() -> None:
    assert stuck(recv("A", "B"), recv("B", "A"), process("C")) == (["A", "B"], ["A", "B"])


def test_a_send_and_a_receive() -> None:
    found = judge(recv("A", "B"), send("B", "A"), process("C"))
    assert found["cycle"] == ["A", "B"]
    assert [(edge["from"], edge["to"], edge["kind"], edge["cycle"]) for edge in found["edges"]] == [
        ("A", "B", "recv", True),
        ("B", "A", "send", True),
    ]


def test_ranks_address_those_who_have_names() -> None:
    assert stuck(recv("A", 1), recv("B", 0), process("C")) == (["A", "B"], ["A", "B"])


def test_a_name_goes_before_a_rank() -> None:
    """The process named 1 has rank 0; the one of rank 1 computes."""
    assert stuck(recv(1, 2), process("B"), recv(2, 1)) == ([1, 2], [1, 2])


def test_one_who_computes_frees_those_who_wait_for_it() -> None:
    assert stuck(recv("A", "B"), recv("B", "C"), process("C")) == NOBODY
    found = judge(recv("A", "B"), recv("B", "C"), process("C"))
    assert found["verdict"] == "waiting" and found["since"] is None
    assert [judged["verdict"] for judged in found["processes"]] == ["waits", "waits", "acts"]


def test_any_of_several_is_enough() -> None:
    assert stuck(recv("A", "B", "C"), recv("B", "A"), process("C")) == NOBODY
    assert stuck(recv("A", "B", "C"), recv("B", "A"), recv("C", "A"))[1] == ["A", "B", "C"]


def test_a_collective_call_needs_all() -> None:
    cycle, all_of_them = stuck(collective("A", "B", "C"), recv("B", "A"), process("C"))
    assert (cycle, all_of_them) == (["A", "B"], ["A", "B"]), "B will not come, even if C does"
    assert stuck(collective("A", "B", "C"), process("B"), process("C")) == NOBODY


def test_one_who_waits_for_itself() -> None:
    assert stuck(send("A", "A"), process("B"), process("C")) == (["A"], ["A"])
    assert judge(send("A", "A"))["title"] == "Deadlock: A waits for itself"


def test_victims_are_stuck_and_no_part_of_the_cycle() -> None:
    found = judge(recv("A", "B"), recv("B", "C"), recv("C", "B"), recv("D", "A"))
    assert (found["cycle"], found["stuck"]) == (["B", "C"], ["A", "B", "C", "D"])
    assert [judged["name"] for judged in found["processes"]] == ["B", "C", "A", "D"]


def test_the_first_of_several_cycles_is_reported_and_all_are_stuck() -> None:
    found = judge(recv("A", "D"), recv("B", "C"), recv("C", "B"), recv("D", "A"), recv("E", "A"))
    assert (found["cycle"], found["stuck"]) == (["A", "D"], ["A", "B", "C", "D", "E"])
    assert found["sentences"][-2:] == ["E waits for them.", "B and C can never go on, either."]


def test_a_cycle_out_of_which_no_wait_leads_is_told_first() -> None:
    """A and B wait for each other, and B for the barrier of C and D, too."""
    found = judge(recv("A", "B"), collective("B", "A", "C"), recv("C", "D"), recv("D", "C"))
    assert (found["cycle"], found["stuck"]) == (["C", "D"], ["A", "B", "C", "D"])


def test_a_receive_from_any_sender_waits_for_no_particular_one() -> None:
    found = judge(recv("A"), recv("B"), recv("C"))
    assert (found["cycle"], found["stuck"]) == ([], ["A", "B", "C"])
    assert found["title"] == "Deadlock: A, B and C wait for a message that nobody will send"
    found = judge(recv("A", "B"), recv("B", "A"), recv("C"))
    assert (found["cycle"], found["stuck"]) == (["A", "B"], ["A", "B", "C"])
    assert found["sentences"][1] == "C waits for the text. No process is left that could send."
    assert found["sentences"][-1] == "C can never go on, either."
    assert stuck(recv("A"), recv("B"), process("C")) == NOBODY


def test_a_receive_from_any_sender_has_edges_to_those_that_could_send() -> None:
    found = judge(recv("A"), recv("B", "A"), idle("C", **ended))
    assert [(edge["from"], edge["to"]) for edge in found["edges"]] == [("A", "B"), ("B", "A")]


def test_the_last_to_halt_says_since_when() -> None:
    assert judge(recv("A", "B", since=NOW - 5), recv("B", "A", since=NOW - 2))["since"] == NOW - 2


@pytest.mark.parametrize(
    ("processes", "verdict"),
    [
        ([], "empty"),
        ([dead("A"), dead("B", "left")], "empty"),
        ([process("A"), idle("B")], "running"),
        ([idle("A"), idle("B")], "idle"),
        ([process("A"), recv("B", "A")], "waiting"),
        ([recv("A", "B"), recv("B", "A")], "deadlock"),
    ],
)
def test_verdicts(processes: list[Dict], verdict: str) -> None:
    assert judge(*processes)["verdict"] == verdict


# ---- processes that have ended ----


def test_a_wait_for_a_program_that_has_ended() -> None:
    assert stuck(recv("A", "B"), idle("B", **ended)) == ([], ["A"])
    assert stuck(send("A", "B"), idle("B", **ended)) == ([], ["A"])
    assert stuck(collective("A", "B", "C"), idle("B", **ended), process("C")) == ([], ["A"])
    title = "Deadlock: A waits for a message that nobody will send"
    assert judge(recv("A"), idle("B", **ended), idle("C", **ended))["title"] == title


def test_the_dead_and_those_who_left_can_send_no_more() -> None:
    found = judge(recv("A"), dead("B"), dead("C", "left"))
    assert found["stuck"] == ["A"]
    assert found["sentences"][1:3] == ["B has ended.", "C has left."]
    assert [judged["verdict"] for judged in found["processes"]] == ["stuck", "ended", "left"]


def test_nobody_waits_for_ever_for_one_that_has_died() -> None:
    """A receive from it, or a send to it, ends with PeerLost, and a collective call as well."""
    assert stuck(collective("A", "B"), dead("B"), process("C")) == NOBODY


def test_a_message_of_a_dead_process_may_be_on_its_way() -> None:
    sent = [peer("A", sent=1)]
    assert stuck(recv("A"), dead("B", peers=sent), idle("C", **ended)) == NOBODY
    here = [peer("B", arrived=1)]
    assert stuck(recv("A", peers=here), dead("B", peers=sent), idle("C", **ended)) == ([], ["A"])


def test_a_process_that_died_before_it_counted_its_message_sends_no_more() -> None:
    here = [peer("B", arrived=1)]
    assert stuck(recv("A", peers=here), dead("B"), idle("C", **ended)) == ([], ["A"])
    # A living sender is about to count the message, and then goes on.
    assert stuck(recv("A", peers=here), recv("B", "A"), idle("C", **ended)) == NOBODY


def test_a_process_that_waits_for_a_dead_one_will_learn_it() -> None:
    assert stuck(recv("A", "B"), dead("B"), idle("C", **ended)) == NOBODY
    assert stuck(send("A", "B"), dead("B"), idle("C", **ended)) == NOBODY
    # No process has had this name, and none will.
    assert stuck(recv("A", "D"), process("B"), idle("C", **ended)) == ([], ["A"])


# ---- reasons to doubt ----


CROSSED = {"A": "B", "B": "A"}

DOUBTS = {
    "its wait ends by itself": {"until": NOW + 10},
    "another thread could send": {"others": [other("Thread-1")]},
    "its wait has only begun": {"since": NOW - YOUNG / 2},
    "it has not examined all that has arrived": {"settled": False},
    "it has not said what it waits for": {"wait": None},
}


@pytest.mark.parametrize("doubt", DOUBTS.values(), ids=DOUBTS)
@pytest.mark.parametrize("kind", ["recv", "send", "collective", "other"])
def test_a_doubt_about_one_is_a_doubt_about_both(doubt: Dict, kind: str) -> None:
    two = [blocked("A", kind, ["B"]), blocked("B", "recv", ["A"])]
    assert stuck(*two, process("C"))[1] == ["A", "B"]
    assert stuck(blocked("A", kind, ["B"], **doubt), two[1], process("C")) == NOBODY


def test_a_process_that_has_just_gone_on_is_no_part_of_a_deadlock() -> None:
    two = [recv("A", "B"), recv("B", "A")]
    same = {uid("A"): (7, "blocked in recv"), uid("B"): (7, "blocked in recv")}
    assert judge(*two, before=same)["stuck"] == ["A", "B"]
    for changed in ((6, "blocked in recv"), (7, "running"), None):
        before = {name: call for name, call in (same | {uid("B"): changed}).items() if call}
        assert judge(*two, before=before)["stuck"] == []


@pytest.mark.parametrize(
    ("sent", "arrived", "expected"),
    [(3, 3, ["A", "B"]), (3, 2, []), (1, 0, [])],
)
def test_a_message_on_its_way(sent: int, arrived: int, expected: list[str]) -> None:
    here, there = [peer("B", arrived=arrived)], [peer("A", sent=sent)]
    assert stuck(recv("A", "B", peers=here), recv("B", "A", peers=there))[1] == expected


def test_a_message_on_its_way_to_oneself() -> None:
    assert stuck(recv("A", "A", peers=[peer("A", sent=2, arrived=2)])) == (["A"], ["A"])
    assert stuck(recv("A", "A", peers=[peer("A", sent=2, arrived=1)])) == NOBODY


def test_a_message_on_its_way_to_one_who_waits_for_anybody() -> None:
    """The message may come from an idle process, or from the process itself."""
    sent = [peer("A", sent=1)]
    assert stuck(recv("A"), recv("B"), idle("C", **ended))[1] == ["A", "B"]
    assert stuck(recv("A"), recv("B"), idle("C", **ended, peers=sent)) == NOBODY
    assert stuck(recv("A", peers=[peer("A", sent=1)]), recv("B")) == NOBODY


@pytest.mark.parametrize("whose", ["A", "B"])
def test_peers_that_are_not_told_apart(whose: str) -> None:
    shared = {"uid": SHARED, "name": None, "sent": 5, "arrived": 5, "received": 5}
    peers = {whose: [shared]}
    both = [recv(name, CROSSED[name], peers=peers.get(name, [])) for name in CROSSED]
    assert stuck(*both) == NOBODY


def test_a_world_that_others_may_join() -> None:
    """A newcomer may help a process that waits for any sender, or for an unknown one."""
    alone = recv("A", size=None)
    assert stuck(alone) == NOBODY
    assert stuck(recv("A", "D", size=None), process("B", size=None)) == NOBODY
    # The world has all its ranks.
    assert stuck(recv("A", size=1)) == ([], ["A"])
    assert stuck(recv("A", size=2)) == NOBODY
    assert stuck(recv("A", size=2), idle("B", **ended, size=2)) == ([], ["A"])
    # It has them, and one of them has told its name to others.
    told = idle("B", **ended, size=None)
    assert stuck(recv("A", size=2), told) == NOBODY
    assert stuck(recv("A", "D", size=2), told) == NOBODY
    # A guest has joined a cluster, which others may do as well.
    waits = engine(recv(0)), notebook("home", 0)
    assert stuck(*waits) == ([], [0])
    assert stuck(*waits, dead("guest", rank=None)) == NOBODY
    # A ring does not depend on newcomers.
    assert stuck(recv("A", "B", size=None), recv("B", "A", size=None))[0] == ["A", "B"]


# ---- engines and notebooks ----


def test_idle_engines_wait_for_the_notebook_that_waits_for_the_stuck_one() -> None:
    found = judge(engine(recv(0, 1)), idle(1), idle(2), notebook("home", 0))
    assert (found["verdict"], found["cycle"], found["stuck"]) == ("deadlock", [], [0])
    assert found["title"] == "Deadlock: 0 waits for a message that nobody will send"
    assert found["sentences"][0].endswith("1 is idle and sends nothing.")
    assert "2 is idle." in found["sentences"]
    assert not any("home" in text for text in found["sentences"])


def test_an_engine_whose_cell_has_not_begun_or_just_ended_may_send() -> None:
    assert stuck(engine(recv(0, 1)), idle(1), notebook("home", 0, 1)) == NOBODY


def test_an_engine_that_is_not_in_the_cell_and_computes_may_send() -> None:
    assert stuck(engine(recv(0, 1)), engine(process(1)), notebook("home", 0)) == NOBODY


def test_a_notebook_that_waits_for_nothing_may_give_an_engine_a_cell() -> None:
    asleep = process("home", "idle", kind="notebook")
    assert stuck(engine(recv(0, 1)), idle(1), asleep) == NOBODY
    assert stuck(engine(recv(0, 1)), idle(1), {**asleep, "state": "running"}) == NOBODY
    assert stuck(engine(recv(0, 1)), engine(recv(1, 0)), asleep)[0] == [0, 1]


def test_without_a_notebook_anybody_may_give_an_engine_a_cell() -> None:
    assert stuck(engine(recv(0, 1)), idle(1)) == NOBODY


def test_the_notebook_is_free_while_one_engine_of_its_cell_computes() -> None:
    """When that engine has ended its part, the cell still waits for the other: that is certain, but
    an engine that computes may send."""
    assert stuck(engine(recv(0, 1)), engine(process(1)), notebook("home", 0, 1)) == NOBODY


def test_a_notebook_with_another_thread_may_start_a_cell() -> None:
    alone = notebook("home", 0)
    assert stuck(engine(recv(0, 1)), idle(1), alone)[1] == [0]
    assert stuck(engine(recv(0, 1)), idle(1), notebook("home", 0, others=[other("T")])) == NOBODY


def test_two_notebooks() -> None:
    """An idle engine may be given a cell by either."""
    cell = engine(recv(0, 1))
    both = [notebook("home", 0), notebook("home2", 0)]
    assert stuck(cell, idle(1), *both)[1] == [0]
    free = process("home2", "idle", kind="notebook")
    assert stuck(cell, idle(1), both[0], free) == NOBODY
    # The other's cell runs on engine 2 and will end: then it may give engine 1 a cell.
    assert stuck(cell, idle(1), engine(process(2)), both[0], notebook("home2", 2)) == NOBODY
    # The other's cell is stuck as well.
    busy = notebook("home2", 2)
    assert stuck(cell, idle(1), engine(recv(2, 0)), both[0], busy)[1] == [0, 2]


def test_a_notebook_in_a_receive_of_its_own() -> None:
    """It gives no cells meanwhile, unless only another thread of it is in the call."""
    home = recv("home", 0, kind="notebook")
    assert stuck(idle(0), idle(1), home) == ([], ["home"])
    title = "Deadlock: home waits for a message that nobody will send"
    assert judge(idle(0), idle(1), home)["title"] == title
    assert stuck(idle(0), home | {"others": [other("MainThread")]}) == NOBODY
    assert stuck(idle(0), home, process("home2", kind="notebook")) == NOBODY
    two = [engine(recv(0, "home")), idle(1)]
    assert stuck(*two, recv("home", 0, kind="notebook"))[1] == [0, "home"]


def test_idle_ones_alone_are_not_stuck() -> None:
    assert stuck(idle(0), idle(1), notebook("home", 0)) == NOBODY
    assert judge(idle(0, kind="process"))["verdict"] == "idle"


def test_a_process_that_cannot_be_read_may_have_any_name() -> None:
    unseen = process("1f2e3d4c", "damaged", rank=None, size=None)
    assert stuck(recv("A", "B"), recv("C", "B"), process("D")) == ([], ["A", "C"])
    assert stuck(recv("A", "B"), recv("C", "B"), process("D"), unseen) == NOBODY
    assert stuck(engine(recv("A", "B")), engine(recv("C", "B")), unseen) == NOBODY
    assert stuck(recv("A", "C"), recv("C", "A"), unseen) == (["A", "C"], ["A", "C"])
    found = judge(recv("A", "B"), unseen)
    assert (
        "1f2e3d4c lives, and its segment is damaged: what it does cannot be read."
        in (found["sentences"])
    )
