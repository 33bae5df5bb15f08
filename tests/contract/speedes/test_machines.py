"""Nodes that go, and nodes on other machines."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

import sfm_kernel
from sfm_kernel import PeerLost
from sfm_kernel.directory import DirectoryServer
from sfm_kernel.speedes import (
    SpeedesComm,
)
from tests.contract.conftest import Background, eventually
from tests.contract.speedes.conftest import (
    LARGE,
    Nodes,
    at_all,
    comes,
    drain,
    multicast_files,
    start,
    written,
)


def test_a_node_that_leaves_is_noticed_by_all_who_wait(group: Callable[[int], Nodes]) -> None:
    """Also by those who are not next to it in the tree."""
    nodes = group(5)
    waiting = [Background(lambda comm=comm: drain(comm)) for comm in nodes[:4]]
    nodes[4].close()
    nodes[4]._sfm.close()
    for one in waiting:
        with pytest.raises(PeerLost, match=r"process 4 is gone .* in coordinated_receive\(\)"):
            one.result()


@pytest.mark.usefixtures("any_fuzzy")
def test_a_fuzzy_barrier_notices_it_too(group: Callable[[int], Nodes]) -> None:
    nodes = group(3)
    nodes[0].enter_fuzzy_barrier()
    nodes[2].enter_fuzzy_barrier()
    nodes[1]._sfm.close()

    def lost(comm: SpeedesComm) -> bool:
        try:
            return comm.exit_fuzzy_barrier()
        except PeerLost as error:
            return error.peer == 1

    eventually(lambda: lost(nodes[0]))


@pytest.mark.zmq
def test_one_node_passes_on_to_its_neighbours(
    world: str, sfm_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two machines, which are folders: nodes 0, 1, 3 and nodes 2, 4, 5."""
    monkeypatch.setenv("SFM_TRANSPORT", "shm,zmq")  # not straight through this process
    with contextlib.ExitStack() as stack:
        folders = stack.enter_context(tempfile.TemporaryDirectory(dir=sfm_dir.parent))
        server = stack.enter_context(DirectoryServer(world, os.urandom(32), "tcp://127.0.0.1:0"))
        monkeypatch.setenv("SFM_DIRECTORY", server.url)
        monkeypatch.setenv("SFM_KEY", server.key.hex())
        ends = []
        for node in range(6):
            monkeypatch.setenv("SFM_DIR", f"{folders}/{'there' if node in (2, 4, 5) else 'here'}")
            ends.append(stack.enter_context(sfm_kernel.join(world)))
        nodes = [stack.enter_context(comm) for comm in start(ends, local_nodes=3)]
        assert all(comm.machines == [[0, 1, 3], [2, 4, 5]] for comm in nodes)
        assert ends[0].route_kind(4) == "zmq" and ends[0].route_kind(3) == "shm"

        data = b"x" * LARGE
        nodes[0].broadcast(1, data)
        for comm in (nodes[0], nodes[1], nodes[3]):
            assert comes(comm, 1).data == data
        eventually(lambda: nodes[2]._post._context.peek(number=1))
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

        nodes[2].close()
        ends[2].close()
        with pytest.raises(PeerLost, match="process 2 is gone"):
            nodes[0].multicast([2, 4, 5], 3, data)
        assert comes(nodes[4], 3).data == data  # in place of node 2 it passes the message on
        assert comes(nodes[5], 3).data == data
