"""Back-pressure: a full inbox makes ``send`` wait; nothing is dropped."""

from __future__ import annotations

import itertools
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel import Endpoint, Group
from sfm_kernel.endpoint import seen
from sfm_kernel.observe.snapshot import snapshot
from tests.contract.conftest import Background, Join, Pair, interrupted_when
from tests.waiting import wait_until

THROUGH_GATEWAYS = True


def state(endpoint: Endpoint) -> dict[str, Any]:
    processes = snapshot(endpoint.folder)["processes"]
    return next(process for process in processes if process["name"] == endpoint.name)


def blocked(endpoint: Endpoint, how: str) -> Callable[[], bool]:
    return lambda: state(endpoint)["state"] == f"blocked in {how}"


def test_a_full_inbox_makes_send_wait(pair: Pair) -> None:
    a, b = pair
    a.buffering = 20_000
    sent: list[int] = []

    def flood() -> None:
        for nth in range(300):
            a.send(dest="B", nth=nth, data=bytes(1000))
            sent.append(nth)

    flooding = Background(flood)
    wait_until(blocked(a, "send"))
    assert len(sent) < 30, "about 20 messages fit"
    assert "'B'" in state(a)["waits"]
    assert [b.recv(20).nth for _ in range(300)] == list(range(300))
    flooding.result()
    assert state(a)["state"] == "running"


def test_a_message_larger_than_the_allowance_goes_alone(pair: Pair) -> None:
    a, b = pair
    a.buffering = 1000
    sending = Background(lambda: [a.send(dest="B", nth=n, data=bytes(600_000)) for n in range(3)])
    assert [b.recv(20).nth for _ in range(3)] == [0, 1, 2]
    sending.result()


def test_one_flooded_sender_does_not_stop_another(pair: Pair, join: Join) -> None:
    a, b = pair
    c = join("C")
    a.buffering = 5_000
    flooding = Background(lambda: [a.send(dest="B", n=n, data=bytes(1000)) for n in range(20)])
    wait_until(blocked(a, "send"))
    c.send(dest="B", hello=True)
    assert b.recv(20, src="C").hello
    for _ in range(20):
        b.recv(20, src="A")
    flooding.result()


def test_without_buffering_send_waits_for_its_receive(pair: Pair) -> None:
    a, b = pair
    a.buffering = 0
    sending = Background(lambda: a.send(dest="B", n=1))
    wait_until(blocked(a, "send"))
    assert sending.is_alive()
    b.recv(20, n=1)
    sending.result()
    for n in range(20):
        sending = Background(lambda n=n: a.send(dest="B", n=n))
        assert b.recv(20).n == n
        sending.result()


def test_a_receiver_that_computes_still_takes_in(pair: Pair) -> None:
    a, b = pair
    for nth in range(3000):  # several rings full, and nobody is in recv
        a.send(dest="B", nth=nth, data=bytes(500))
    wait_until(lambda: state(b)["depth"] > 1000)
    assert [b.recv(20).nth for _ in range(3000)] == list(range(3000))


def test_stop_ends_a_blocked_recv_and_loses_nothing(pair: Pair) -> None:
    a, b = pair
    with pytest.raises(KeyboardInterrupt), interrupted_when(blocked(b, "recv")):
        b.recv(tag=1)
    a.send(dest="B", tag=1)
    assert b.recv(20, tag=1)


def test_stop_ends_a_blocked_send_and_nothing_was_sent(pair: Pair) -> None:
    a, b = pair
    a.buffering = 3000
    a.send(dest="B", n=1, data=bytes(2500))
    with pytest.raises(KeyboardInterrupt), interrupted_when(blocked(a, "send")):
        a.send(dest="B", n=2, data=bytes(2500))
    assert b.recv(20).n == 1
    a.send(dest="B", n=3)
    assert b.recv(20).n == 3
    with pytest.raises(sfm_kernel.WouldBlock):
        b.recv_nb()


# Python itself swallows an interrupt inside a weakref's callback or a destructor.
INSIDE_PYTHON = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def test_a_signal_handler_that_sends_where_the_thread_is_sending(pair: Pair) -> None:
    """The handler's send raises or succeeds; the thread does not wait for itself."""
    a, b = pair
    a.buffering = 10_000
    a.send(dest="B", n=0, data=bytes(9_000))
    outcome: list[str] = []

    entered = threading.Event()

    def handle(*_: object) -> None:
        entered.set()
        try:
            a.send(dest="B", n="handler", data=bytes(9_000))
            outcome.append("sent")
        except sfm_kernel.SFMError as error:
            outcome.append(str(error))

    def strike() -> None:
        wait_until(blocked(a, "send"))
        os.kill(os.getpid(), signal.SIGUSR1)
        wait_until(entered.is_set)
        if a.route_kind("B") == "shm":
            wait_until(lambda: outcome)
        received.extend(b.recv(20).n for _ in range(2))

    received: list[object] = []
    before = signal.signal(signal.SIGUSR1, handle)
    striker = threading.Thread(target=strike)
    try:
        striker.start()
        a.send(dest="B", n=1, data=bytes(9_000))
        striker.join()
        missing = 2 + (outcome == ["sent"]) - len(received)
        received.extend(b.recv(20).n for _ in range(missing))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert outcome == ["sent"] or "signal handler" in outcome[0]
    assert received == ([0, "handler", 1] if outcome == ["sent"] else [0, 1])


class Storm:
    """Ctrl-C again and again; it strikes only while ``armed``, and disarms itself."""

    def __init__(self, every: float) -> None:
        self.armed, self.strikes = False, 0
        self._every, self._over = every, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        # Irregularly: a call that takes longer than the mean gets through now and then. And ever
        # more rarely, however slow the machine is.
        mean = self._every
        while not self._over.wait(random.expovariate(1 / mean)):
            os.kill(os.getpid(), signal.SIGINT)
            mean = min(1.01 * mean, 20 * self._every)

    def _strike(self, *_: object) -> None:
        if self.armed:
            self.armed = False
            self.strikes += 1
            raise KeyboardInterrupt

    def __enter__(self) -> Storm:
        self._before = signal.signal(signal.SIGINT, self._strike)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        time.sleep(0.01)
        signal.signal(signal.SIGINT, self._before)

    def through(self, work: Callable[[], bool]) -> None:
        """Call ``work()`` until it says that it is done, whatever strikes."""
        while True:
            try:
                self._until_done(work)
                return
            except KeyboardInterrupt:
                continue

    def _until_done(self, work: Callable[[], bool]) -> None:
        # A function of its own: what is raised at the end of a loop's body is outside of a ``try``
        # around the loop, as Python 3.13 compiles it.
        self.armed = True
        while not work():
            self.armed = True
        self.armed = False


@INSIDE_PYTHON
def test_stop_in_the_middle_of_a_large_message_takes_it_back(pair: Pair) -> None:
    a, b = pair
    a.buffering = 1 << 30  # only room in the ring makes it wait
    array = np.arange(400_000)
    numbers = itertools.count()
    completed: list[int] = []

    def send() -> bool:
        nth = next(numbers)
        a.send(dest="B", nth=nth, array=array)
        completed.append(nth)
        return nth >= 60 and storm.strikes > 3

    with Storm(0.005) as storm:
        storm.through(send)
    a.send(dest="B", nth=-1, array=array)
    got = []
    while (m := b.recv(20)).nth >= 0:
        assert np.array_equal(m.array, array)
        got.append(m.nth)
    assert got == sorted(set(got)), "in order, none twice"
    assert set(completed) <= set(got), "what was sent is received"


@INSIDE_PYTHON
def test_stop_never_loses_a_message(pair: Pair) -> None:
    """A storm of interrupts while messages are received: each is received exactly once."""
    a, b = pair
    enough = threading.Event()

    def flood() -> int:
        n = 0
        while not enough.is_set() or n < 3000:
            a.send(dest="B", n=n)
            n += 1
        a.send(dest="B", n=-1)
        return n

    sending = Background(flood)
    got: list[Any] = []

    def receive() -> bool:
        # CPython looks for signals after a call of C code, and not between the return of recv
        # and the append: what recv returns is stored.
        got.append(b.recv(20))
        return got[-1].n < 0

    with Storm(0.0007) as storm:

        def watch() -> None:
            wait_until(lambda: storm.strikes > 20)
            enough.set()

        watching = Background(watch)
        storm.through(receive)
    watching.result()
    assert [m.n for m in got[:-1]] == list(range(sending.result()))


def test_stop_while_a_line_of_the_program_is_looked_up(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first call from a piece of code describes it for observers, in Python. Its message is on
    its way by then, or has not begun it."""
    a, b = pair

    def stopped(filename: str) -> None:
        monkeypatch.setattr(seen, "find_cell", None)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(seen, "find_cell", stopped)
    with pytest.raises(KeyboardInterrupt):
        exec(compile("a.send(dest='B', n=1)", "fresh.py", "exec"), {"a": a})
    a.send(dest="B", n=2)
    got = [b.recv(20).n]
    assert got + [b.recv(20).n for _ in range(2 - got[0])] in ([2], [1, 2])


class Slow:
    """A name, or operation, that is looked up in Python; Stop comes the first time."""

    looked_up = 0

    def __hash__(self) -> int:
        self.looked_up += 1
        if self.looked_up == 1:
            raise KeyboardInterrupt
        return 0

    def __call__(self, a: float, b: float) -> float:
        raise NotImplementedError


def test_stop_while_a_name_is_looked_up(pair: Pair) -> None:
    a, b = pair
    a.send(dest="B", n=1)
    with pytest.raises(KeyboardInterrupt):
        a.send(dest=Slow(), n=2)
    assert b.recv(20).n == 1


def test_stop_while_an_operation_is_looked_up(pair: Pair) -> None:
    with pytest.raises(KeyboardInterrupt):
        Group(pair[0], [pair[0].name]).allreduce(1.0, Slow())
