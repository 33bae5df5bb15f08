"""Callbacks: called from the network thread for every later match."""

from __future__ import annotations

import io
import sys
import threading
import time
from typing import Any

import pytest

import sfm_kernel
from sfm_kernel import Endpoint
from sfm_kernel.endpoint import endpoint as module
from tests.contract.conftest import Background, Join, Pair
from tests.waiting import wait_until

THROUGH_GATEWAYS = True


def test_called_for_every_match_and_consumes_it(pair: Pair) -> None:
    a, b = pair
    got: list[Any] = []
    callback = b.regcb(lambda m: got.append((m.n, threading.current_thread().name)), tag="cb")
    for n in range(50):
        a.send(dest="B", tag="cb" if n % 2 else "other", n=n)
    assert [b.recv(20).n for _ in range(25)] == list(range(0, 50, 2))
    wait_until(lambda: len(got) == 25)
    assert [n for n, _ in got] == list(range(1, 50, 2))
    assert all(name.startswith("sfm-network") for _, name in got)
    callback.unregister()
    callback.unregister()
    a.send(dest="B", tag="cb", n=99)
    assert b.recv(20, tag="cb").n == 99


def test_while_the_process_computes(pair: Pair) -> None:
    a, b = pair
    got: list[int] = []
    with b.regcb(lambda m: got.append(m.n)):
        a.send(dest="B", n=1)
        deadline = time.monotonic() + 20
        while not got and time.monotonic() < deadline:
            sum(range(1000))  # busy, never in a call of ours
    assert got == [1]


def test_predicates_and_src(pair: Pair, join: Join) -> None:
    a, b = pair
    c = join("C")
    small: list[int] = []
    from_c: list[int] = []
    b.regcb(lambda m: small.append(m.n), n=lambda n: n < 3)
    b.regcb(lambda m: from_c.append(m.n), src=2)
    for n in range(6):
        (a if n % 2 else c).send(dest="B", n=n)
    assert sorted(b.recv(20, src="A").n for _ in range(2)) == [3, 5]
    wait_until(lambda: len(small) == 3 and len(from_c) == 1)
    assert sorted(small) == [0, 1, 2] and from_c == [4]


def test_an_error_of_a_callback_is_shown_and_the_next_message_is_served(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = pair
    got: list[int] = []
    # capsys loses what another thread writes while it is read.
    monkeypatch.setattr(sys, "stderr", written := io.StringIO())

    def picky(m: sfm_kernel.Message) -> None:
        got.append(10 // m.n)

    with b.regcb(picky, tag=1):
        for n in (5, 0, 2):
            a.send(dest="B", tag=1, n=n)
        wait_until(lambda: len(got) == 2)
    assert got == [2, 5]
    wait_until(lambda: "ZeroDivisionError" in written.getvalue())


def test_a_predicate_that_raises_hides_nothing(
    pair: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = pair
    with b.regcb(print, n=lambda n: 1 / 0):
        a.send(dest="B", n=1)
        assert b.recv(20).n == 1
    assert "predicate" in capsys.readouterr().err


def test_it_may_send_but_not_wait(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = pair

    def echo(m: sfm_kernel.Message) -> None:
        b.send(dest=m.src, reply=m.n)
        b.recv(tag="never")

    with b.regcb(echo, ask=True):
        a.send(dest="B", ask=True, n=1)
        a.send(dest="B", ask=True, n=2)
        assert [a.recv(20).reply, a.recv(20).reply] == [1, 2]
        shown: list[str] = []
        wait_until(
            lambda: (
                shown.append(capsys.readouterr().err) or "".join(shown).count("SFMError: a") == 2
            )
        )
    assert "network thread" in "".join(shown)


def test_it_answers_who_waits_for_nothing_else(pair: Pair) -> None:
    a, b = pair
    a.buffering = b.buffering = 0  # the question is received when the callback gets it
    with b.regcb(lambda m: b.send(dest=m.src, reply=m.n), ask=True):
        for n in range(5):
            a.send(dest="B", ask=True, n=n)
            assert a.recv(20).reply == n
        # No answer is received before the question was sent.
        asking = Background(lambda: [a.send(dest="B", ask=True, n=n) for n in range(5)])
        assert [a.recv(20).reply for _ in range(5)] == list(range(5))
        asking.result()


def test_two_that_send_each_other_more_than_a_ring_holds(
    join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFM_ARENA_BYTES", "0")
    a, b, c = join("A"), join("B"), join("C")
    finished: list[str] = []

    def flood(endpoint: Endpoint, dest: str) -> None:
        def call(_: sfm_kernel.Message) -> None:
            callbacks.pop().unregister()
            for n in range(20):
                endpoint.send(dest=dest, n=n, data=bytes(200_000))
            finished.append(dest)

        callbacks = [endpoint.regcb(call, go=True)]

    flood(a, "B")
    flood(b, "A")
    c.send(dest="A", go=True)
    c.send(dest="B", go=True)
    wait_until(lambda: len(finished) == 2)  # nobody receives meanwhile but they themselves
    for endpoint in (a, b):
        assert [endpoint.recv(20, n=n).n for n in range(20)] == list(range(20))


def test_order_holds_when_callbacks_come_and_go(pair: Pair) -> None:
    a, b = pair
    sending = Background(lambda: [a.send(dest="B", n=n) for n in range(2000)])
    done = threading.Event()

    def change() -> None:
        while not done.is_set():
            with b.regcb(print, never="matches"):
                time.sleep(0.001)

    changing = Background(change)
    got = [b.recv(20).n for _ in range(2000)]
    done.set()
    changing.result()
    sending.result()
    assert got == list(range(2000))


def test_unregister_inside_the_callback(pair: Pair) -> None:
    a, b = pair
    got: list[int] = []

    def once(m: sfm_kernel.Message) -> None:
        got.append(m.n)
        callback.unregister()

    callback = b.regcb(once)
    a.send(dest="B", n=1)
    wait_until(lambda: got == [1])
    a.send(dest="B", n=2)
    assert b.recv(20).n == 2


def test_at_the_end_all_are_called_that_have_come(pair: Pair) -> None:
    _, b = pair
    begun, go, got = threading.Event(), threading.Event(), []

    def slow(m: sfm_kernel.Message) -> None:
        begun.set()
        go.wait()
        got.append(m.n)
        b.send(dest="A", n=m.n)

    b.regcb(slow, tag="cb")
    for n in range(20):
        b.send(dest="B", tag="cb", n=n)
    begun.wait()
    threading.Timer(0.05, go.set).start()  # while it closes
    b.close()
    assert got == [*range(20)]
    assert [pair[0].recv(20, src="B").n for _ in got] == got


def test_one_that_floods_itself_ends(pair: Pair) -> None:
    _, b = pair
    called: list[int] = []

    def again(m: sfm_kernel.Message) -> None:
        called.append(m.n)
        for _ in range(2):
            b.send(dest="B", tag="cb", n=m.n + 1)

    b.regcb(again, tag="cb")
    b.send(dest="B", tag="cb", n=0)
    wait_until(lambda: len(called) > 10)
    b.close()
    count = len(called)
    time.sleep(0.05)
    assert len(called) == count, "none begins after the end"


def test_one_that_does_not_return_is_left(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, b = pair
    begun, go, got = threading.Event(), threading.Event(), []
    for name in ("_CALLBACKS", "_LAST_CALLBACK"):
        monkeypatch.setattr(module, name, 0.05)
    b.regcb(lambda m: (got.append(m.n), begun.set(), go.wait()), tag="cb")
    for n in range(3):
        b.send(dest="B", tag="cb", n=n)
    begun.wait()
    b.close()
    assert "a callback of process 'B' does not return" in capsys.readouterr().err
    go.set()
    b._network.join()
    assert got == [0]
