"""Nodes that go, and nodes on other machines."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import sfm_kernel
from sfm_kernel import Endpoint, PeerLost
from sfm_kernel.directory import DirectoryServer
from sfm_kernel.speedes import SpeedesComm
from tests.contract.conftest import Background, Join, results
from tests.contract.speedes.conftest import (
    LARGE,
    MakeEndpoints,
    MakeGroup,
    Nodes,
    at_all,
    comes,
    drain,
    multicast_files,
    start,
    written,
)
from tests.waiting import wait_until


def test_a_node_that_leaves_is_noticed_by_all_who_wait(group: MakeGroup) -> None:
    """Nodes that are not next to it in the tree notice it, too."""
    nodes = group(5)
    waiting = [Background(lambda comm=comm: drain(comm)) for comm in nodes[:4]]
    nodes[4].close()
    nodes[4]._sfm.close()
    for call in waiting:
        with pytest.raises(PeerLost, match=r"process 4 has ended .* in coordinated_receive\(\)"):
            call.result()


@pytest.mark.usefixtures("any_fuzzy")
def test_a_fuzzy_barrier_notices_it_too(group: MakeGroup) -> None:
    nodes = group(3)
    nodes[0].enter_fuzzy_barrier()
    nodes[2].enter_fuzzy_barrier()
    nodes[1]._sfm.close()

    def lost(comm: SpeedesComm) -> bool:
        try:
            return comm.exit_fuzzy_barrier()
        except PeerLost as error:
            return error.peer == 1

    wait_until(lambda: lost(nodes[0]))


def test_the_successor_of_a_lost_node_gets_no_messages_of_the_group(
    endpoints: MakeEndpoints, join: Join
) -> None:
    ends = endpoints(3)
    nodes = start(ends)
    nodes[0].send(1, 1, b"there is a way to it")
    ends[1].close()
    heir = join(rank=1)
    for comm in (nodes[0], nodes[2]):  # on the known way, and with the first message
        for call in (comm.send, comm.coordinated_send):
            with pytest.raises(PeerLost, match="process 1 has ended"):
                call(*((1, 1, b"x") if call == comm.send else (1, b"x")))
    ends[0].send(dest=1, text="plain")
    assert heir.recv(10).text == "plain"  # messages that were sent before have come, too
    assert not heir.context("speedes 0").peek()
    for comm in nodes:
        comm.close()


Apart = Callable[[str], tuple[list[Endpoint], Nodes]]


@pytest.fixture
def apart(world: str, sfm_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Apart]:
    """``apart("aab")``: endpoints and nodes of a group on two machines, which are folders."""
    monkeypatch.setenv("SFM_TRANSPORT", "shm,zmq")  # not straight through this process
    with contextlib.ExitStack() as stack:
        folders = stack.enter_context(tempfile.TemporaryDirectory(dir=sfm_dir.parent))
        server = stack.enter_context(DirectoryServer(world, os.urandom(32), "tcp://127.0.0.1:0"))
        monkeypatch.setenv("SFM_DIRECTORY", server.url)
        monkeypatch.setenv("SFM_KEY", server.key.hex())

        def make(places: str) -> tuple[list[Endpoint], Nodes]:
            ends = []
            for place in places:
                monkeypatch.setenv("SFM_DIR", f"{folders}/{place}")
                ends.append(stack.enter_context(sfm_kernel.join(world)))
            return ends, [stack.enter_context(comm) for comm in start(ends)]

        yield make


@pytest.mark.zmq
@pytest.mark.parametrize("call", ["barrier_sync", "global_sum"])
def test_a_node_passes_on_while_it_waits_for_all(apart: Apart, call: str) -> None:
    """The last one enters when it has the message, which another has to pass on."""
    _, (first, between, last) = apart("abb")
    first.broadcast(1, b"come")
    first.broadcast(2, bytes(LARGE))
    arguments = (1,) if call == "global_sum" else ()
    inside = [Background(lambda c=c: getattr(c, call)(*arguments)) for c in (first, between)]
    assert comes(last, 1).data == b"come" and comes(last, 2).nbytes == LARGE
    getattr(last, call)(*arguments)
    results(inside)
    assert between.get_pending_message(1) is not None  # taken in, and not lost


@pytest.mark.zmq
def test_a_node_that_leaves_passes_on(apart: Apart) -> None:
    _, (first, between, last) = apart("abb")
    first.broadcast(1, b"to all")
    wait_until(lambda: between._post._context.peek(number=1))
    between.close()
    assert comes(last, 1).data == b"to all"


@pytest.mark.zmq
def test_one_node_passes_on_to_its_neighbours(apart: Apart) -> None:
    """Two machines, with nodes 0, 1, 3 and nodes 2, 4, 5."""
    ends, nodes = apart("aababb")
    assert all(comm.machines == [[0, 1, 3], [2, 4, 5]] for comm in nodes)
    assert ends[0].route_kind(4) == "zmq" and ends[0].route_kind(3) == "shm"

    data = b"x" * LARGE
    nodes[0].broadcast(1, data)
    for comm in (nodes[0], nodes[1], nodes[3]):
        assert comes(comm, 1).data == data
    wait_until(lambda: nodes[2]._post._context.peek(number=1))
    assert nodes[4].receive(1) is nodes[5].receive(1) is None
    assert comes(nodes[2], 1).data == data  # and its neighbours have it now
    (there,) = {path.stat().st_ino: path for path in multicast_files(nodes[2])}.values()
    assert LARGE <= written(there) < 1.2 * LARGE  # once there, too
    for comm in nodes[4:]:
        message = comes(comm, 1)
        assert message.data == data and message.src == 0

    nodes[5].multicast([3, 1, 4], 2, b"small")  # 1 passes on to 3
    for node in (4, 1, 3):
        assert comes(nodes[node], 2).data == b"small"
    sums = at_all(nodes, lambda comm: comm.global_sum(comm.get_node_id()))
    assert sums == [15] * 6

    def work(comm: SpeedesComm) -> list[int]:
        comm.coordinated_broadcast(bytes(LARGE))
        return sorted(message.src for message in drain(comm))

    for _ in range(3):
        assert at_all(nodes, work) == [list(range(6))] * 6

    ends[2].close()

    def refused() -> bool:
        try:
            nodes[0].multicast([2, 4, 5], 3, data)
        except PeerLost as lost:
            return lost.peer == 2
        return False

    wait_until(refused)  # the messages before that were lost with node 2
    assert comes(nodes[4], 3).data == data  # in place of node 2 it passes the message on
    assert comes(nodes[5], 3).data == data
