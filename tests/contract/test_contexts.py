"""Contexts on one endpoint: none sees the messages of another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfm_kernel import Context, PeerLost, RecvTimeout, WouldBlock
from sfm_kernel.collectives import Group
from tests.contract.conftest import Background, Pair
from tests.waiting import wait_until


def test_each_context_has_its_own_messages(pair: Pair) -> None:
    a, b = pair
    a.context("one").send(dest="B", n=1)
    a.send(dest="B", n=2)
    a.context("two").send(dest="B", n=3)
    assert b.recv().n == 2
    assert b.context("two").recv().n == 3
    message = b.context("one").recv(src="A")
    assert dict(message) == {"dest": "B", "src": "A", "n": 1}
    for context in (b, b.context("one"), b.context("two")):
        assert not context.peek()
        with pytest.raises(WouldBlock):
            context.recv_nb()


def test_the_same_name_is_the_same_context(pair: Pair) -> None:
    a, _ = pair
    assert a.context("one") is a.context("one")
    assert "one" in repr(a.context("one"))
    with pytest.raises(ValueError, match="a context's name is a text, not ''"):
        a.context("")


def test_a_wait_in_a_context_ends_with_its_message_only(pair: Pair) -> None:
    a, b = pair
    waiting = Background(lambda: b.context("c").recv(src="A", tag="x"))
    a.send(dest="B", tag="x", n=1)
    a.context("d").send(dest="B", tag="x", n=2)
    a.context("c").send(dest="B", tag="y", n=3)
    a.context("c").send(dest="B", tag="x", n=4)
    assert waiting.result().n == 4
    assert b.recv(tag="x").n == 1
    with pytest.raises(RecvTimeout):
        b.context("c").recv(0.05, tag="x")


def test_order_is_kept_for_any_size(pair: Pair) -> None:
    a, b = pair
    for number in range(40):
        a.context("c").send(dest="B", number=number, data=np.full(number * 997, number))
    for number in range(40):
        message = b.context("c").recv(src="A")
        assert message.number == number and (message.data == number).all()


def test_callbacks_do_not_see_what_is_in_a_context(pair: Pair) -> None:
    a, b = pair
    seen: list[Any] = []
    with b.regcb(lambda message: seen.append(message.n)):
        waiting = Background(lambda: b.context("c").recv())
        for n in range(50):
            a.send(dest="B", n=n)
        a.context("c").send(dest="B", n="mine")
        assert waiting.result().n == "mine"
        a.send(dest="B", n="last")
        wait_until(lambda: "last" in seen)
    assert seen == [*range(50), "last"]


def test_a_peer_that_leaves_is_lost_in_a_context_too(pair: Pair) -> None:
    a, b = pair
    a.context("c").send(dest="B", n=1)
    waiting = Background(lambda: [b.context("c").recv(src="A") for _ in range(2)])
    wait_until(lambda: not b.context("c").peek())
    a.close()
    with pytest.raises(PeerLost):
        waiting.result()


def test_a_context_has_its_own_buffering(pair: Pair) -> None:
    a, b = pair
    context = a.context("c")
    assert context.buffering == a.buffering
    context.buffering = 0
    sending = Background(lambda: context.send(dest="B", n=1))
    assert b.context("c").recv().n == 1
    sending.result()


def test_news_keep_nobody_waiting(pair: Pair, kind: str) -> None:
    a, b = pair
    news, heard = Context(a, "n", news=True), Context(b, "n", news=True)
    for number in range(100):
        news.send(dest="B", number=number)
    a.send(dest="B", text="before")
    assert b.recv().text == "before"
    a.buffering = 0  # waits until all that counts was received
    sending = Background(lambda: a.send(dest="B", text="after"))
    assert b.recv(src="A").text == "after"
    sending.result()
    assert [heard.recv().number for _ in range(100)] == list(range(100))


def test_another_buffering_for_the_same_messages(pair: Pair) -> None:
    a, b = pair
    a.buffering = a.context("c").buffering = 0
    a.with_buffering(1 << 20).send(dest="B", n=1)  # returns at once
    a.context("c").with_buffering(1 << 20).send(dest="B", n=2)
    assert (b.recv().n, b.context("c").recv().n) == (1, 2)
    with pytest.raises(ValueError, match="buffering is a number of bytes"):
        a.with_buffering(-1)


def test_many_contexts(pair: Pair) -> None:
    a, b = pair
    for number in range(100):
        a.context(f"group {number}").send(dest="B", number=number)
    for number in reversed(range(100)):
        assert b.context(f"group {number}").recv().number == number


def given_up() -> None:
    raise TimeoutError("given up")


def test_a_group_that_was_given_up_takes_no_room(pair: Pair) -> None:
    a, b = pair
    with pytest.raises(TimeoutError, match="given up"):
        Group(b, ["A", "B"], on_wait=given_up)  # has told A, who never reads it
    b.buffering = 0
    sending = Background(lambda: b.send(dest="A", n=1))
    assert a.recv(20, n=1).n == 1
    sending.result()


def test_messages_of_collective_calls_take_no_room(pair: Pair) -> None:
    a, b = pair
    making = Background(lambda: Group(b, ["A", "B"]))
    group_of_a = Group(a, ["A", "B"])
    group_of_b = making.result()
    group_of_a.bcast(b"x" * 3000, root=0, algorithm="binomial")  # B is not in the call yet
    a.buffering = 0
    sending = Background(lambda: a.send(dest="B", n=1))
    assert b.recv(20, n=1).n == 1
    sending.result()
    assert group_of_b.bcast(None, root=0, algorithm="binomial") == b"x" * 3000
    a.buffering = 1000
    library = Context(a, "library", 1000, library=True)
    library.send(dest="B", data=bytes(5000))
    a.send(dest="B", n=2)
    assert b.recv(20, n=2).n == 2
    stopped = Background(lambda: library.send(dest="B", n=3))  # and has room of its own
    receiving = Context(b, "library", library=True)
    assert len(receiving.recv(20).data) == 5000
    assert receiving.recv(20).n == 3
    stopped.result()
