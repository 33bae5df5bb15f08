"""Chunked transfers over every transport: arrivals, waits, and failures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from sfm_kernel import Endpoint, PeerLost
from sfm_kernel.mpi import (
    ANY,
    Namespace,
    Received,
    TransferError,
    leftovers,
    mpi_recv_buf,
    mpi_send_buf,
)
from tests.contract.conftest import Background, Join, Pair, results
from tests.waiting import wait_until

COMM = Namespace("test", ("A", "B"))
NUMBERS = np.arange(1000.0)
SMALL: dict[str, Any] = {"chunk_bytes": 800, "window": 3}  # ten chunks
BIG: dict[str, Any] = {"chunk_bytes": 1 << 16, "window": 3}


def send(sfm: Endpoint, buf: Any = NUMBERS, tag: Any = 7, comm: Any = COMM, **options: Any) -> None:
    dest = 1 if sfm.name == "A" else 0
    options = SMALL | options
    mpi_send_buf(sfm, buf, 0, len(buf), "float64", dest, tag, comm, **options)


def receive(
    sfm: Endpoint, tag: Any = 7, comm: Any = COMM, count: int = 1000, datatype: str = "float64"
) -> list[float]:
    src = 0 if sfm.name == "B" else 1
    got = np.zeros(count, datatype)
    received = mpi_recv_buf(sfm, got, 0, count, datatype, src, tag, comm)
    assert (received.src, received.tag) == (src, tag)
    return list(got[: received.count].tolist())


def depth(sfm: Endpoint) -> int:
    """Messages in the inbox, into which a search for a message that does not exist brings all."""
    sfm.peek(tag="never sent")
    return int(sfm._inbox.depth)


@pytest.fixture
def tidy_pair(pair: Pair) -> Iterator[Pair]:
    """The pair; at the end nothing may be left in its inboxes, after one more transfer each way."""
    a, b = pair
    yield pair
    for sender, receiver in ((a, b), (b, a)):
        sending = Background(lambda sender=sender: send(sender, tag="the end"))
        receiving = Background(lambda receiver=receiver: receive(receiver, tag="the end"))
        assert receiving.result() == NUMBERS.tolist()
        sending.result()
    for sfm in pair:
        wait_until(lambda sfm=sfm: (leftovers.tidy(sfm), depth(sfm) == 0)[1])
        assert not leftovers._expected.get(sfm)


@pytest.mark.parametrize("options", [SMALL, BIG, {"chunk_bytes": 8, "window": 1}])
def test_large_sends_arrive_whole(tidy_pair: Pair, options: dict[str, Any]) -> None:
    a, b = tidy_pair
    numbers = np.random.default_rng(1).random(1000 if options is not BIG else 500_000)
    sending = Background(lambda: send(a, numbers, **options))
    assert receive(b, count=len(numbers)) == numbers.tolist()
    assert sending.result() is None


def test_small_sends_are_eager(tidy_pair: Pair) -> None:
    a, b = tidy_pair
    numbers = NUMBERS.copy()
    for count in (100, 1, 0):  # up to a whole chunk; nobody receives yet
        mpi_send_buf(a, numbers, 5, count, "float64", 1, count, COMM, **SMALL)
    numbers[:] = -1  # the buffer is the sender's again
    assert receive(b, tag=0) == []
    assert receive(b, tag=100) == NUMBERS[5:105].tolist()
    assert receive(b, tag=1) == [5]


def test_both_send_small_buffers_at_once(tidy_pair: Pair) -> None:
    for sfm in tidy_pair:
        send(sfm, NUMBERS[:100])
    for sfm in tidy_pair:
        assert receive(sfm) == NUMBERS[:100].tolist()


def test_both_send_large_buffers_at_once_in_threads(tidy_pair: Pair) -> None:
    """With the same tag and namespace: an acknowledgement is not taken for items."""
    sending = [Background(lambda sfm=sfm: send(sfm)) for sfm in tidy_pair]
    receiving = [Background(lambda sfm=sfm: receive(sfm)) for sfm in tidy_pair]
    assert results(receiving) == [NUMBERS.tolist()] * 2
    results(sending)


def test_many_threads_share_a_tag(tidy_pair: Pair) -> None:
    a, b = tidy_pair
    sending = [Background(lambda n=n: send(a, np.full(1000, float(n)))) for n in range(4)]
    got = results([Background(lambda: receive(b)) for _ in range(4)])
    assert sorted(numbers[0] for numbers in got) == [0, 1, 2, 3]
    whole = [numbers == [numbers[0]] * 1000 for numbers in got]
    assert all(whole), "chunks of two transfers were mixed up"
    results(sending)


def test_tags_and_namespaces_are_apart(tidy_pair: Pair) -> None:
    a, b = tidy_pair
    other = Namespace("other", ("A", "B"))
    sending = [
        Background(lambda: send(a, NUMBERS, tag=1)),
        Background(lambda: send(a, NUMBERS + 1, tag=2)),
        Background(lambda: send(a, NUMBERS + 2, tag=1, comm=other)),
    ]
    assert receive(b, tag=1, comm=other) == (NUMBERS + 2).tolist()
    assert receive(b, tag=2) == (NUMBERS + 1).tolist()
    assert receive(b, tag=1) == NUMBERS.tolist()
    results(sending)


def test_any_source_and_tag(tidy_pair: Pair) -> None:
    a, b = tidy_pair
    got = [0.0] * 1000
    sending = Background(lambda: send(a, tag="word"))
    assert mpi_recv_buf(b, got, 0, 1000, "float64", ANY, ANY, COMM) == Received(1000, 0, "word")
    assert got == NUMBERS.tolist()
    sending.result()
    send(b, NUMBERS[:3], tag=9)
    assert mpi_recv_buf(a, got, 0, 1000, "float64", ANY, 9, COMM) == Received(3, 1, 9)


def test_other_messages_stay_where_they_are(tidy_pair: Pair) -> None:
    a, b = tidy_pair
    a.send(dest="B", tag=7, mine=1)
    b.send(dest="A", tag=7, mine=2)
    sending = Background(lambda: send(a))
    assert receive(b) == NUMBERS.tolist()
    sending.result()
    assert (b.recv(5).mine, a.recv(5).mine) == (1, 2)


def test_a_context_has_transfers_of_its_own(tidy_pair: Pair) -> None:
    a, b = tidy_pair
    got = [np.zeros(1000), np.zeros(1000)]
    sides = {name: (end, end.context("library")) for name, end in (("A", a), ("B", b))}
    sending = [
        Background(
            lambda n=n, sfm=sfm: mpi_send_buf(
                sfm, NUMBERS + n, 0, 1000, "float64", 1, 7, COMM, **SMALL
            )
        )
        for n, sfm in enumerate(sides["A"])
    ]
    for n in (1, 0):  # the other first
        mpi_recv_buf(sides["B"][n], got[n], 0, 1000, "float64", ANY, 7, COMM)
        sending[n].result()
        assert (got[n] == NUMBERS + n).all()


@pytest.mark.parametrize("window", [1, 3, 100])
def test_no_more_than_a_window_is_on_its_way(tidy_pair: Pair, window: int) -> None:
    a, b = tidy_pair
    sending = Background(lambda: send(a, window=window))
    wait_until(lambda: depth(b) == min(window, 10))  # nobody receives: the sender has to wait
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        recv = Endpoint.recv
        patch.setattr(Endpoint, "recv", lambda *a, **k: (seen.append(depth(b)), recv(*a, **k))[1])
        assert receive(b) == NUMBERS.tolist()
        sending.result()
    assert max(seen) <= window and len(seen) >= 10


@pytest.mark.parametrize("of_a", [0, 1, 1000, 1 << 20])
@pytest.mark.parametrize("of_b", [0, 1, 1000, 1 << 20])
def test_any_buffering(tidy_pair: Pair, of_a: int, of_b: int) -> None:
    a, b = tidy_pair
    a.buffering, b.buffering = of_a, of_b
    changed: list[int] = []

    def change(sfm: Endpoint, nbytes: int) -> None:
        changed.append(nbytes)
        sfm._buffering = nbytes

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Endpoint, "buffering", property(lambda sfm: sfm._buffering, change))
        sending = Background(lambda: send(a, window=8))
        assert receive(b) == NUMBERS.tolist()
        sending.result()
    assert not changed, "other threads send meanwhile, and want what was set"
    assert (a.buffering, b.buffering) == (of_a, of_b)


def test_more_than_the_receiver_has_room_for(tidy_pair: Pair) -> None:
    a, b = tidy_pair
    for window in (1, 3, 100):  # the last: all was sent before the receiver looks
        sending = Background(lambda window=window: send(a, window=window))
        wait_until(lambda window=window: depth(b) == min(window, 10))
        for failing in (lambda: receive(b, count=999), sending.result):
            with pytest.raises(TransferError, match=r"1,000 items with tag 7.* at most 999"):
                failing()
        assert depth(b) == 0 and depth(a) == 0


def test_items_of_another_type(tidy_pair: Pair) -> None:
    a, b = tidy_pair
    sending = Background(lambda: send(a))
    for failing in (lambda: receive(b, datatype="int64"), sending.result):
        with pytest.raises(TransferError, match="float64 with tag 7, and 'B' expects int64"):
            failing()


def test_an_eager_sender_has_returned_and_only_the_receiver_hears(tidy_pair: Pair) -> None:
    a, b = tidy_pair
    send(a, NUMBERS[:10])
    with pytest.raises(TransferError, match=r"10 items with tag 7.* at most 9"):
        receive(b, count=9)
    send(a, NUMBERS[:10])
    with pytest.raises(TransferError, match="expects int64"):
        receive(b, datatype="int64")


def test_a_list_that_goes_wrong_in_the_middle(tidy_pair: Pair) -> None:
    a, b = tidy_pair
    bad: list[Any] = [*range(999), None]
    got = np.full(1000, -1.0)
    receiving = Background(lambda: mpi_recv_buf(b, got, 0, 1000, "float64", 0, 7, COMM))
    with pytest.raises(TypeError, match="items 900 to 999 of the list are of type object"):
        send(a, bad)
    with pytest.raises(TransferError, match=r"process 'A' failed in the middle.*TypeError"):
        receiving.result()
    assert got[:800].tolist() == bad[:800] and got[900] == -1


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ({"count": -1}, ValueError, "count must be at least 0, not -1"),
        ({"offset": -1}, ValueError, "offset must be at least 0, not -1"),
        ({"offset": 999, "count": 2}, ValueError, "which has 1000 items"),
        ({"count": 1.0}, TypeError, "count is a whole number"),
        ({"datatype": "nonsense"}, TypeError, "NumPy type"),
        ({"datatype": "float32"}, TypeError, "float64, and datatype says float32"),
        ({"tag": None}, TypeError, "whole number or a text"),
        ({"tag": 1.5}, TypeError, "whole number or a text"),
        ({"dest": 2}, ValueError, "rank 2 is not in 'test'"),
        ({"dest": -1}, ValueError, "rank -1"),
        ({"chunk_bytes": 0}, ValueError, "chunk_bytes must be at least 1, not 0"),
        ({"chunk_bytes": -5}, ValueError, "chunk_bytes"),
        ({"window": 0}, ValueError, "window must be at least 1, not 0"),
        ({"window": 2.0}, TypeError, "window is a whole number"),
    ],
)
def test_bad_input_sends_and_receives_nothing(
    tidy_pair: Pair, wrong: dict[str, Any], error: type[Exception], says: str
) -> None:
    a, b = tidy_pair
    right = {"offset": 0, "count": 1000, "datatype": "float64", "tag": 7}
    with pytest.raises(error, match=says):
        mpi_send_buf(a, NUMBERS, comm=COMM, **{"dest": 1} | right | wrong)
    if not wrong.keys() & {"chunk_bytes", "window"} and wrong != {"tag": None}:
        wrong = {{"dest": "src"}.get(name, name): value for name, value in wrong.items()}
        with pytest.raises(error, match=says):
            mpi_recv_buf(b, NUMBERS.copy(), comm=COMM, **{"src": 0} | right | wrong)
    assert depth(a) == 0 and depth(b) == 0


def test_a_sender_whose_receiver_leaves(pair: Pair) -> None:
    a, b = pair
    sending = Background(lambda: send(a))
    wait_until(lambda: depth(b) == 3)
    b.close()
    with pytest.raises(PeerLost, match="'B'"):
        sending.result()


def test_a_receiver_whose_sender_leaves(pair: Pair) -> None:
    a, b = pair
    a.send(dest="B", hello=True)
    assert b.recv(5).hello
    receiving = Background(lambda: receive(b))
    a.close()
    with pytest.raises(PeerLost, match="'A'"):
        receiving.result()


def test_chunks_of_a_lost_process_are_not_taken_for_its_successors(pair: Pair, join: Join) -> None:
    a, b = pair
    lost = Background(lambda: send(a))
    wait_until(lambda: depth(b) == 3)
    a.close()
    with pytest.raises(Exception, match="closed"):
        lost.result()
    again = join("A")
    sending = Background(lambda: send(again, NUMBERS + 1))
    assert receive(b) == (NUMBERS + 1).tolist()
    sending.result()
    assert depth(b) == 0
