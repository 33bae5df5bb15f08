"""Stop in a chunked transfer: the other side hears of it, and nothing is left behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sfm_kernel import Endpoint
from sfm_kernel.mpi import TransferError
from tests.contract import test_chunks
from tests.contract.conftest import Background, Pair, interrupted_when
from tests.contract.test_chunks import NUMBERS, depth, receive, send
from tests.waiting import wait_until

tidy_pair = test_chunks.tidy_pair


@pytest.mark.parametrize("buffering", [0, 1 << 20])
def test_a_transfer_interrupted_before_its_receive_is_passed_over(
    tidy_pair: Pair, buffering: int
) -> None:
    a, b = tidy_pair
    a.buffering = b.buffering = buffering
    with pytest.raises(KeyboardInterrupt), interrupted_when(lambda: depth(b) >= 1):
        send(a)
    wait_until(lambda: b.peek(mtype="interrupted"))
    sending = Background(lambda: send(a, NUMBERS + 1))
    assert receive(b) == (NUMBERS + 1).tolist()
    sending.result()


def test_the_receiver_hears_that_its_sender_was_interrupted(
    tidy_pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = tidy_pair
    receiving = Background(lambda: receive(b))
    calls = []

    def get(self: Any, start: int, end: int) -> Any:
        calls.append(start)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return NUMBERS[start:end]

    monkeypatch.setattr("sfm_kernel.mpi.items._ArrayItems.get", get)
    with pytest.raises(KeyboardInterrupt):
        send(a, window=2)
    with pytest.raises(TransferError, match="process 'A' was interrupted in the middle"):
        receiving.result()
    monkeypatch.undo()


def test_the_sender_hears_that_its_receiver_was_interrupted(
    tidy_pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = tidy_pair
    calls = []

    def put(self: Any, start: int, end: int, chunk: Any) -> None:
        calls.append(start)
        if len(calls) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr("sfm_kernel.mpi.items._ArrayItems.put", put)
    sending = Background(lambda: send(a, window=2))
    with pytest.raises(KeyboardInterrupt):
        receive(b)
    with pytest.raises(TransferError, match="process 'B' was interrupted in the middle"):
        sending.result()
    monkeypatch.undo()


def test_stop_ends_a_receive_that_waits(tidy_pair: Pair) -> None:
    _, b = tidy_pair
    with pytest.raises(KeyboardInterrupt), interrupted_when(lambda: True):
        receive(b)


@pytest.fixture
def first_send_stops(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    """The endpoints' next send is interrupted when it is done and the condition holds."""

    def prepare(condition: Callable[[], Any]) -> None:
        native = Endpoint.send

        def stopped(sfm: Endpoint, **attributes: Any) -> None:
            monkeypatch.setattr(Endpoint, "send", native)
            native(sfm, **attributes)
            wait_until(condition)
            raise KeyboardInterrupt

        monkeypatch.setattr(Endpoint, "send", stopped)

    return prepare


def test_a_transfer_that_stops_with_its_first_chunk_is_passed_over(
    tidy_pair: Pair, first_send_stops: Callable[..., None]
) -> None:
    a, b = tidy_pair
    first_send_stops(lambda: b.peek(start=0))
    with pytest.raises(KeyboardInterrupt):
        send(a)
    wait_until(lambda: b.peek(mtype="interrupted"))  # a receive before that is told of it
    receiving = Background(lambda: receive(b))
    sending = Background(lambda: send(a, NUMBERS + 1))
    assert receiving.result() == (NUMBERS + 1).tolist()
    sending.result()


def test_the_receiver_of_the_first_chunk_hears_that_it_was_the_last(
    tidy_pair: Pair, first_send_stops: Callable[..., None]
) -> None:
    a, b = tidy_pair
    first_send_stops(lambda: a.peek(src="B", tag=7))  # the acknowledgement: B waits for the next
    receiving = Background(lambda: receive(b))
    with pytest.raises(KeyboardInterrupt):
        send(a)
    with pytest.raises(TransferError, match="process 'A' was interrupted in the middle"):
        receiving.result()


def test_a_first_chunk_that_cannot_be_sent_leaves_the_receiver_waiting(
    tidy_pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = tidy_pair
    receiving = Background(lambda: receive(b))
    with pytest.raises(TypeError, match="items 0 to 99"):
        send(a, [None] * 1000)
    with monkeypatch.context() as patch:
        patch.setattr(Endpoint, "send", None)
        with pytest.raises(TypeError, match="not callable"):
            send(a)
    sending = Background(lambda: send(a, NUMBERS + 1))
    assert receiving.result() == (NUMBERS + 1).tolist()
    sending.result()
