"""A large multicast is written once."""

from __future__ import annotations

import errno
import gc
import os
from pathlib import Path

import numpy as np
import pytest

from sfm_kernel import PeerLost
from sfm_kernel.speedes import blocks
from tests.contract.speedes.conftest import (
    LARGE,
    MakeEndpoints,
    MakeGroup,
    comes,
    in_memory,
    multicast_files,
    start,
    written,
)
from tests.waiting import wait_until


def test_a_multicast_is_written_once(group: MakeGroup, kind: str) -> None:
    nodes = group(4)
    data = np.random.default_rng(2).bytes(1 << 20)
    nodes[0].broadcast(1, data)
    files = multicast_files(nodes[0])
    if kind == "zmq":
        assert files == []  # SFM_TRANSPORT forbids shared memory
    else:
        # One file, with a name for its sender and each receiver, that holds the data once.
        assert len(files) == 4 and len({path.stat().st_ino for path in files}) == 1
        assert len(data) <= written(files[0]) < 1.1 * len(data)
        assert files[0].read_bytes().count(data) == 1
        assert files[0].stat().st_mode & 0o777 == 0o600
    for comm in nodes:
        assert comes(comm, 1).data == data
    if kind != "zmq":
        assert len(multicast_files(nodes[0])) == 1  # names of open files are gone
        for _ in range(5):  # its memory is used again
            nodes[0].broadcast(1, data)
            for comm in nodes:
                assert comes(comm, 1).data == data
        (file,) = multicast_files(nodes[0])
        assert written(file) < 1.1 * len(data)


def test_a_small_multicast_goes_to_each(group: MakeGroup) -> None:
    nodes = group(3)
    nodes[0].broadcast(1, b"x" * 1000)
    nodes[0].multicast([1], 2, b"x" * LARGE)  # and so does a large one to a single node
    assert multicast_files(nodes[0]) == []
    assert [comes(comm, 1).nbytes for comm in nodes] == [1000] * 3
    assert comes(nodes[1], 2).nbytes == LARGE


def test_several_multicasts_wait_side_by_side(group: MakeGroup) -> None:
    nodes = group(3)
    sizes = [140_000 * (1 + number % 3) for number in range(12)]
    for number, size in enumerate(sizes):
        nodes[0].multicast([1, 2], 1, bytes([number]) * size)
    for number, size in enumerate(sizes):
        assert comes(nodes[1], 1).data == bytes([number]) * size
    for number in range(12):  # node 2 has read none of the first twelve
        nodes[0].multicast([1, 2], 1, bytes([100 + number]) * 150_000)
    for number, size in enumerate(sizes):
        assert comes(nodes[2], 1).data == bytes([number]) * size
    for comm in nodes[1:]:
        for number in range(12):
            assert comes(comm, 1).data == bytes([100 + number]) * 150_000


@in_memory
def test_memory_goes_back_when_it_was_not_used(
    group: MakeGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "WARM", 0.0)
    nodes = group(3)
    for _ in range(3):
        nodes[0].multicast([1, 2], 1, b"x" * LARGE)
        file = Path(nodes[0]._post._blocks.path)
        nodes[0].receive()
        assert written(file) >= LARGE  # as long as somebody has not read
        assert comes(nodes[1], 1).nbytes == comes(nodes[2], 1).nbytes == LARGE
        nodes[0].receive()
        assert written(file) == 0


@pytest.mark.parametrize("why", ["fallocate", "link", "half is in use", "larger than the space"])
def test_each_receiver_gets_a_copy_if_memory_is_short(
    group: MakeGroup, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    if why == "half is in use":
        room = os.statvfs("/dev/shm")
        fields = list(room)
        fields[4] = fields[2] // 2  # f_bavail
        monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result(fields))
    elif why == "larger than the space":
        monkeypatch.setenv("SFM_ARENA_BYTES", "65536")
    else:
        monkeypatch.setattr(os, {"fallocate": "posix_fallocate"}.get(why, why), full)
    monkeypatch.setattr(blocks, "WARM", 0.0)
    nodes = group(3)
    for number in range(3):
        nodes[0].broadcast(1, bytes([number]) * LARGE)
    nodes[0].receive()
    assert not any(written(path) for path in multicast_files(nodes[0]))
    for comm in nodes:
        for number in range(3):
            assert comes(comm, 1).data == bytes([number]) * LARGE


def test_messages_are_received_after_their_sender_has_left(group: MakeGroup) -> None:
    nodes = group(3)
    nodes[0].broadcast(1, b"x" * LARGE)
    nodes[0].close()
    nodes[0]._sfm.close()
    for comm in nodes[1:]:
        assert comes(comm, 1).data == b"x" * LARGE
    assert multicast_files(nodes[1]) == []


@in_memory
def test_a_multicast_s_memory_is_free_though_a_receiver_has_left(
    group: MakeGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The header of that receiver counts as read, and its name of the file is removed."""
    monkeypatch.setattr(blocks, "WARM", 0.0)
    nodes = group(4)
    nodes[0].multicast([1, 2, 3], 1, b"x" * LARGE)
    assert comes(nodes[1], 1).nbytes == comes(nodes[2], 1).nbytes == LARGE
    file = Path(nodes[0]._post._blocks.path)
    nodes[3].close()
    nodes[3]._sfm.close()
    wait_until(lambda: [nodes[0].receive(), written(file)][1] == 0)
    assert multicast_files(nodes[0]) == [file]
    with pytest.raises(PeerLost):
        nodes[0].multicast([1, 2, 3], 1, b"y" * LARGE)
    assert comes(nodes[1], 1).data == comes(nodes[2], 1).data == b"y" * LARGE
    wait_until(lambda: [nodes[0].receive(), written(file)][1] == 0)


@in_memory
def test_an_object_that_is_forgotten_leaves_nothing(endpoints: MakeEndpoints) -> None:
    ends = endpoints(3)
    nodes = start(ends)
    nodes[0].broadcast(1, b"x" * LARGE)
    assert len(multicast_files(nodes[0])) == 3  # its own name, and two that were not opened
    del nodes
    gc.collect()
    assert list(Path(ends[0].folder).glob("*.multicast*")) == []
