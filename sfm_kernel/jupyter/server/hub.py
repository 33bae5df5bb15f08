"""Who watches what."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import Any

from sfm_kernel.jupyter.server.client import Client, Wish
from sfm_kernel.jupyter.server.reader import Reader
from sfm_kernel.jupyter.server.worlds import UnknownWorld, Worlds

LIST_PAUSE = 1.0
"""Seconds between two looks at the list of worlds."""


class Hub:
    """The clients of one server. Without clients it does nothing at all.

    Args:
        entries: makes the list of worlds.
        notes: what there is to tell of engines that were ended since nobody used them.
    """

    def __init__(
        self,
        worlds: Worlds,
        entries: Callable[[], Awaitable[list[dict[str, Any]]]],
        executor: Executor,
        log: logging.Logger,
        notes: Callable[[], list[str]] = list,
    ) -> None:
        self._worlds, self._entries, self._executor, self._log = worlds, entries, executor, log
        self._notes = notes
        self._clients: set[Client] = set()
        self._readers: dict[str, Reader] = {}
        self._list_task: asyncio.Task[None] | None = None
        self._list: list[dict[str, Any]] | None = None

    def join(self, client: Client) -> None:
        """A client has come: it gets the list of worlds."""
        self._clients.add(client)
        if self._list_task is None:
            self._list_task = asyncio.create_task(self._watch_list())
        elif self._list is not None:
            client.post("worlds", self._list_text)

    def leave(self, client: Client) -> None:
        """A client has gone."""
        self._clients.discard(client)
        if not self._clients and self._list_task is not None:
            self._list_task.cancel()
            self._list_task = self._list = None

    def watch(self, client: Client, wish: Wish) -> None:
        """Have a client get what it wishes, in the place of what it got before."""
        client.want(wish)
        if wish.world is None or not wish.parts:
            return
        try:
            world = self._worlds.find(wish.world)
        except UnknownWorld:
            self._gone(wish.world)
            return
        reader = self._readers.get(world.name)
        if reader is None or reader.rests:
            reader = self._readers[world.name] = Reader(
                world,
                lambda: self._watching(world.name),
                lambda: self._gone(world.name),
                self._executor,
                self._log,
            )
        reader.start()

    def _watching(self, world: str) -> list[Client]:
        return [one for one in self._clients if one.wish.world == world and one.wish.parts]

    def _gone(self, world: str) -> None:
        """A world has ended: tell those who watch it, once."""
        text = json.dumps({"type": "gone", "world": world})
        for client in self._watching(world):
            client.want(Wish(rate=client.wish.rate))
            client.post("gone", lambda: text)
        self._readers.pop(world, None)

    async def _watch_list(self) -> None:
        while True:
            try:
                entries = await self._entries()
            except Exception:  # noqa: BLE001 - the next look may succeed
                self._log.warning("sfm: cannot list the worlds", exc_info=True)
            else:
                if entries != self._list:
                    self._list = entries
                    for client in self._clients:
                        client.post("worlds", self._list_text)
                self._tell_notes()
            await asyncio.sleep(LIST_PAUSE)

    def _tell_notes(self) -> None:
        """Who sees no world is told which ones have ended, and why."""
        told = "\n".join(self._notes())
        for client in self._clients:
            if client.wish.world is None and client.noted != told:
                client.noted = told
                text = json.dumps({"type": "error", "text": told})
                client.post("error", lambda text=text: text)  # type: ignore[misc]
            elif client.wish.world is not None:
                client.noted = ""

    def _list_text(self) -> str:
        return json.dumps({"type": "worlds", "time": time.time(), "worlds": self._list})
