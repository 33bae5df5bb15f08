"""Waiting for remote calls: futures, threads, timeouts, deaths, Stop; and what observers see."""

from __future__ import annotations

import os
import signal
import threading
from concurrent import futures
from typing import Any

import pytest

import sfm_kernel
from sfm_kernel import Endpoint, remote, serving
from sfm_kernel.errors import PeerLost, ProcessFailed, RecvTimeout
from sfm_kernel.observe import explain
from tests.river.bank import Account, bank
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("forked")


def test_calls_of_several_overlap() -> None:
    def use(sfm: Endpoint, *engines: Any) -> None:
        began = [engine.meet.future(["A", "B", "C"]) for engine in engines]
        done, rest = futures.wait(began)  # nobody calls result()
        assert len(done) == 3 and not rest
        began = [engine.meet.future(["A", "B", "C"]) for engine in engines]
        assert sorted(call.result() for call in futures.as_completed(began)) == ["A", "B", "C"]
        came = threading.Event()
        engines[0].account.nap.future(0.01).add_done_callback(lambda _: came.set())
        assert came.wait(100)
        assert not began[0].cancel()

    bank(use, 4)


def test_threads_share_a_connection() -> None:
    def use(sfm: Endpoint, a: Any, _: Any) -> None:
        def some(number: int) -> list[float]:
            mine = a.new(Account, number)
            return [mine.deposit(1) for _ in range(50)] + [a.double.future(number).result()]

        with futures.ThreadPoolExecutor(4) as pool:
            for number, got in enumerate(pool.map(some, range(8))):
                assert got == [*range(1, 51), 2 * number]

    bank(use)


def test_time_is_over() -> None:
    def use(sfm: Endpoint, a: Any, b: Any) -> None:
        call = a.account.nap.future(0.5)
        with pytest.raises(
            RecvTimeout, match=r"account.nap\(0.5\) on 'A' has not ended within 0.05"
        ):
            call.result(0.05)
        assert call.result() == 0.5
        with remote.connect(sfm, "B", timeout=0.05) as hasty:
            with pytest.raises(TimeoutError, match="It still runs there"):
                hasty.account.nap(0.5)
        assert b.account.deposit(1) == 11

    bank(use)


@pytest.mark.fault
def test_the_process_dies() -> None:
    def use(sfm: Endpoint, a: Any, b: Any) -> None:
        nap = a.account.nap
        calls = [nap.future(1000), nap.future(1000)]
        os.kill(next(member.pid for member in sfm.members() if member.name == "A"), signal.SIGKILL)
        for call in calls:
            with pytest.raises(PeerLost, match="'A' has ended") as failure:
                call.result()
            assert failure.value.peer == "A"
        with pytest.raises(PeerLost):
            nap(1)
        assert b.account.deposit(1) == 11
        raise ArithmeticError("all is well")

    with pytest.raises(ProcessFailed, match=r"all is well|was killed by SIGKILL"):
        bank(use)


def test_stop_ends_a_call() -> None:
    def use(sfm: Endpoint, a: Any, _: Any) -> None:
        for wait in (lambda: a.account.nap(1), lambda: a.account.nap.future(1).result()):
            pid = os.getpid()
            timer = threading.Timer(0.2, os.kill, (pid, signal.SIGINT))
            timer.start()
            with pytest.raises(KeyboardInterrupt):
                wait()
            timer.join()
        assert a.account.deposit(1) == 11  # when it has ended what it did

    bank(use)


def test_observers_are_told_what_is_called() -> None:
    def program(sfm: Endpoint) -> Any:
        if sfm.rank == 1:
            remote.export("account", Account("A"))
            serving.serve(sfm)
        elif sfm.rank == 0:
            with remote.connect(sfm, "A") as a:
                a.account.nap(2)
        else:
            sentences = ""

            def look() -> bool:
                nonlocal sentences
                sentences = "\n".join(explain(sfm)["sentences"])
                return "is in account.nap" in sentences

            wait_until(look)
            return sentences
        return None

    sentences = sfm_kernel.run(program, 3, names=["home", "A", "C"], timeout=100)[2]
    assert "home is in account.nap(2) on A and waits for A" in sentences
