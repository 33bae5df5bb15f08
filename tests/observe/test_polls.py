"""Processes that poll: their fields, and the sentences about them."""

from __future__ import annotations

import contextlib
import time

import pytest

import sfm_kernel
from sfm_kernel import Endpoint, RecvTimeout, WouldBlock, mpi
from sfm_kernel.jupyter.tables import status_table
from sfm_kernel.observe import explain, snapshot
from sfm_kernel.observe.explain.but_for import LASTING
from tests.observe.harness import running
from tests.observe.pictures import NOW, Dict, check, judge, message, polls, process, recv
from tests.waiting import wait_until

WAYS = ("recv_nb", "peek", "recv", "Iprobe", "Test")


def texts(found: Dict) -> list[str]:
    return [judged["text"] for judged in found["processes"]]


def test_the_polled_call_and_the_near_misses() -> None:
    inbox = {"depth": 1, "messages": [message("A", tag=3)]}
    found = judge(process("A"), process("B", **polls(), **inbox))
    assert texts(found)[1] == (
        "B polls recv_nb(tag=2, src='A') in prog.py, line 4 (step): 12 400 times in 3.0 s, and "
        "nothing that fits has come. B's inbox holds 1 message that nearly fits: tag is 3, not 2."
    )
    assert found["processes"][1]["near"][0]["misses"][0]["has"] == "3"
    assert found["title"] == "No deadlock: A still computes" and found["but_for"] is None
    assert judge(process("B", **polls()))["title"] == "B polls"


def test_all_are_stuck_behind_one_that_polls() -> None:
    """A process that polls may do something else at any time: this is no deadlock."""
    long_ago = {"since": NOW - LASTING - 1}
    found = judge(recv("A", "B", **long_ago), process("B", **polls()))
    assert (found["verdict"], found["stuck"]) == ("waiting", [])
    title = "It would be a deadlock but for B's calls of recv_nb(tag=2, src='A'): A → B → A"
    assert found["title"] == title
    assert found["sentences"][-1] == "If B does nothing but poll, A and B can never go on."
    assert found["but_for"]["cycle"] == ["A", "B"]
    assert found["but_for"]["others"][0]["other"]["kind"] == "polls"


@pytest.mark.parametrize("change", [{"state": "idle"}, {}])
def test_a_process_that_computes_beside_it_may_still_send(change: Dict) -> None:
    others = process("C", **change) if not change else recv("C", "A", since=NOW - 0.1)
    assert judge(recv("A", "B"), process("B", **polls()), others)["but_for"] is None


# ---- in real processes ----


def poll(sfm: Endpoint) -> None:
    """Each rank polls with a different call, for a message that never comes."""
    mpi.use(sfm)
    from mpi4py import MPI

    comm, way = MPI.COMM_WORLD, WAYS[sfm.rank or 0]
    sfm.send(dest=sfm.name, tag=3)
    request = comm.irecv(source=0, tag=2) if way == "Test" else None
    while True:
        if way == "recv_nb":
            with contextlib.suppress(WouldBlock):
                sfm.recv_nb(tag=2)  # here
        elif way == "peek":
            sfm.peek(tag=2)
        elif way == "recv":
            with contextlib.suppress(RecvTimeout):
                sfm.recv(0.02, tag=2)
        elif way == "Iprobe":
            comm.iprobe(source=0, tag=2)
        elif request is not None:
            request.test()


def test_every_way_to_poll_is_seen() -> None:
    with running(poll, len(WAYS)) as run:
        seen = snapshot(run.folder)
        while not all(process["polls"] for process in seen["processes"]):  # a machine may be slow
            seen = snapshot(run.folder)
        check("snapshot", seen)
        found = [process["polls"] for process in seen["processes"]]
        assert [polled["wait"]["text"] for polled in found] == [
            "recv_nb(tag=2)", "peek(tag=2)", "recv(0.02, tag=2)", "comm.iprobe(source=0, tag=2)",
            "request.test(source=0, tag=2)",
        ]  # fmt: skip
        assert all(
            polled["count"] > 1 and polled["where"]["function"] == "poll" for polled in found
        )
        assert len({polled["where"]["line"] for polled in found}) == len(WAYS)
        assert all({"tag", "2"} <= {*polled["wait"]["template"][-1].values()} for polled in found)
        diagnosis = explain(run.folder)
        while not all(" polls " in text for text in texts(diagnosis)):
            diagnosis = explain(run.folder)
        check("diagnosis", diagnosis)
        first, *_, last = texts(diagnosis)
        assert first.startswith("0 polls recv_nb(tag=2) in test_polls.py, line ")
        assert first.endswith("holds 1 message that nearly fits: tag is 3, not 2.")
        assert last.startswith("4 polls request.test(source=0, tag=2) in ")
        assert "polling" in repr(status_table(seen["processes"]))


def come_and_go(sfm: Endpoint) -> int:
    """1 polls until a message arrives, and then computes; 0 observes it."""
    if sfm.rank == 1:
        while not sfm.peek(tag=2):
            pass
        while sfm._inbox.depth < 2:
            time.sleep(0.01)
        return sfm._inbox.depth  # type: ignore[no-any-return]
    wait_until(lambda: snapshot(sfm)["processes"][1]["polls"])
    sfm.send(dest=1, tag=2)
    wait_until(lambda: snapshot(sfm)["processes"][1]["polls"] is None)
    sfm.send(dest=1, tag=3)
    return 0


def test_a_process_that_no_longer_polls_is_not_said_to() -> None:
    assert sfm_kernel.run(come_and_go, n=2) == [0, 2]
