"""Starting groups, which do not hear each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sfm_kernel import EndpointClosed, RecvTimeout
from sfm_kernel.speedes import start_up
from tests.contract.conftest import Join
from tests.contract.speedes.conftest import (
    LARGE,
    MakeEndpoints,
    at_all,
    comes,
    drain,
    multicast_files,
    start,
    together,
)
from tests.waiting import wait_until


def test_groups_do_not_hear_each_other(endpoints: MakeEndpoints) -> None:
    ends = endpoints(3)
    group_1, group_2 = start(ends, group_id=1), start(ends, group_id=2)
    group_3 = start(ends[1:], nodes=[2, 1], group_id=3)
    assert [comm.get_node_id() for comm in group_3] == [1, 0]
    for comm, text in ((group_1[0], b"one"), (group_2[0], b"two"), (group_3[0], b"pair")):
        comm.broadcast(1, text)
    ends[0].send(dest=1, kind="message", number=1, text="plain")
    for nodes, text in ((group_1, b"one"), (group_2, b"two"), (group_3, b"pair")):
        for comm in nodes:
            assert comes(comm, 1).data == text and comm.receive(1) is None
    assert ends[1].recv(10).text == "plain"
    for sfm in ends:
        assert not sfm.peek()
    both = [lambda comm=comm: comm.global_sum(1) for comm in group_1 + group_2 + group_3]
    group_1[0].enter_fuzzy_barrier()
    group_2[1].enter_fuzzy_barrier()
    group_2[2].enter_fuzzy_barrier()
    assert together(both[3:]) == [3, 3, 3, 2, 2] and together(both[:3]) == [3, 3, 3]
    assert not group_1[0].exit_fuzzy_barrier() and not group_2[1].exit_fuzzy_barrier()
    for comm in group_1 + group_2 + group_3:
        comm.close()


def test_a_group_that_is_started_again_begins_afresh(endpoints: MakeEndpoints) -> None:
    ends = endpoints(3)
    first = start(ends)
    first[0].enter_fuzzy_barrier()
    first[0].broadcast(1, b"\0" * LARGE)
    first[0].send(1, 1, b"old")
    first[0].coordinated_send(2, b"old")  # in the middle of a cycle
    again = start(ends)
    with pytest.raises(EndpointClosed, match="was started anew"):
        first[0].send(1, 1, b"")
    assert repr(first[0]).endswith(", closed>")
    again[0].send(1, 1, b"new")
    assert comes(again[1], 1).data == b"new"
    assert [len(got) for got in at_all(again, drain)] == [0, 0, 0]
    again[1].enter_fuzzy_barrier()
    again[2].enter_fuzzy_barrier()
    assert not again[1].exit_fuzzy_barrier()
    again[0].enter_fuzzy_barrier()
    for comm in again:
        wait_until(comm.exit_fuzzy_barrier)
    assert multicast_files(again[0]) == []
    for comm in again:
        comm.close()


def test_start_up_checks_what_it_is_told(
    endpoints: MakeEndpoints, join: Join, tmp_path: Path, kind: str
) -> None:
    ends, here = endpoints(2), 1 if kind == "zmq" else 2
    file = tmp_path / "speedes.toml"
    file.write_text("local_nodes = 3\ntotal_nodes = 2\n")
    wrong: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (ValueError, "local_nodes is 3, more than the 2 nodes in all", {"infile": file}),
        (ValueError, f"is {3 - here}, and {here} of the 2 nodes are", {"local_nodes": 3 - here}),
        (ValueError, "group_id is 0 or more, not -1", {"group_id": -1}),
        (TypeError, "total_nodes is an integer, not '2'", {"total_nodes": "2"}),
        (ValueError, "has 2 ranked processes, and the group is to have 1", {"total_nodes": 1}),
        (RecvTimeout, r"not joined within 0\.05 s: \[2\]", {"total_nodes": 3, "timeout": 0.05}),
        (RecvTimeout, r"\['Z'\]", {"nodes": ["Z"], "timeout": 0.05}),
        (ValueError, "total_nodes is 2, and there are 1 names", {"total_nodes": 2, "nodes": [0]}),
        (ValueError, "named twice", {"nodes": [0, 0]}),
        (ValueError, r"process 0 is none of the group's nodes, which are \[1\]", {"nodes": [1]}),
        (ValueError, "at least one node", {"nodes": []}),
    ]
    for error, says, options in wrong:
        with pytest.raises(error, match=says):
            start_up(ends[0], **options)
    guest = join("home", guest=True)
    with pytest.raises(ValueError, match="'home' is none of the group's nodes"):
        start_up(guest)
    file.write_text("total_nodes = 2\ngroup_id = 9\n")
    nodes = start(ends, here, 0, 0, file)
    assert [comm.group_id for comm in nodes] == [9, 9]
    for comm in nodes:
        comm.close()
