"""The sentences about made-up snapshots, with and without an asker."""

from __future__ import annotations

import pytest

from sfm_kernel.observe.explain import _is_early
from sfm_kernel.observe.explain.but_for import LASTING
from sfm_kernel.observe.explain.calls import _is_other
from sfm_kernel.observe.explain.graph import YOUNG, Graph
from tests.observe.pictures import (
    NOW,
    Dict,
    blocked,
    collective,
    engine,
    idle,
    judge,
    notebook,
    other,
    peer,
    picture,
    process,
    recv,
    send,
)

ended = {"kind": "process"}


def test_two_and_several() -> None:
    two = judge(recv("A", "B"), recv("B", "A"), recv("C", "B"))["sentences"]
    assert two[-2:] == [
        "A and B wait for each other, so neither can ever go on.",
        "C waits for them.",
    ]
    three = judge(recv("A", "B"), recv("B", "C"), recv("C", "A"))["sentences"]
    assert three[-1] == "A, B and C wait for each other, so none of them can ever go on."
    assert judge(send("A", "A"), recv("B", "A"))["sentences"][-1] == "B waits for A."


@pytest.mark.parametrize(
    ("absent", "text"),
    [
        ([-1], "Nobody is named -1; the ranks are 0 to 2."),
        ([-1, 3], "Nobody is named -1 or 3; the ranks are 0 to 2."),
        (["D"], "Nobody is named 'D'; there are A, B and C."),
    ],
)
def test_a_process_that_waits_for_an_unknown_name(absent: list[object], text: str) -> None:
    found = judge(recv("A", *absent), process("B"), idle("C", **ended))
    assert found["stuck"] == ["A"]
    assert found["sentences"][0].endswith(text)


def test_a_lone_process_that_waits_for_an_unknown_name() -> None:
    assert judge(recv("A", 7, size=1))["sentences"][0].endswith("7; the only rank is 0.")


def test_the_states_of_the_processes_that_others_wait_for() -> None:
    def told(*processes: Dict) -> list[str]:
        return [str(sentence) for sentence in judge(*processes)["sentences"]]

    wait = "A waits for the text."
    assert told(recv("A", "B"), idle("B", **ended))[:2] == [
        f"{wait} B has come to its end and sends nothing.",
        "No message is on its way.",
    ]
    both = told(recv("A", "B", "C"), idle("B", **ended), idle("C", **ended), idle("D", **ended))
    assert both[:2] == [
        f"{wait} B and C have come to their end and send nothing.",
        "D has come to its end.",
    ]
    home = notebook("home", 0)
    assert told(engine(recv(0, 1)), idle(1), home)[0].endswith(" 1 is idle and sends nothing.")
    assert told(send("A", "B"), idle("B", **ended))[0].endswith("and receives nothing.")
    here = told(collective("A", "B", "C"), idle("B", **ended), process("C"))[0]
    assert here.endswith(" B has come to its end and does not make that call.")


def test_a_send_that_finds_no_room() -> None:
    """The send waits for earlier messages, whatever room it would need."""
    sends = send("A", "B", text="room at 'B' for 120 bytes", peers=[peer("B", sent=2)])

    def told(received: int) -> str:
        here = [peer("A", arrived=2, received=received)]
        text: str = judge(sends, recv("B", "A", peers=here))["sentences"][0]
        return text

    earlier = "B has not received all that A sent before."
    assert told(1) == f"A is in send: it waits for room at 'B' for 120 bytes. {earlier}"
    assert told(2) == "A is in send: it waits for room at 'B' for 120 bytes."


def test_calls_of_mpi() -> None:
    """They wait for a message, with a template or without, or for other processes."""

    def told(caller: Dict) -> str:
        text: str = judge(caller, process("B"))["sentences"][0]
        return text

    about = {"text": "Mprobe", "purpose": "Mprobe", "context_id": "1f"}
    any_one = told(recv("A", **about))
    assert any_one.startswith("A is in Mprobe and waits for any message.")
    matched = told(recv("A", "B", template={"src": "'B'", "tag": 7}, **about))
    assert matched.startswith("A is in Mprobe and waits for a message with src='B', tag=7.")
    ours = told(blocked("A", "other", ["B"], text="Ssend", purpose="Ssend"))
    assert ours.startswith("A is in Ssend and waits for B.")


def test_groups_are_named_where_there_are_several() -> None:
    def told(of_a: object, of_b: object) -> list[str]:
        a = collective("A", "B", purpose="barrier()", group=of_a)
        b = collective("B", "A", purpose="barrier() of 'rows'", group=of_b)
        return [str(text) for text in judge(a, b)["sentences"]]

    first, rows = ["1", "the group that was made in f.py, line 2"], ["2", "'rows'"]
    both = told(first, rows)
    assert both[0] == f"A is in barrier() of {first[1]} and waits for B."
    assert both[1] == "B is in barrier() of 'rows' and waits for A."
    assert both[-1] == (
        f"A is in a call of {first[1]}, and B in one of 'rows': a process in both must call "
        "them in the same order as the others."
    )
    same = told(first, first)
    assert same[0] == "A is in barrier() and waits for B." and "call of" not in same[-1]


def test_long_lists_are_cut() -> None:
    many = [recv(f"P{nth}", f"P{(nth + 1) % 30}") for nth in range(30)]
    last = judge(*many)["sentences"][-1]
    assert last.startswith("P0, P1, ") and "P11 and 18 others wait for each other" in last
    thirteen = [recv(f"P{nth}", f"P{(nth + 1) % 13}") for nth in range(13)]
    assert "P11 and P12 wait for each other" in judge(*thirteen)["sentences"][-1]


# ---- the asker ----


def test_the_asker_is_not_said_to_run() -> None:
    home = process("home", kind="notebook")
    found = judge(engine(recv(0, 1)), engine(process(1)), home, asker="home")
    assert (found["verdict"], found["title"]) == ("waiting", "No deadlock: 1 still computes")
    assert not any("home" in text for text in found["sentences"])
    found = judge(idle(0), idle(1), home, asker="home")
    assert (found["verdict"], found["title"]) == ("idle", "All are idle")
    found = judge(home, asker="home")
    assert (found["verdict"], found["title"]) == ("idle", "Nobody else is in this world")
    # Another asker gets it as well.
    assert judge(engine(recv(0, 1)), idle(1), home)["title"] == "No deadlock: home still computes"


@pytest.mark.parametrize(
    ("processes", "you_can"),
    [
        ([recv(0, 1), idle(1), idle(2)], "give 1 a cell"),
        ([recv(0), idle(1), idle(2)], "give 1 or 2 a cell"),
        ([send(0, 1), idle(1), recv(2, 0)], "give 1 a cell"),
        ([collective(0, 1), idle(1), recv(2, 0)], "give 1 a cell"),
        ([recv(0, "home"), idle(1)], "send 0 a message"),
        ([recv(0), recv(1, 0)], "send 0 a message"),
        ([recv(0), recv(1)], "send 0 or 1 a message"),
        ([send(0, "home"), recv(1, 0)], "receive what 0 sends"),
        # Another process may help, or nothing is certain.
        ([recv(0, 1), engine(process(1))], None),
        ([recv(0, 1), idle(1), process("home2", "idle", kind="notebook")], None),
        ([recv(0, 1, until=NOW + 10), idle(1)], None),
        ([recv(0, 1, settled=False), idle(1)], None),
    ],
)
def test_the_asker_may_be_able_to_help(processes: list[Dict], you_can: str | None) -> None:
    """The asker can help only if no other process can; and it is no deadlock."""
    shown = [other if other["kind"] == "notebook" else engine(other) for other in processes]
    found = judge(*shown, process("home", kind="notebook"), asker="home")
    assert (found["verdict"], found["stuck"]) == ("waiting", [])
    if you_can:
        assert found["title"] == f"No deadlock yet: you could still {you_can}"
    else:
        assert "you could" not in found["title"]


def test_a_deadlock_needs_no_help_of_the_asker() -> None:
    two = [engine(recv(0, 1)), engine(recv(1, 0)), engine(recv(2)), idle(3)]
    found = judge(*two, process("home", kind="notebook"), asker="home")
    assert (found["title"], found["stuck"]) == ("Deadlock: 0 → 1 → 0", [0, 1])


def test_an_asker_that_is_blocked_asks_from_another_thread() -> None:
    found = judge(recv("A", "B", others=[other("Thread-1")]), recv("B", "A"), asker="A")
    assert found["title"] == "No deadlock is proven"
    assert any(text.startswith("A waits") for text in found["sentences"])


# ---- deadlocks but for a thread or a callback ----

WHERE = {"file": "prog.py", "line": 4, "function": "beat", "cell": 3, "cell_id": "c"}
LONG_AGO = {"since": NOW - 2 * LASTING}


def test_a_deadlock_but_for_what_nobody_can_judge() -> None:
    beat = other("beat", where=WHERE, cell=2)
    more = other("regcb(tag=1)", "callback")
    found = judge(
        recv("A", "B", others=[beat], **LONG_AGO), recv("B", "A", others=[more], **LONG_AGO)
    )
    assert (found["verdict"], found["cycle"], found["stuck"]) == ("waiting", [], [])
    doubts = "A's thread 'beat' and B's callback regcb(tag=1)"
    assert found["title"] == f"It would be a deadlock but for {doubts}: A → B → A"
    place = "in cell 3, line 4 (beat), started in cell 2"
    assert f"That may end: thread 'beat' ({place}) could go on." in found["sentences"][0]
    assert found["sentences"][-1] == f"If {doubts} do nothing, A and B can never go on."
    assert found["but_for"]["cycle"] == ["A", "B"]
    assert found["but_for"]["others"][0] == {"process": "A", "other": beat}


def test_but_for_what_a_program_has_left() -> None:
    ends = [process("B", others=[other("SIGUSR1", "signal")], **LONG_AGO)]
    found = judge(recv("A", "B", **LONG_AGO), *ends)
    reason = "A waits for a message that nobody will send"
    assert found["title"] == f"It would be a deadlock but for B's handler of SIGUSR1: {reason}"
    assert "B has come to its end, but handler of SIGUSR1 could go on." in found["sentences"]
    found = judge(engine(idle("A")), engine(ends[0]))
    assert found["title"] == "Nobody runs, but B's handler of SIGUSR1 could go on"
    assert found["sentences"] == ["B's cell has ended, but handler of SIGUSR1 could go on."]


def test_it_is_not_said_too_soon_nor_where_it_would_be_none() -> None:
    doubt = {"others": [other("beat")]}
    assert judge(recv("A", "B", **doubt), recv("B", "A"))["but_for"] is None
    assert judge(recv("A", "B", **doubt, **LONG_AGO), process("B"))["but_for"] is None
    two = [recv("A", "B", **LONG_AGO), recv("B", "A", **LONG_AGO), recv("C", **doubt, **LONG_AGO)]
    found = judge(*two)
    assert (found["verdict"], found["but_for"]) == ("deadlock", None)


# ---- patience ----


@pytest.mark.parametrize(
    ("processes", "at_work", "is_early"),
    [
        ([recv("A", "B"), process("B")], [], False),
        ([recv("A", "B"), idle("B")], [], False),
        # An engine has been given a cell, and does not run it yet.
        ([recv("A", "B"), idle("B")], ["B"], True),
        ([recv("A", "B"), process("B")], ["B"], False),
        # A process has just begun to compute, or to wait.
        ([recv("A", "B"), process("B", since=NOW - YOUNG / 2)], [], True),
        ([recv("A", "B", since=NOW - YOUNG / 2), process("B")], [], True),
        # The cell that asks.
        ([recv("A", "B"), process("B", since=NOW, kind="notebook")], [], False),
    ],
)
def test_calls_that_have_just_begun_are_given_a_moment(
    processes: list[Dict], at_work: list[str], is_early: bool
) -> None:
    assert _is_early(Graph(picture(*processes)), at_work) == is_early


def test_an_object_in_parentheses_makes_no_other_call() -> None:
    barrier, bcast = "(a if odd(x) else b).barrier(comm=team)", "ways[0](x).bcast(root=(1))"
    assert not _is_other(barrier, "a.barrier(comm=team)") and _is_other(barrier, bcast)
    assert not _is_other(bcast, "comm.bcast(root=(1))") and _is_other(bcast, "comm.bcast(root=0)")
