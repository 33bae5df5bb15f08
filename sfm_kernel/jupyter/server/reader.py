"""Reads one world for all who watch it, and reads nothing while nobody does."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sfm_kernel.jupyter.server.client import Client
from sfm_kernel.jupyter.server.elsewhere import Door
from sfm_kernel.jupyter.server.views import PAUSE, Diagnosis, Picture, Told
from sfm_kernel.jupyter.server.worlds import World

_BREATH = 0.01
_AFTER_FAILURE = 2.0


@dataclass
class _Loop:
    """Looks again and again: ``look`` returns after how many seconds, ``news`` makes it sooner."""

    look: Callable[[], Awaitable[float]]
    news: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class Reader:
    """The sampling of one world. Lives in the event loop; reads in threads of ``executor``.

    Args:
        clients: those who watch the world now; asked before each round.
        gone: called when the world has ended.
    """

    def __init__(
        self,
        world: World,
        clients: Callable[[], list[Client]],
        gone: Callable[[], None],
        executor: Executor,
        log: logging.Logger,
    ) -> None:
        self._world, self._clients, self._gone = world, clients, gone
        self._executor, self._log = executor, log
        self._loops = {"live": _Loop(self._live), "diagnosis": _Loop(self._diagnose)}
        self._texts: dict[str, tuple[int, str]] = {}
        # While somebody watches: what it has mapped would outlive the world.
        self._observer: Any = None

    @property
    def rests(self) -> bool:
        """Whether nothing is read, because nobody watches."""
        return all(loop.task is None or loop.task.done() for loop in self._loops.values())

    def start(self) -> None:
        """Read from now on, until nobody watches any more; at once if it reads already."""
        for loop in self._loops.values():
            loop.news.set()
            if loop.task is None or loop.task.done():
                loop.task = asyncio.create_task(self._run(loop))

    async def _run(self, loop: _Loop) -> None:
        look: Callable[[], Awaitable[float]] = self._learn
        while self._clients():
            loop.news.clear()
            try:
                pause = await look()
                look = loop.look
            except FileNotFoundError:
                self._gone()
                break
            except Exception as error:  # noqa: BLE001 - the stream must outlive one bad file
                self._report(error)
                pause = _AFTER_FAILURE
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(loop.news.wait(), pause)
        self._observer = None

    def _report(self, error: Exception) -> None:
        self._log.warning("sfm: cannot read world %s", self._world.name, exc_info=error)
        problem = f"cannot read world {self._world.name}: {type(error).__name__}: {error}"
        text = json.dumps({"type": "error", "text": problem})
        for client in self._clients():
            client.post("error", lambda: text)

    async def _learn(self) -> float:
        await self._read(self._world.learn)
        self._observer = self._observer or await self._read(_observer)
        return 0.0

    async def _live(self) -> float:
        began = asyncio.get_running_loop().time()
        followers = self._wanting("timeline")
        if followers or self._wanting("snapshot"):
            await self._ask_elsewhere()
            fresh = [one for one in followers if "timeline" not in one.shown]
            look = partial(self._world.look, bool(followers), bool(fresh), self._observer)
            told = await self._read(look)  # all at once: each way to a thread and back has its cost
            self._show("snapshot", self._world.picture)
            self._tell(*told)
        rate = max((one.wish.rate for one in self._clients()), default=1.0)
        return max(_BREATH, began + 1 / rate - asyncio.get_running_loop().time())

    def _tell(self, new: Told, whole: Told) -> None:
        """Send what is new in the timeline, and all of it to those who have just come."""
        for client in self._wanting("timeline"):
            if "timeline" in client.shown:
                if new is not None:
                    client.post_timeline(new)
            elif whole is not None:
                client.shown["timeline"] = 1
                client.post_timeline(whole)

    async def _diagnose(self) -> float:
        if self._wanting("diagnosis"):
            door = await self._ask_elsewhere()
            look = partial(self._world.diagnosis.look, self._observer)
            await self._read(look, door.executor if door else None)
            self._show("diagnosis", self._world.diagnosis)
        return PAUSE

    def _wanting(self, part: str) -> list[Client]:
        return [one for one in self._clients() if part in one.wish.parts]

    async def _ask_elsewhere(self) -> Door | None:
        """Have the world's directory server asked, if there is one; what it says is read then."""
        door = self._world.door
        if door is not None:
            await door.answer()
        return door

    async def _read(self, look: Callable[[], Any], executor: Executor | None = None) -> Any:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(executor or self._executor, look)

    def _show(self, part: str, view: Picture | Diagnosis) -> None:
        """Send the newest to those who have not got it."""
        for client in self._wanting(part):
            if client.shown.get(part) != view.version:
                client.post(part, partial(self._text, client, part, view))

    def _text(self, client: Client, part: str, view: Picture | Diagnosis) -> str:
        """What is sent, as it is when it is sent; made once for all clients."""
        version, newest = view.version, view.newest
        if self._texts.get(part, (0, ""))[0] != version:
            self._texts[part] = version, json.dumps({"type": part, part: newest})
        client.shown[part] = version
        return self._texts[part][1]


def _observer() -> Any:
    """See ``snapshot``. For a thread: the first import takes time."""
    from sfm_kernel.observe.snapshot import Observer

    return Observer()
