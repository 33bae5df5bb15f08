"""Coordinated messages: all know when nothing is in transit."""

from __future__ import annotations

import pytest

from sfm_kernel import SFMError
from sfm_kernel.speedes import Destination, Received, SimTime, SpeedesComm
from tests.contract.conftest import Background
from tests.contract.speedes.conftest import LARGE, MakeGroup, at_all, comes, drain
from tests.waiting import wait_until


@pytest.mark.parametrize("n", [1, 2, 5])
def test_all_know_when_nothing_is_in_transit(group: MakeGroup, n: int) -> None:
    nodes = group(n)

    def work(comm: SpeedesComm) -> list[list[tuple[int, bytes]]]:
        me, cycles = comm.get_node_id(), []
        for cycle in range(20):
            for _ in range(me):
                comm.coordinated_send((me + 1) % n, b"next %d" % cycle)
            if me == cycle % n:
                comm.coordinated_broadcast(b"all %d" % cycle)
                comm.coordinated_multicast(Destination([0]), b"set %d" % cycle + b"x" * LARGE)
            got = drain(comm)
            assert {message.type for message in got} <= {None}
            cycles.append(sorted((message.src, bytes(message.data[:8])) for message in got))
        return cycles

    for me, cycles in enumerate(at_all(nodes, work)):
        for cycle, got in enumerate(cycles):
            before = (me - 1) % n
            expected = [(before, b"next %d" % cycle)] * before + [(cycle % n, b"all %d" % cycle)]
            if me == 0:
                expected.append((cycle % n, (b"set %d" % cycle + b"xxx")[:8]))
            assert got == sorted(expected)


def test_a_message_is_answered_in_its_cycle(group: MakeGroup) -> None:
    """A tree of messages: each that arrives sends two, until they are used up."""
    nodes = group(3)

    def work(comm: SpeedesComm) -> int:
        me = comm.get_node_id()

        def react(message: Received) -> None:
            if left := message.data[0]:
                comm.coordinated_send((me + 1) % 3, bytes([left - 1]))
                comm.coordinated_send((me + left) % 3, bytes([left - 1]))

        if me == 1:
            comm.coordinated_send(2, bytes([7]))
        return len(drain(comm, react))

    for _ in range(3):
        assert sum(at_all(nodes, work)) == 2**8 - 1


def test_receive_blocks_while_something_may_come(group: MakeGroup) -> None:
    a, b = group(2)
    waiting = Background(lambda: drain(b))
    waiting.join(0.2)
    assert waiting.is_alive()  # node 0 has not said that it has nothing to send
    a.coordinated_send(1, b"it has")
    waiting.join(0.2)
    assert waiting.is_alive()
    assert drain(a) == []
    assert [message.data for message in waiting.result()] == [b"it has"]


def test_a_synchronisation_call_in_the_middle_is_an_error(group: MakeGroup) -> None:
    a, b = nodes = group(2)
    a.enter_fuzzy_barrier()
    a.coordinated_send(1, b"x")
    for call in (
        a.barrier_sync, lambda: a.global_min(1), lambda: a.global_max(1.0),
        lambda: a.global_sum(SimTime(1)), a.enter_fuzzy_barrier, a.exit_fuzzy_barrier,
    ):  # fmt: skip
        with pytest.raises(SFMError, match="until it returns None; nothing has changed"):
            call()
    a.send(1, 1, b"messages are none")
    assert comes(b, 1).src == 0
    waiting = Background(lambda: drain(b))
    assert drain(a) == [] and [message.data for message in waiting.result()] == [b"x"]
    assert at_all(nodes, lambda comm: comm.global_sum(1)) == [2, 2]
    assert not a.exit_fuzzy_barrier()  # it is still there
    b.enter_fuzzy_barrier()
    wait_until(a.exit_fuzzy_barrier)
