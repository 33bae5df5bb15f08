"""One, a set, all; receive and what is pending; what messages carry."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfm_kernel import UnknownName
from sfm_kernel.speedes import NET_INT, Destination, net_array, net_struct
from tests.contract.conftest import Background
from tests.contract.speedes.conftest import (
    LARGE,
    MakeEndpoints,
    MakeGroup,
    at_all,
    comes,
    drain,
    multicast_files,
    start,
)
from tests.waiting import wait_until


def test_one_a_set_and_all(group: MakeGroup) -> None:
    nodes = group(4)
    nodes[1].send(2, 7, b"one")
    nodes[1].multicast(Destination([3, 1, 2]), 7, b"set")
    nodes[1].multicast({0}, 7, b"another set")
    nodes[1].multicast([], 7, b"nobody")
    nodes[1].broadcast(7, b"all")
    expected = {0: [b"another set", b"all"], 1: [b"set", b"all"], 2: [b"one", b"set", b"all"],
                3: [b"set", b"all"]}  # fmt: skip
    for node, comm in enumerate(nodes):
        found = [comes(comm, 7) for _ in expected[node]]
        assert [bytes(message.data) for message in found] == expected[node]
        assert {(message.src, message.type) for message in found} == {(1, 7)}
        assert found[0].nbytes == len(found[0].data)
        assert comm.receive(7) is None


def test_receive_takes_in_and_pending_only_looks_there(group: MakeGroup) -> None:
    a, b = group(2)
    for type, data in ((5, b"x"), (0, b"first"), (255, b"y"), (0, b"second")):
        a.send(1, type, data)
    b_sees = b._post._context.peek
    wait_until(lambda: b_sees(number=0))
    wait_until(lambda: [a.send(1, 9, b"last"), b_sees(number=9)][1])  # order: all others came
    assert b.get_pending_message(0) is None
    assert b.receive() is None  # type: ignore[func-returns-value]
    first, second = b.get_pending_message(0), b.receive(0)
    assert first is not None and first.data == b"first" and repr(first).endswith("0, 5 bytes>")
    assert second is not None and second.data == b"second"
    assert b.get_pending_message(0) is None and b.receive(0) is None
    a.send(1, 5, b"later")
    wait_until(lambda: b_sees(number=5))
    assert [b.receive(5).data, b.get_pending_message(5)] == [b"x", None]  # type: ignore[union-attr]
    assert comes(b, 5).data == b"later"
    assert comes(b, 255).data == b"y"


def test_a_node_sends_to_itself(group: MakeGroup) -> None:
    (comm,) = group(1)
    data = bytearray(b"to me")
    comm.send(0, 1, data)
    data[:] = b"other"
    assert comm.get_pending_message(1) is None
    message = comm.receive(1)
    assert message is not None and message.data == b"to me" and message.src == 0


@pytest.mark.parametrize("count", [10, LARGE])
def test_received_data_are_the_receivers_own(group: MakeGroup, count: int) -> None:
    nodes = group(3)
    array, raw = np.arange(float(count)), bytearray(b"\1" * count)
    nodes[0].broadcast(1, array)
    nodes[0].broadcast(2, raw)
    array[:], raw[:] = -1, b"\2" * count
    for comm in nodes:
        numbers, octets = comes(comm, 1), comes(comm, 2)
        assert isinstance(numbers.data, np.ndarray) and isinstance(octets.data, bytearray)
        assert (numbers.data == np.arange(count)).all() and numbers.nbytes == 8 * count
        assert octets.data == b"\1" * count
        numbers.data += 1
        octets.data[:] = b"\3" * count
    assert array[0] == -1 and raw[0] == 2


@pytest.mark.parametrize(
    "array",
    [
        np.array(2.5), np.zeros((0, 3)), np.arange(24).reshape(2, 3, 4)[:, ::2],
        np.asfortranarray(np.arange(12.0).reshape(3, 4)), np.arange(5, dtype=">i4"),
        np.array(["2026-01-01"], "datetime64[D]"), np.array(["ab", "c"]), np.float32(1.5),
        np.array([(1, 2.5)], [("a", ">i2"), ("b", "<f8")]), np.arange(40_000, dtype=">i4"),
        np.asfortranarray(np.arange(90_000.0).reshape(300, 300)), np.arange(90_000.0)[::3],
    ],
    ids=lambda array: f"{array.dtype.str}{array.shape}",
)  # fmt: skip
def test_arrays_come_as_they_are(group: MakeGroup, array: Any) -> None:
    nodes = group(3)
    nodes[0].broadcast(1, array)
    for comm in nodes:
        data = comes(comm, 1).data
        assert isinstance(data, np.ndarray) and data.flags.writeable
        assert (data.dtype, data.shape) == (array.dtype, array.shape)
        assert (data == array).all()


def test_a_structure_keeps_its_byte_order(group: MakeGroup) -> None:
    a, b = group(2)
    track = net_struct(id=NET_INT, position=("<f8", 3))
    a.send(1, 1, net_array([(7, (1, 2, 3))], track).tobytes())
    a.send(1, 2, np.array([(7, (1, 2, 3))], track.newbyteorder(">")))  # of the other kind
    raw, array = comes(b, 1).data, comes(b, 2).data
    assert raw[:4] == b"\7\0\0\0" and net_array(raw, track)["position"].sum() == 6
    assert isinstance(array, np.ndarray) and array["id"] == 7 and array.tobytes() != bytes(raw)


def test_messages_larger_than_the_ring_go_in_parts(
    endpoints: MakeEndpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFM_RING_BYTES", "4096")
    monkeypatch.setenv("SFM_ARENA_BYTES", "0")
    nodes = start(endpoints(3))
    data = np.random.default_rng(1).bytes(1_000_000)
    sending = Background(lambda: [nodes[0].send(1, 1, data), nodes[0].broadcast(2, data)])
    for comm, type in ((nodes[1], 1), (nodes[1], 2), (nodes[2], 2)):
        assert comes(comm, type).data == data
    sending.result()
    assert multicast_files(nodes[0]) == []  # SFM_ARENA_BYTES=0 means this as well
    for comm in nodes:
        comm.close()


def test_sends_never_wait_for_their_receiver(endpoints: MakeEndpoints) -> None:
    ends = endpoints(2)
    for sfm in ends:
        sfm.buffering = 1000
    with contextlib.ExitStack() as stack:
        a, b = (stack.enter_context(comm) for comm in start(ends))
        for comm, other in ((a, 1), (b, 0)):  # in one thread: nobody receives meanwhile
            for _ in range(100):
                comm.send(other, 1, b"x" * 5000)
        for comm in (a, b):
            for _ in range(100):
                assert comes(comm, 1).nbytes == 5000


def test_order(group: MakeGroup) -> None:
    nodes = group(3)
    for number in range(60):
        size = [3, 90_000, 9_000][number % 3]
        data = number.to_bytes(2, "big") * size
        if number % 2:
            nodes[0].broadcast(4, data)
        else:
            nodes[0].multicast([1, 2], 4, data)
    for comm in nodes[1:]:
        for number in range(60):
            assert int.from_bytes(comes(comm, 4).data[:2], "big") == number


def test_bad_messages_send_nothing(group: MakeGroup) -> None:
    a, b = group(2)
    wrong: list[tuple[type[Exception], str, Callable[[], object]]] = [
        (ValueError, "message types are 0 to 255, not 256", lambda: a.send(1, 256, b"")),
        (ValueError, "message types are 0 to 255, not -1", lambda: b.receive(-1)),
        (TypeError, "type is an integer, not 'x'", lambda: b.get_pending_message("x")),  # type: ignore[arg-type]
        (UnknownName, "2.*There: 0, 1", lambda: a.send(2, 1, b"")),
        (UnknownName, "-1", lambda: a.coordinated_send(-1, b"")),
        (UnknownName, "5", lambda: a.multicast([1, 5], 1, b"")),
        (TypeError, "use multicast", lambda: a.send(Destination([1]), 1, b"")),  # type: ignore[arg-type]
        (TypeError, r"such as \[1, 2\], not 1", lambda: a.multicast(1, 1, b"")),  # type: ignore[arg-type]
        (TypeError, "data are bytes or a NumPy array, not 'text'", lambda: a.broadcast(1, "text")),
        (TypeError, "data are bytes", lambda: a.coordinated_broadcast([1])),
    ]
    for error, says, call in wrong:
        with pytest.raises(error, match=says):
            call()
    assert at_all([a, b], drain) == [[], []]  # nothing was counted either
    assert b.receive(1) is None
