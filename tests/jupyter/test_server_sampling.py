"""The extension reads a world only for panels that show it; without a server."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import sfm_kernel
from sfm_kernel import Endpoint
from sfm_kernel.jupyter.server import sampler
from sfm_kernel.jupyter.server.sampler import Snapshots, World, Worlds
from sfm_kernel.jupyter.server.stream import (
    BadSubscription,
    Publisher,
    Subscriber,
    Subscription,
    timeline_text,
)
from tests.observe.pictures import check, flight

explaining = importlib.import_module("sfm_kernel.observe.explain")  # the package has functions of
snapshots = importlib.import_module("sfm_kernel.observe.snapshot")  # these names

Sent = list[dict[str, Any]]


@contextlib.asynccontextmanager
async def publisher() -> AsyncIterator[Publisher]:
    """A publisher that lists no worlds."""

    async def entries() -> list[dict[str, Any]]:
        return []

    with ThreadPoolExecutor(2, "sfm-read") as executor:
        yield Publisher(Worlds(), entries, executor)


@contextlib.asynccontextmanager
async def subscriber(publisher: Publisher) -> AsyncIterator[tuple[Subscriber, Sent]]:
    """A panel, and the messages that it gets."""
    sent: Sent = []

    async def write(text: str) -> None:
        sent.append(json.loads(text))

    joined = Subscriber(write)
    task = asyncio.create_task(joined.run())
    publisher.join(joined)
    try:
        yield joined, sent
    finally:
        publisher.leave(joined)
        task.cancel()


async def until(done: Callable[[], object]) -> None:
    """Wait until the condition is true; the watchdog ends a test that waits for ever."""
    while not done():
        await asyncio.sleep(0.01)


def loops() -> int:
    """The number of tasks that read worlds."""
    names = [getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks()]
    return names.count("Feed._run")


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that were read, one entry for each reading."""
    found: list[str] = []
    real = snapshots.pulse

    def pulse(folder: str, observer: Any = None) -> int:
        found.append(folder)
        return real(folder, observer)

    monkeypatch.setattr(snapshots, "pulse", pulse)
    return found


def test_one_feed_for_all_and_none_for_nobody(world: str, readings: list[str]) -> None:
    async def story() -> None:
        async with (
            publisher() as running,
            subscriber(running) as (first, ours),
            subscriber(running) as (second, theirs),
        ):
            await asyncio.sleep(0.2)
            assert loops() == 0 and not readings
            running.subscribe(first, Subscription(world, 20, frozenset({"snapshot"})))
            await until(lambda: "snapshot" in [it["type"] for it in ours])
            alone = loops()
            running.subscribe(second, Subscription(world, 20, frozenset({"snapshot"})))
            await until(lambda: "snapshot" in [it["type"] for it in theirs])
            assert alone == loops() > 0

            running.subscribe(first, Subscription(world, 20, frozenset()))
            running.subscribe(second, Subscription(None, 20, frozenset({"snapshot"})))
            await until(lambda: loops() == 0)
            readings.clear()
            await asyncio.sleep(0.3)
            assert not readings

            running.subscribe(first, Subscription(world, 20, frozenset({"snapshot"})))
            await until(lambda: [it["type"] for it in ours].count("snapshot") == 2)

    with sfm_kernel.join(world, "A"):
        asyncio.run(story())


def test_nothing_is_mapped_for_nobody(world: str) -> None:
    """Mappings of an ended world would reduce those that other worlds may have."""

    def mapped(uid: str) -> int:
        with open("/proc/self/maps") as lines:
            return sum(uid in line for line in lines)

    async def story(uid: str) -> None:
        async with publisher() as running, subscriber(running) as (first, sent):
            count = mapped(uid)
            running.subscribe(
                first, Subscription(world, 20, frozenset({"snapshot", "diagnosis", "timeline"}))
            )
            await until(lambda: "diagnosis" in [it["type"] for it in sent])
            assert mapped(uid) > count
            running.subscribe(first, Subscription(None, 20, frozenset()))
            await until(lambda: loops() == 0)
            assert mapped(uid) == count

    with sfm_kernel.join(world, "A") as sfm:
        asyncio.run(story(sfm.uid))


def test_a_snapshot_is_not_taken_again_while_nothing_moves(
    world: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, real, now = [], snapshots.snapshot, [0.0]
    monkeypatch.setattr(snapshots, "snapshot", lambda *world: taken.append(1) or real(*world))
    monkeypatch.setattr(sampler.time, "monotonic", lambda: now[0])
    with sfm_kernel.join(world, "A") as sfm:
        shown = World(world, sfm.folder).snapshots
        before = settle(shown)
        count, moves = len(taken), shown.moves
        assert all(shown.read() is before for _ in range(100)) and len(taken) == count
        now[0] += sampler.HEARTBEAT  # changes without a pulse are seen now
        shown.read()  # in which another line of this test may be seen, which is no move
        assert len(taken) == count + 1 and shown.moves == moves
        sfm.send(dest="A", n=1)
        assert check("snapshot", shown.read())["processes"][0]["depth"] == 1


def settle(snapshots: Snapshots) -> dict[str, Any]:
    """Read until the snapshot stays the same, and once more for the pulse that it has then."""
    before = snapshots.read()
    while before is not (before := snapshots.read()):
        pass
    return snapshots.read()


def test_a_diagnosis_is_made_at_most_so_often(world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made, now, verdict = [], [0.0], ["running"]

    def explain(folder: str, observer: Any = None) -> dict[str, Any]:
        made.append(folder)
        sentence = f"A computes, since {now[0]} s."
        judgement = {"name": "A", "verdict": verdict[0], "text": sentence}
        texts = {"title": "", "sentences": [sentence]}
        return {"time": now[0], "verdict": verdict[0], "processes": [judgement], **texts}

    monkeypatch.setattr(explaining, "explain", explain)
    monkeypatch.setattr(sampler.time, "monotonic", lambda: now[0])
    with sfm_kernel.join(world, "A") as sfm:
        seen = World(world, sfm.folder)

        def during(seconds: float, act: Callable[[], object]) -> int:
            made.clear()
            for _ in range(round(seconds * 100)):
                now[0] += 0.01
                act()
                seen.diagnoses.read()
            return len(made)

        settle(seen.snapshots)
        assert during(10, lambda: touch(sfm)) <= 10 / sampler.PAUSE + 1
        during(sampler.CALM + sampler.PAUSE, lambda: None)
        assert 1 <= during(10, lambda: None) <= 10 / sampler.SECOND_THOUGHT + 1
        before = seen.diagnoses.newest
        during(10, lambda: None)
        assert seen.diagnoses.newest is before, "that it takes longer is no news"
        verdict[0] = "deadlock"
        during(10, lambda: None)
        assert seen.diagnoses.newest is not before


def touch(sfm: Endpoint) -> None:
    """Cause a change in the world."""
    sfm.send(dest=sfm.name, n=1)
    sfm.recv(n=1)


def test_a_slow_reader_gets_the_newest(world: str) -> None:
    async def story() -> None:
        sent, free = [], asyncio.Event()

        async def write(text: str) -> None:
            sent.append(text)
            await free.wait()

        reader = Subscriber(write)
        reader.subscribe(Subscription(world, 20, frozenset({"snapshot"})))
        task = asyncio.create_task(reader.run())
        for number in range(5):
            reader.post("snapshot", lambda number=number: f"snapshot {number}")  # type: ignore[misc]
            await asyncio.sleep(0.01)
        free.set()
        await until(lambda: len(sent) == 2)
        assert sent == ["snapshot 0", "snapshot 4"]
        reader.post("snapshot", lambda: "of another world")
        reader.subscribe(Subscription("other", 20, frozenset({"snapshot"})))
        reader.post("gone", lambda: "last")
        await until(lambda: "last" in sent)
        assert "of another world" not in sent
        task.cancel()

    asyncio.run(story())


def timeline(begin: float, *ends: float | None, ids: tuple[str, ...] = ()) -> dict[str, Any]:
    """A timeline with a span for each end, and flights."""
    spans = [
        {"uid": "a", "begin": float(n), "end": end, "state": "running", "where": None}
        for n, end in enumerate(ends)
    ]
    return {
        "world": "w",
        "begin": begin,
        "end": begin + 9,
        "missing": 0,
        "processes": [{"uid": "a", "name": "A", "rank": 0}],
        "spans": spans,
        "flights": [flight(name, "a", "b", 0.0, 0.5) for name in ids],
    }


def test_waiting_timelines_are_merged() -> None:
    parts = [timeline(0, None, ids=("1", "2")), timeline(1, 5.0, None, ids=("2", "3"))]
    sent = json.loads(timeline_text(parts))
    assert sent["type"] == "timeline"
    merged = check("timeline", sent["timeline"])
    assert [span["end"] for span in merged["spans"]] == [5.0, None]
    assert [flight["id"] for flight in merged["flights"]] == ["1", "2", "3"]
    assert merged["begin"] == 1
    large = timeline(0, ids=tuple(map(str, range(1001))))
    assert json.loads(timeline_text([large])) == {"type": "timeline", "timeline": large}
    assert json.loads(timeline_text([timeline(0)]))["timeline"]["flights"] == []


def test_a_panel_that_falls_behind_gets_the_complete_timeline_again() -> None:
    async def nothing(text: str) -> None: ...

    async def story() -> None:
        reader = Subscriber(nothing)
        reader.follows = True
        for _ in range(1000):
            reader.post_timeline(timeline(0))
            if not reader.follows:
                return
        pytest.fail("it piles up")

    asyncio.run(story())


@pytest.mark.parametrize(("asked", "given"), [(0.001, 1.0), (5, 5.0), (10**9, 20.0)])
def test_the_rate_has_limits(asked: float, given: float) -> None:
    text = json.dumps({"type": "watch", "world": "w", "rate": asked, "parts": ["snapshot"]})
    assert Subscription.parse(text) == Subscription("w", given, frozenset({"snapshot"}))


@pytest.mark.parametrize("rate", ["NaN", "Infinity", "true", '"5"', "null"])
def test_a_wrong_rate_is_refused(rate: str) -> None:
    with pytest.raises(BadSubscription):
        Subscription.parse('{"type": "watch", "world": null, "parts": [], "rate": ' + rate + "}")


def test_a_feed_outlives_what_it_cannot_read(world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real, broken = snapshots.snapshot, [True]

    def snapshot(*world: Any) -> dict[str, Any]:
        if broken:
            raise ValueError("a damaged segment")
        return real(*world)

    monkeypatch.setattr(snapshots, "snapshot", snapshot)

    async def story() -> None:
        async with publisher() as running, subscriber(running) as (first, sent):
            running.subscribe(first, Subscription(world, 20, frozenset({"snapshot"})))
            await until(lambda: "error" in [it["type"] for it in sent])
            assert "a damaged segment" in next(it["text"] for it in sent if it["type"] == "error")
            broken.clear()
            await until(lambda: "snapshot" in [it["type"] for it in sent])

    with sfm_kernel.join(world, "A"):
        asyncio.run(story())
