"""Nodes that take no further part: they have left, or a call of theirs was cut short."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sfm_kernel import PeerLost, SFMError
from sfm_kernel.speedes import SpeedesComm, blocks
from tests.contract.conftest import Background
from tests.contract.speedes.conftest import (
    LARGE,
    MakeEndpoints,
    MakeGroup,
    at_all,
    comes,
    drain,
    in_memory,
    multicast_files,
    start,
    written,
)
from tests.waiting import wait_until


def stop(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def lost_to(node: int, call: Callable[[], Any]) -> None:
    with pytest.raises(PeerLost, match=f"process {node} has ended") as error:
        call()
    assert error.value.peer == node


# --- left --------------------------------------------------------------------------------------


def test_a_node_that_has_left_is_gone_for_the_others(group: MakeGroup) -> None:
    """The process of that node still lives."""
    nodes = group(4)
    at_all(nodes, lambda comm: comm.barrier_sync())
    nodes[3].send(0, 1, b"the last word")
    nodes[3].close()
    assert comes(nodes[0], 1).data == b"the last word"
    wait_until(lambda: [nodes[0].receive(), 3 in nodes[0]._post._left][1])
    lost_to(3, lambda: nodes[0].send(3, 1, b"x"))
    with pytest.raises(PeerLost, match="it has left the group"):
        nodes[0].broadcast(2, b"to the rest")
    for comm in nodes[:3]:
        assert comes(comm, 2).data == b"to the rest"
    at_all(nodes[:3], lambda comm: lost_to(3, lambda: drain(comm)))


@pytest.mark.usefixtures("any_fuzzy")
def test_a_fuzzy_barrier_does_not_wait_for_it(group: MakeGroup) -> None:
    nodes = group(3)
    for comm in nodes:
        comm.enter_fuzzy_barrier()
    at_all(nodes, lambda comm: wait_until(comm.exit_fuzzy_barrier))
    nodes[1].close()
    nodes[0].enter_fuzzy_barrier()
    nodes[2].enter_fuzzy_barrier()

    def lost() -> bool:
        try:
            return nodes[0].exit_fuzzy_barrier()
        except PeerLost as error:
            return error.peer == 1

    wait_until(lost)


def test_a_barrier_ends_for_those_who_were_in_it_with_one_who_left(group: MakeGroup) -> None:
    """The node that left was in the last call, and is missed in the next one."""
    nodes = group(3)
    at_all(nodes, lambda comm: comm.barrier_sync())
    nodes[2].close()
    wait_until(lambda: [nodes[0].receive(), 2 in nodes[0]._post._left][1])
    nodes[0]._post.while_in_a_collective()  # as if it were still waiting
    at_all(nodes[:2], lambda comm: lost_to(2, comm.barrier_sync))


def test_nodes_that_close_at_once_disturb_nobody(group: MakeGroup) -> None:
    for _ in range(4):
        nodes = group(4)

        def work(comm: SpeedesComm) -> int:
            comm.coordinated_broadcast(b"x")
            got = len(drain(comm))
            comm.enter_fuzzy_barrier()
            while not comm.exit_fuzzy_barrier():
                pass
            total = comm.global_sum(got)
            comm.close()
            return total

        assert at_all(nodes, work) == [16] * 4
        for comm in nodes:
            comm._sfm.close()


def test_closing_drops_messages_that_were_not_received(group: MakeGroup) -> None:
    nodes = group(2)
    for _ in range(20):
        nodes[0].send(1, 1, bytes(LARGE))
    wait_until(lambda: nodes[1]._post._context.peek(number=1))
    nodes[0].send(1, 2, b"last")
    wait_until(lambda: nodes[1]._post._context.peek(number=2))
    nodes[1].close()
    assert not nodes[1]._post._context.peek()


@in_memory
def test_memory_that_it_has_not_read_is_free(
    group: MakeGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "WARM", 0.0)
    nodes = group(4)
    for leaves in (False, True):  # before it leaves, and before the sender knows
        if leaves:
            nodes[3].close()
        nodes[0].multicast([1, 2, 3], 1, bytes(LARGE))
        for comm in nodes[1:3]:
            assert comes(comm, 1).nbytes == LARGE
    file = Path(nodes[0]._post._blocks.path)
    assert file in multicast_files(nodes[0])
    wait_until(lambda: [nodes[0].receive(), written(file)][1] == 0)


# --- cut short ---------------------------------------------------------------------------------


def receive(comm: SpeedesComm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(comm._post.deliveries, "coordinated", stop)
    comm.coordinated_send(comm.get_node_id(), b"x")
    comm.receive(1)


def coordinated_receive(comm: SpeedesComm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comm._coordinated._wave, "enter", stop)
    comm.coordinated_receive()


def coordinated_send(comm: SpeedesComm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comm._post, "send", stop)
    comm.coordinated_broadcast(b"x")


def enter_fuzzy_barrier(comm: SpeedesComm, monkeypatch: pytest.MonkeyPatch) -> None:
    notified = []
    notify = comm._post.notify

    def once(node: int, kind: str, **attributes: Any) -> None:
        notified.append(node)
        notify(node, kind, **attributes)
        if len(notified) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(comm._post, "notify", once)
    comm.enter_fuzzy_barrier()


def barrier_sync(comm: SpeedesComm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(comm._post.deliveries, "message", stop)
    comm.send(comm.get_node_id(), 1, b"x")
    comm.barrier_sync()


@pytest.mark.parametrize(
    "cut",
    [receive, coordinated_receive, coordinated_send, enter_fuzzy_barrier, barrier_sync],
    ids=lambda cut: cut.__name__,
)
def test_a_call_that_is_cut_short_leaves_nobody_waiting(
    endpoints: MakeEndpoints,
    monkeypatch: pytest.MonkeyPatch,
    cut: Callable[[SpeedesComm, pytest.MonkeyPatch], None],
) -> None:
    ends = endpoints(4)
    nodes = start(ends)
    with monkeypatch.context() as patches, pytest.raises(KeyboardInterrupt):
        cut(nodes[3], patches)
    for call in (
        nodes[3].receive, nodes[3].coordinated_receive, nodes[3].barrier_sync,
        nodes[3].enter_fuzzy_barrier, nodes[3].exit_fuzzy_barrier,
        lambda: nodes[3].receive(1), lambda: nodes[3].get_pending_message(1),
        lambda: nodes[3].send(0, 1, b""), lambda: nodes[3].coordinated_broadcast(b""),
        lambda: nodes[3].global_max(1),
    ):  # fmt: skip
        with pytest.raises(SFMError, match=r"KeyboardInterrupt .*: call start_up again on all"):
            call()
    at_all(nodes[:3], lambda comm: lost_to(3, lambda: drain(comm)))
    again = start(ends)
    assert at_all(again, lambda comm: comm.global_sum(1)) == [4] * 4
    assert at_all(again, lambda comm: len(drain(comm))) == [0] * 4
    for comm in again:
        comm.close()


def test_stop_while_a_node_waits_cuts_nothing_short(group: MakeGroup) -> None:
    a, b = group(2)
    tick = b._post._context.tick
    b._post._context.tick = stop
    with pytest.raises(KeyboardInterrupt):
        b.coordinated_receive()
    b._post._context.tick = tick
    a.coordinated_send(1, b"x")
    waiting = Background(lambda: drain(a))
    assert [message.data for message in drain(b)] == [b"x"] and waiting.result() == []


def test_stop_between_inbox_and_node_loses_nothing(group: MakeGroup) -> None:
    a, b = group(2)
    a.send(1, 1, b"x")
    wait_until(lambda: b._post._context.peek(number=1))
    b._post._take(10)  # and here it comes
    message = b.receive(1)
    assert message is not None and message.data == b"x"
