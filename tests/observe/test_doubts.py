"""Deadlocks that only something could resolve that nobody can judge."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import sfm_kernel
from sfm_kernel import Endpoint, RecvTimeout, WouldBlock
from sfm_kernel.observe import DeadlockMonitor
from tests.observe.harness import running

NAMES = ["asks", "helps", "locked", "answers", "waits", "polls", "retries"]


def seven_ways(sfm: Endpoint) -> None:
    """Nobody goes on, and no observer can prove that."""
    peer: Any = dict(zip(NAMES, NAMES[1:] + NAMES[:1], strict=True))[str(sfm.name)]
    if sfm.name in ("asks", "helps"):  # their network threads wait for each other
        sfm.buffering = 0
        peer = "helps" if sfm.name == "asks" else "asks"
        sfm.regcb(lambda m: sfm.send(dest=peer, hop=m.hop + 1), hop=lambda hop: hop >= 0)
        sfm.with_buffering(1000).send(dest=peer, hop=0)
        sfm.recv(src=peer, tag="end")
    elif sfm.name == "locked":
        result = threading.Event()
        sfm.regcb(lambda _: result.set(), tag="result")
        sfm.recv(tag="results", src="answers", n=0)
        result.wait()  # lock
    elif sfm.name == "answers":
        for n in range(2):
            sfm.send(dest="locked", tag="results", n=n)
        sfm.recv(src="locked")
    elif sfm.name == "waits":
        sfm.wait_for("master")
    while sfm.name == "polls":
        with contextlib.suppress(WouldBlock):
            sfm.recv_nb(src="waits")
    while sfm.name == "retries":
        with contextlib.suppress(RecvTimeout):
            sfm.recv(0.2, src="polls")


def holds(sfm: Endpoint) -> None:
    lock = threading.Lock()
    lock.acquire()
    with lock:
        pass


def pools(sfm: Endpoint) -> None:
    pool = ThreadPoolExecutor(1)
    pool.submit(lambda: pool.submit(int).result()).result()


def awaits(sfm: Endpoint) -> None:
    async def first() -> None:
        await asyncio.Event().wait()

    async def both() -> None:
        await asyncio.gather(first(), first())

    asyncio.run(both())


def joins(sfm: Endpoint) -> None:
    thread = threading.Thread(target=lambda: sfm.recv(tag="never"), daemon=True)
    thread.start()
    thread.join()


def shares(sfm: Endpoint) -> None:
    threading.Thread(target=sfm.recv, kwargs={"tag": "a"}, name="rx", daemon=True).start()
    time.sleep(0.2)
    sfm.recv(tag="b")


def raises(sfm: Endpoint) -> None:
    sfm.regcb(lambda message: 1 / message.n, n=0)
    sfm.send(dest="raises", n=0)
    sfm.recv(tag="reply")


AT = r"test_doubts\.py, line \d+"
LOCK = "That may end: the lock that its main thread waits for in"
ASLEEP: dict[Callable[[Endpoint], None], str] = {
    holds: rf"holds waits for a lock in {AT} \(holds\)\.",
    pools: rf"pools waits for a lock in {AT} \(pools, in Future\.result\)\.",
    awaits: rf"awaits waits for a lock in {AT} \(first, in Event\.wait\)\.",
    joins: rf"joins waits for recv\(tag='never'\) in {AT}\. "
    rf"{LOCK} {AT} \(joins, in Thread\.join\) could be released\.",
    shares: rf"shares waits for recv\(tag='b'\) in {AT} \(shares\)\. "
    r"That may end: thread 'rx' .*could go on\.",
    raises: r"raises waits for recv\(tag='reply'\) in .*That may end: callback regcb\(n=0\) "
    rf"\(in {AT} \(where it raised ZeroDivisionError\)\) could go on\.",
}
"""Programs that sleep for ever, in ways that nobody can prove, and what is said of them."""


def in_doubt(sfm: Endpoint) -> None:
    ways = {way.__name__: way for way in ASLEEP}
    ways.get(str(sfm.name), seven_ways)(sfm)


def test_doubts_are_said_as_doubts() -> None:
    names = [*NAMES, *(way.__name__ for way in ASLEEP)]
    with running(in_doubt, len(names), names=names) as run:
        monitor, found = DeadlockMonitor(run.folder), None
        while found is None:
            found = monitor.check()
            time.sleep(0.1)
    assert (found["verdict"], found["stuck"]) == ("waiting", [])
    assert found["title"].startswith("It would be a deadlock but for ")
    assert set(found["but_for"]["stuck"]) == set(names)
    said = {judged["name"]: judged["text"] for judged in found["processes"]}
    for name in ("asks", "helps"):
        # By the moment of the look, its callback still runs, or could run again.
        assert "since a callback runs." in said[name] or "callback regcb(hop=" in said[name]
    assert said["locked"].startswith("locked waits for a lock in test_doubts.py, line ")
    assert said["locked"].endswith(
        "locked's inbox holds 1 message that nearly fits callback regcb(tag='result'): "
        "tag is 'results', not 'result'."
    )
    for way, text in ASLEEP.items():
        assert re.fullmatch(text, said[way.__name__]), said[way.__name__]
    assert "Nobody is named 'master'; there are asks, helps, locked, " in said["waits"]
    assert said["waits"].endswith("That may end: a newcomer named 'master' may still join.")
    assert said["polls"].startswith("polls polls recv_nb(src='waits') in ")
    last = found["sentences"][-1]
    for text in (
        "polls and retries do nothing but poll",
        "nobody releases the lock that locked waits for, the lock that holds waits for, ",
        "a newcomer named 'master' never joins",
    ):
        assert text in last


def tells(sfm: Endpoint) -> None:
    """A guest, which has learnt the world's name, has sent and left: another one may come."""
    if sfm.name == "A":
        sfm.recv(tag="result")
        sfm.recv(tag="result")
    else:
        with sfm_kernel.join(sfm.world, "worker", guest=True) as worker:
            worker.send(dest="A", tag="result")


def test_a_guest_may_join_a_world_whose_name_is_known() -> None:
    with running(tells, 2, names=["A", "B"]) as run:
        monitor, found = DeadlockMonitor(run.folder), None
        while found is None:
            found = monitor.check()
            time.sleep(0.1)
    assert (found["verdict"], found["stuck"]) == ("waiting", [])
    assert found["title"] == (
        "It would be a deadlock but for a newcomer: A waits for a message that nobody will send"
    )
    assert "That may end: a newcomer may still join." in found["sentences"][0]
    assert found["sentences"][-1] == "If a newcomer never joins, A never goes on."
