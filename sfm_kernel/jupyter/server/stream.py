"""Sends panels the list of worlds, and the parts of a world that they subscribe to.

A panel that reads slowly gets the newest message of each kind, never a queue. Only worlds that a
panel has subscribed to are read.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from traitlets.log import get_logger

from sfm_kernel.jupyter.server import usage
from sfm_kernel.jupyter.server.sampler import PAUSE, UnknownWorld, World, Worlds

LIST_PAUSE = 1.0
"""Seconds between two readings of the list of worlds."""

PARTS = ("snapshot", "diagnosis", "timeline", "usage")
_PARTS = json.dumps(PARTS)
RATES = (1.0, 20.0)
"""The least and the most messages a second of each kind."""

_SLICE = 200
"""Rows of a timeline that are encoded without a pause."""
_MOST_WAITING = 200
"""Timelines that may wait for a slow panel; then it gets a complete one."""
_BREATH = 0.01
"""Least seconds between two samples of a world."""
_AFTER_FAILURE = 2.0
"""Seconds before a world that could not be read is read again."""

Text = Callable[[], str]
"""Makes the text of a message, when it is sent."""


class BadSubscription(ValueError):
    """The text of a panel is no subscription; the message says what one looks like."""


@dataclass(frozen=True)
class Subscription:
    """The ``parts`` of ``world`` that a panel gets, at most ``rate`` times a second."""

    world: str | None = None
    rate: float = 10.0
    parts: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str | bytes) -> Subscription:
        """The subscription in a panel's text. Raises BadSubscription."""
        usage = f'{{"type": "watch", "world": NAME or null, "rate": 10, "parts": {_PARTS}}}'
        try:
            sent = json.loads(text)
            if sent["type"] != "watch":
                raise ValueError(f"type {sent['type']!r} is unknown")
            world, parts, rate = sent["world"], sent["parts"], sent.get("rate", cls.rate)
            if not isinstance(world, str | None) or not isinstance(parts, list):
                raise ValueError("world is a text or null, parts a list")
            if not set(parts) <= set(PARTS):
                raise ValueError(f"parts are some of {_PARTS}")
            if type(rate) not in (int, float) or not math.isfinite(rate):
                raise ValueError("rate is a number")
            least, most = RATES
            return cls(world, min(max(float(rate), least), most), frozenset(parts))
        # The last two: the text is nested too deeply, or has too large a number.
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as problem:
            raise BadSubscription(f"not understood ({problem}): send {usage}") from None


class Subscriber:
    """The panel at the other end of one websocket.

    Attributes:
        subscription: its latest subscription.
        posted: the latest message for each part of the world.
        follows: whether it has got the complete timeline, and needs only the news from now on.
        notes: the latest notes on ended engines that it has got.
    """

    def __init__(self, write: Callable[[str], Awaitable[None]]) -> None:
        self.subscription = Subscription()
        self.posted: dict[str, Text] = {}
        self.follows = False
        self.notes = ""
        self._write = write
        self._waiting: dict[str, Text] = {}
        self._timelines: list[dict[str, Any]] = []
        self._news = asyncio.Event()

    def subscribe(self, subscription: Subscription) -> None:
        """Replace the subscription; nothing of the former one is sent any longer."""
        self.subscription, self.posted, self.follows = subscription, {}, False
        self._timelines = []
        for part in PARTS:
            self._waiting.pop(part, None)

    def end(self) -> None:
        """Tell the panel that its world has ended, and end the subscription."""
        world = self.subscription.world
        self.subscribe(Subscription(rate=self.subscription.rate))
        self.post("gone", message_text("gone", world=world))

    def post(self, kind: str, text: Text) -> None:
        """Have a message sent; it replaces one of its kind that still waits."""
        self._waiting[kind] = text
        self._news.set()

    def post_timeline(self, timeline: dict[str, Any]) -> None:
        """Have the news of a timeline sent, together with news that still wait."""
        self._timelines.append(timeline)
        if len(self._timelines) > _MOST_WAITING:  # it has fallen behind: it gets all of it later
            self._timelines, self.follows = [], False
        self._news.set()

    async def run(self) -> None:
        """Send the posted messages until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            for kind in list(self._waiting):
                if text := self._waiting.pop(kind, None):  # None after another subscription
                    await self._write(text())
            if self._timelines:
                before, news, self._timelines = self.subscription, self._timelines, []
                rows = sum(len(item["spans"]) + len(item["flights"]) for item in news)
                if rows <= _SLICE:
                    merged = timeline_text(news)
                else:
                    merged = await asyncio.to_thread(timeline_text, news)
                if self.subscription is before:
                    await self._write(merged)
            # Messages that come meanwhile replace those that have not been sent.
            await asyncio.sleep(1 / self.subscription.rate)


def message_text(kind: str, **content: Any) -> Text:
    """Makes a message's text, once, however many panels it is sent to."""
    return cache(lambda: json.dumps({"type": kind, **content}))


def timeline_text(timelines: list[dict[str, Any]]) -> str:
    """The message for several timelines, each newer than the one before.

    It may have megabytes. They are encoded in slices, between which the server's other threads run.
    """
    spans = {(row["uid"], row["begin"]): row for item in timelines for row in item["spans"]}
    flights = {row["id"]: row for item in timelines for row in item["flights"]}
    latest = timelines[-1]
    fields = {name: json.dumps(latest[name]) for name in latest if name not in ("spans", "flights")}
    fields |= {"spans": _sliced([*spans.values()]), "flights": _sliced([*flights.values()])}
    timeline = ", ".join(f'"{name}": {text}' for name, text in fields.items())
    return f'{{"type": "timeline", "timeline": {{{timeline}}}}}'


def _sliced(rows: list[dict[str, Any]]) -> str:
    slices = (rows[first : first + _SLICE] for first in range(0, len(rows), _SLICE))
    return f"[{', '.join(json.dumps(chunk)[1:-1] for chunk in slices)}]"


@dataclass
class _Loop:
    """Repeats ``step``, which returns the seconds until the next time; ``news`` ends the pause."""

    step: Callable[[], Awaitable[float]]
    news: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    @property
    def rests(self) -> bool:
        return self.task is None or self.task.done()


class Feed:
    """Has one world read as long as it has ``subscribers``.

    It belongs to the event loop; threads of ``executor`` read the world. It has a loop for each
    pace: a diagnosis may have to wait for other machines, and what processes use is a mean.
    """

    def __init__(self, world: World, refresh: Callable[[], object], executor: Executor) -> None:
        self.subscribers: set[Subscriber] = set()
        self._world, self._refresh, self._executor = world, refresh, executor
        self._loops = tuple(map(_Loop, (self._sample, self._diagnose, self._measure)))
        self._texts: dict[str, tuple[object, Text]] = {}

    @property
    def rests(self) -> bool:
        """Whether nothing is read."""
        return all(loop.rests for loop in self._loops)

    def start(self) -> None:
        """Read now, and until there are no subscribers."""
        for loop in self._loops:
            loop.news.set()
            if loop.rests:
                loop.task = asyncio.create_task(self._run(loop))

    async def _run(self, loop: _Loop) -> None:
        step: Callable[[], Awaitable[float]] = self._prepare
        while self.subscribers:
            loop.news.clear()
            try:
                pause = await step()
                step = loop.step
            except FileNotFoundError:
                for subscriber in self.subscribers:
                    subscriber.end()
                self.subscribers.clear()
                break
            except Exception as error:  # noqa: BLE001 - the stream must outlive one bad file
                self._report(error)
                pause = _AFTER_FAILURE
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(loop.news.wait(), pause)
        if not self.subscribers:
            self._world.observer = None

    def _report(self, error: Exception) -> None:
        get_logger().warning("sfm: cannot read world %s", self._world.name, exc_info=error)
        problem = f"cannot read world {self._world.name}: {type(error).__name__}: {error}"
        text = message_text("error", text=problem)
        for subscriber in self.subscribers:
            subscriber.post("error", text)

    async def _prepare(self) -> float:
        await self._call(self._refresh)
        await self._call(self._world.keep_mapped)
        return 0.0

    async def _sample(self) -> float:
        world, began = self._world, asyncio.get_running_loop().time()
        followers = self._subscribers_of("timeline")
        if followers or self._subscribers_of("snapshot"):
            if world.remote is not None:
                await world.remote.refresh()
            fresh = not all(subscriber.follows for subscriber in followers)
            # One call for all, since each call in a thread has its cost.
            new, complete = await self._call(partial(world.sample, bool(followers), fresh))
            self._publish("snapshot", world.snapshots.newest)
            for subscriber in self._subscribers_of("timeline"):
                if subscriber.follows and new is not None:
                    subscriber.post_timeline(new)
                elif not subscriber.follows and complete is not None:
                    subscriber.follows = True
                    subscriber.post_timeline(complete)
        rate = max((subscriber.subscription.rate for subscriber in self.subscribers), default=1.0)
        return max(_BREATH, began + 1 / rate - asyncio.get_running_loop().time())

    async def _diagnose(self) -> float:
        if self._subscribers_of("diagnosis"):
            executor, remote = self._executor, self._world.remote
            if remote is not None:
                await remote.refresh()
                executor = remote.executor or executor
            self._publish("diagnosis", await self._call(self._world.diagnoses.read, executor))
        return PAUSE

    async def _measure(self) -> float:
        if self._subscribers_of("usage"):
            self._publish("usage", await self._call(self._world.measure))
        return usage.PAUSE

    def _subscribers_of(self, part: str) -> list[Subscriber]:
        return [
            subscriber for subscriber in self.subscribers if part in subscriber.subscription.parts
        ]

    async def _call(self, read: Callable[[], Any], executor: Executor | None = None) -> Any:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(executor or self._executor, read)

    def _publish(self, part: str, newest: object) -> None:
        """Have the newest object of a part sent to subscribers that have not got it."""
        if part not in self._texts or self._texts[part][0] is not newest:
            self._texts[part] = newest, message_text(part, **{part: newest})
        text = self._texts[part][1]
        for subscriber in self._subscribers_of(part):
            if subscriber.posted.get(part) is not text:
                subscriber.posted[part] = text
                subscriber.post(part, text)


class Publisher:
    """Sends the lists of worlds and of finished runs to all panels, and has the worlds that they
    subscribe to read.

    Args:
        entries: makes the list of worlds.
        notes: returns the notes on idle engines that were ended.
        runs: returns the list of finished runs.
    """

    def __init__(
        self,
        worlds: Worlds,
        entries: Callable[[], Awaitable[list[dict[str, Any]]]],
        executor: Executor,
        notes: Callable[[], list[str]] = list,
        runs: Callable[[], list[dict[str, Any]]] = list,
    ) -> None:
        self._worlds, self._entries, self._executor = worlds, entries, executor
        self._notes, self._runs = notes, runs
        self._subscribers: set[Subscriber] = set()
        self._feeds: dict[World, Feed] = {}
        self._list_task: asyncio.Task[None] | None = None
        self._list: list[dict[str, Any]] | None = None
        self._finished: list[dict[str, Any]] | None = None

    def join(self, subscriber: Subscriber) -> None:
        """Add a panel, and send it the lists."""
        self._subscribers.add(subscriber)
        if self._list_task is None:
            self._list_task = asyncio.create_task(self._watch_list())
        elif self._list is not None:
            subscriber.post("worlds", self._list_text)
            subscriber.post("runs", message_text("runs", runs=self._finished or []))

    def leave(self, subscriber: Subscriber) -> None:
        """Remove a panel."""
        self.subscribe(subscriber, Subscription())
        self._subscribers.discard(subscriber)
        if not self._subscribers and self._list_task is not None:
            self._list_task.cancel()
            self._list_task = self._list = self._finished = None

    def subscribe(self, subscriber: Subscriber, subscription: Subscription) -> None:
        """Replace a panel's subscription."""
        subscriber.subscribe(subscription)
        for feed in self._feeds.values():
            feed.subscribers.discard(subscriber)
        self._feeds = {world: feed for world, feed in self._feeds.items() if not feed.rests}
        if subscription.world is None or not subscription.parts:
            return
        try:
            world = self._worlds.find(subscription.world)
        except UnknownWorld:
            subscriber.end()
            return
        if world not in self._feeds:
            self._feeds[world] = Feed(world, self._worlds.refresh, self._executor)
        self._feeds[world].subscribers.add(subscriber)
        self._feeds[world].start()

    async def _watch_list(self) -> None:
        while True:
            try:
                entries = await self._entries()
            except Exception:  # noqa: BLE001 - the next one may succeed
                get_logger().warning("sfm: cannot list the worlds", exc_info=True)
            else:
                if entries != self._list:
                    self._list = entries
                    for subscriber in self._subscribers:
                        subscriber.post("worlds", self._list_text)
                self._post_notes()
            await self._list_runs()
            await asyncio.sleep(LIST_PAUSE)

    async def _list_runs(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            runs = await loop.run_in_executor(self._executor, self._runs)
        except OSError:  # the folder was removed just now
            return
        if runs != self._finished:
            self._finished, text = runs, message_text("runs", runs=runs)
            for subscriber in self._subscribers:
                subscriber.post("runs", text)

    def _post_notes(self) -> None:
        """Have panels that show no world say which engines were ended, and why."""
        notes = "\n".join(self._notes())
        for subscriber in self._subscribers:
            if subscriber.subscription.world is not None:
                subscriber.notes = ""
            elif subscriber.notes != notes:
                subscriber.notes = notes
                subscriber.post("error", message_text("error", text=notes))

    def _list_text(self) -> str:
        return json.dumps({"type": "worlds", "time": time.time(), "worlds": self._list})
