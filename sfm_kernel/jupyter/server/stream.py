"""Sends panels the list of worlds, and the parts of a world that they subscribe to.

A panel that reads slowly gets the newest message of each kind, never a queue. Without a panel
nothing is done, and no world is read to which no panel has subscribed.
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

from sfm_kernel.jupyter.server.sampler import PAUSE, UnknownWorld, World, Worlds

LIST_PAUSE = 1.0
"""Seconds between two readings of the list of worlds."""

PARTS = ("snapshot", "diagnosis", "timeline")
_PARTS = json.dumps(PARTS)
RATES = (1.0, 20.0)
"""The least and the most messages a second of each kind."""

_SLICE = 200
_MOST_WAITING = 200
_BREATH = 0.01
_AFTER_FAILURE = 2.0

Text = Callable[[], str]
"""Makes the text of a message, when it is sent."""


class BadSubscription(ValueError):
    """The text of a panel is no subscription; says what one looks like."""


@dataclass(frozen=True)
class Subscription:
    """A panel asks for ``parts`` of ``world``, at most ``rate`` times a second."""

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
        # A text nested too deeply to be read, or with too large a number, is none either.
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as problem:
            raise BadSubscription(f"not understood ({problem}): send {usage}") from None


class Subscriber:
    """The panel at the other end of one websocket.

    Attributes:
        subscription: what it asked for last.
        posted: the message that was posted last, for each part of the world.
        follows: whether it has got the complete timeline, and now needs only what is new.
        notes: the notes on ended worlds that it has got last.
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
        """Subscribe to something else; nothing of the subscription before is sent any longer."""
        self.subscription, self.posted, self.follows = subscription, {}, False
        self._timelines = []
        for part in PARTS:
            self._waiting.pop(part, None)

    def end(self) -> None:
        """Its world has ended: the panel gets this message, and nothing else of that world."""
        world = self.subscription.world
        self.subscribe(Subscription(rate=self.subscription.rate))
        self.post("gone", message_text("gone", world=world))

    def post(self, kind: str, text: Text) -> None:
        """Have a message sent, in the place of one of its kind that still waits."""
        self._waiting[kind] = text
        self._news.set()

    def post_timeline(self, timeline: dict[str, Any]) -> None:
        """Have what is new in a timeline sent, together with what still waits."""
        self._timelines.append(timeline)
        if len(self._timelines) > _MOST_WAITING:  # it has fallen behind: all of it later
            self._timelines, self.follows = [], False
        self._news.set()

    async def run(self) -> None:
        """Send what is posted until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            for kind in list(self._waiting):
                if text := self._waiting.pop(kind, None):  # else another subscription has come
                    await self._write(text())
            if self._timelines:
                before, parts, self._timelines = self.subscription, self._timelines, []
                if sum(len(one["spans"]) + len(one["flights"]) for one in parts) <= _SLICE:
                    merged = timeline_text(parts)
                else:
                    merged = await asyncio.to_thread(timeline_text, parts)
                if self.subscription is before:
                    await self._write(merged)
            # Messages that come meanwhile replace those that have not been sent.
            await asyncio.sleep(1 / self.subscription.rate)


def message_text(kind: str, **content: Any) -> Text:
    """Makes a message's text, once, however many panels it is sent to."""
    return cache(lambda: json.dumps({"type": kind, **content}))


def timeline_text(parts: list[dict[str, Any]]) -> str:
    """The message for several timelines, each newer than the one before.

    There may be megabytes of it. They are encoded in slices, between which other threads run: the
    server has more to do.
    """
    spans = {(one["uid"], one["begin"]): one for part in parts for one in part["spans"]}
    flights = {one["id"]: one for part in parts for one in part["flights"]}
    small = {name: value for name, value in parts[-1].items() if name not in ("spans", "flights")}
    fields = {name: json.dumps(value) for name, value in small.items()}
    fields |= {"spans": _sliced([*spans.values()]), "flights": _sliced([*flights.values()])}
    timeline = ", ".join(f'"{name}": {text}' for name, text in fields.items())
    return f'{{"type": "timeline", "timeline": {{{timeline}}}}}'


def _sliced(rows: list[dict[str, Any]]) -> str:
    slices = (rows[at : at + _SLICE] for at in range(0, len(rows), _SLICE))
    return f"[{', '.join(json.dumps(one)[1:-1] for one in slices)}]"


@dataclass
class _Loop:
    """Repeats ``step``, which returns after how many seconds; ``news`` makes it sooner."""

    step: Callable[[], Awaitable[float]]
    news: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    @property
    def rests(self) -> bool:
        return self.task is None or self.task.done()


class Feed:
    """Has one world read for its ``subscribers``, and not read without them.

    Lives in the event loop; the world is read in threads of ``executor``. Two loops, since a
    diagnosis may have to wait for other machines.
    """

    def __init__(self, world: World, refresh: Callable[[], object], executor: Executor) -> None:
        self.subscribers: set[Subscriber] = set()
        self._world, self._refresh, self._executor = world, refresh, executor
        self._loops = (_Loop(self._sample), _Loop(self._diagnose))
        self._texts: dict[str, tuple[object, Text]] = {}

    @property
    def rests(self) -> bool:
        """Whether nothing is read."""
        return all(loop.rests for loop in self._loops)

    def start(self) -> None:
        """Read from now on, until there are no subscribers; at once if it reads already."""
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
                for one in self.subscribers:
                    one.end()
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
        for one in self.subscribers:
            one.post("error", text)

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
            fresh = not all(one.follows for one in followers)
            # All at once, since each call in a thread has its cost.
            new, whole = await self._call(partial(world.sample, bool(followers), fresh))
            self._publish("snapshot", world.snapshots.newest)
            for one in self._subscribers_of("timeline"):
                if one.follows and new is not None:
                    one.post_timeline(new)
                elif not one.follows and whole is not None:
                    one.follows = True
                    one.post_timeline(whole)
        rate = max((one.subscription.rate for one in self.subscribers), default=1.0)
        return max(_BREATH, began + 1 / rate - asyncio.get_running_loop().time())

    async def _diagnose(self) -> float:
        if self._subscribers_of("diagnosis"):
            executor, remote = self._executor, self._world.remote
            if remote is not None:
                await remote.refresh()
                executor = remote.executor or executor
            self._publish("diagnosis", await self._call(self._world.diagnoses.read, executor))
        return PAUSE

    def _subscribers_of(self, part: str) -> list[Subscriber]:
        return [one for one in self.subscribers if part in one.subscription.parts]

    async def _call(self, read: Callable[[], Any], executor: Executor | None = None) -> Any:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(executor or self._executor, read)

    def _publish(self, part: str, newest: object) -> None:
        """Have the newest sent to its subscribers, unless they have got it already."""
        if part not in self._texts or self._texts[part][0] is not newest:
            self._texts[part] = newest, message_text(part, **{part: newest})
        text = self._texts[part][1]
        for one in self._subscribers_of(part):
            if one.posted.get(part) is not text:
                one.posted[part] = text
                one.post(part, text)


class Publisher:
    """Sends the list of worlds to all panels, and has the worlds read that they subscribe to.

    Args:
        entries: makes the list of worlds.
        notes: gives the notes on engines that were ended because nobody used them.
    """

    def __init__(
        self,
        worlds: Worlds,
        entries: Callable[[], Awaitable[list[dict[str, Any]]]],
        executor: Executor,
        notes: Callable[[], list[str]] = list,
    ) -> None:
        self._worlds, self._entries, self._executor, self._notes = worlds, entries, executor, notes
        self._subscribers: set[Subscriber] = set()
        self._feeds: dict[World, Feed] = {}
        self._list_task: asyncio.Task[None] | None = None
        self._list: list[dict[str, Any]] | None = None

    def join(self, subscriber: Subscriber) -> None:
        """A panel has come: it is sent the list of worlds."""
        self._subscribers.add(subscriber)
        if self._list_task is None:
            self._list_task = asyncio.create_task(self._watch_list())
        elif self._list is not None:
            subscriber.post("worlds", self._list_text)

    def leave(self, subscriber: Subscriber) -> None:
        """A panel has left."""
        self.subscribe(subscriber, Subscription())
        self._subscribers.discard(subscriber)
        if not self._subscribers and self._list_task is not None:
            self._list_task.cancel()
            self._list_task = self._list = None

    def subscribe(self, subscriber: Subscriber, subscription: Subscription) -> None:
        """Have a panel sent what it asks for now, in the place of what it asked for before."""
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
                    for one in self._subscribers:
                        one.post("worlds", self._list_text)
                self._post_notes()
            await asyncio.sleep(LIST_PAUSE)

    def _post_notes(self) -> None:
        """Have panels that show no world say which worlds have ended, and why."""
        notes = "\n".join(self._notes())
        for one in self._subscribers:
            if one.subscription.world is not None:
                one.notes = ""
            elif one.notes != notes:
                one.notes = notes
                one.post("error", message_text("error", text=notes))

    def _list_text(self) -> str:
        return json.dumps({"type": "worlds", "time": time.time(), "worlds": self._list})
