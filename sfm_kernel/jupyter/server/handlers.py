"""The REST calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Any

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler, JupyterHandler
from jupyter_server.utils import ensure_async, url_path_join
from tornado import web

from sfm_kernel.errors import BadName
from sfm_kernel.jupyter.names import engine_names
from sfm_kernel.jupyter.server.keepers import KeeperFailed
from sfm_kernel.jupyter.server.programs import NoProgram, line
from sfm_kernel.jupyter.server.service import Service
from sfm_kernel.jupyter.server.signals import NotInterrupted, interrupt
from sfm_kernel.jupyter.server.worlds import UnknownWorld, World

_PATIENCE = 3.0
"""Seconds for a world's directory server; without an answer, what it told before counts."""


class Refused(web.HTTPError):
    """The call is answered with an error that says what happened and what to do."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(status)
        self.text = text


async def require(handler: JupyterHandler, action: str) -> None:
    """403 where the user may not do this to kernels, which is what worlds consist of."""
    user = handler.current_user
    allowed = handler.authorizer.is_authorized(handler, user, action, "kernels")
    if not await ensure_async(allowed):
        raise web.HTTPError(403)


class Handler(APIHandler):
    """What all have in common. Reading worlds needs the rights of reading kernels, and so on."""

    auth_resource = "kernels"

    def initialize(self, service: Service) -> None:
        """What tornado calls for each request."""
        self.service = service

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Errors that tell all are shown as they are."""
        error = kwargs.get("exc_info", (None, None))[1]
        if isinstance(error, Refused):
            self.finish(json.dumps({"message": error.text}))
        else:
            super().write_error(status_code, **kwargs)

    def world(self, name: str) -> World:
        """The world of that name; 404 where there is none of this user."""
        try:
            return self.service.worlds.find(name)
        except UnknownWorld as problem:
            raise Refused(404, str(problem)) from None

    def body(self) -> dict[str, Any]:
        """What came with the request, a JSON object or nothing; 400 where it is something else."""
        sent: object = self.get_json_body()
        if not isinstance(sent, dict | None):
            raise Refused(400, "send a JSON object")
        return sent or {}

    def uids(self) -> list[str] | None:
        """The processes that the request names; None for all."""
        uids = self.body().get("uids")
        if uids is None:
            return None
        if not isinstance(uids, list) or not all(isinstance(uid, str) for uid in uids):
            raise Refused(400, 'send {"uids": [...]} with the uids of processes, or null for all')
        return uids

    async def read(self, call: Callable[[], Any], executor: Executor | None = None) -> Any:
        """The result of a call that reads a world, made in a thread; 404 if that has ended."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(executor or self.service.executor, call)
        except FileNotFoundError:
            raise Refused(404, "the world has just ended") from None

    async def processes(self, world: World) -> list[dict[str, Any]]:
        """What the processes of a world do now."""
        await self.read(world.learn)
        if world.door is not None:
            await world.door.answer(_PATIENCE)
        await self.read(world.picture.look)
        return list(world.picture.newest["processes"]) if world.picture.newest else []


class WorldsHandler(Handler):
    """The worlds of this user."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """All of them."""
        self._track_activity = False  # who looks at them does nothing
        self.finish(json.dumps({"worlds": await self.service.listing.entries()}))

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Start engines: a number of them, or some with names."""
        wanted = self.body()
        if not self.service.panel.starts:
            raise Refused(
                403,
                "nothing started: here engines are started in a notebook, with `%sfm start 4` "
                "(c.SFMPanel.starts in the server's configuration)",
            )
        try:
            names = engine_names(_wanted(wanted))
            world, cluster = await self.service.keepers.start(names)
        except (BadName, TypeError) as problem:
            raise Refused(400, f"nothing started: {problem}") from None
        except KeeperFailed as problem:
            raise Refused(500, str(problem)) from None
        self.set_status(201)
        self.finish(json.dumps({"world": world, "cluster": cluster}))


def _wanted(body: dict[str, Any]) -> int | list[str]:
    count, names = body.get("engines"), body.get("names")
    if type(count) is int and names is None:
        return count
    if count is None and isinstance(names, list) and all(isinstance(one, str) for one in names):
        return names
    raise TypeError('send {"engines": 4} or {"names": ["A", "B"]}')


class InterruptHandler(Handler):
    """Processes of a world get what a notebook's Stop button sends."""

    @web.authenticated
    @authorized
    async def post(self, name: str) -> None:
        """Interrupt one, some or all."""
        world, uids = self.world(name), self.uids()
        processes = await self.processes(world)
        try:
            done = await self._interrupt(world, processes, uids)
        except NotInterrupted as problem:
            raise Refused(409, str(problem)) from None
        self.finish(json.dumps({"interrupted": done}))

    async def _interrupt(
        self, world: World, processes: list[dict[str, Any]], uids: list[str] | None
    ) -> Any:
        if (door := world.door) is None:
            return await self.read(lambda: interrupt(world.folder, processes, uids))
        call = partial(interrupt, world.folder, processes, uids, door.interrupt)
        return await self.read(call, door.executor)


class ClusterHandler(Handler):
    """What changes a cluster that was started from the panel."""

    @web.authenticated
    @authorized
    async def post(self, name: str, action: str) -> None:
        """Stop, restart or rescale; the body says which engines, or how many."""
        keepers = self.service.keepers
        if name not in keepers.clusters():
            self.world(name)
            raise Refused(
                409,
                f"the engines of {name} were not started from this panel, but by a notebook or a "
                f"program: there, `%sfm stop`, `%sfm restart` and `%sfm scale` do this",
            )
        try:
            if action == "rescale":
                await keepers.ask(name, do="rescale", engines=self._count())
            elif (uids := self.uids()) is not None:
                ranks = await self._ranks(name, uids)
                do = "end" if action == "stop" else action
                await keepers.ask(name, do=do, ranks=ranks)
            elif action == "restart":
                await keepers.ask(name, do="restart", ranks=None)
            else:
                await keepers.stop(name)
        except KeeperFailed as problem:
            raise Refused(500, str(problem)) from None
        self.finish(json.dumps({}))

    def _count(self) -> int:
        count = self.body().get("engines")
        if type(count) is not int:
            raise Refused(400, 'send {"engines": 6}')
        try:
            return len(engine_names(count))
        except BadName as problem:
            raise Refused(400, str(problem)) from None

    async def _ranks(self, name: str, uids: list[str]) -> list[int]:
        ranks = {one["uid"]: one["rank"] for one in await self.processes(self.world(name))}
        if wrong := [uid for uid in uids if ranks.get(uid) is None]:
            raise Refused(409, f"no engines of this world (any more): {', '.join(wrong)}")
        return sorted(ranks[uid] for uid in uids)


class TraceHandler(Handler):
    """The timeline as a file for Perfetto and Chrome's tracing."""

    @web.authenticated
    async def get(self, name: str) -> None:
        """The last run."""
        await require(self, "execute")  # messages are in it
        world = self.world(name)
        await self.processes(world)
        trace = await self.read(world.timeline.trace)
        self.set_header("Content-Disposition", f'attachment; filename="{name}.json"')
        self.finish(json.dumps(trace))


class ProgramHandler(Handler):
    """How a terminal runs a program of the file browser."""

    @web.authenticated
    async def post(self) -> None:
        """The line to type. Nothing is run here: that needs the right to use terminals."""
        await require(self, "execute")
        try:
            text = line(self.settings["server_root_dir"], self.body())
        except NoProgram as problem:
            raise Refused(400, str(problem)) from None
        self.finish(json.dumps({"line": text}))


def routes(base_url: str, service: Service) -> list[tuple[str, type[Handler], dict[str, Service]]]:
    """The handlers with their places."""
    world = r"([A-Za-z0-9_-][A-Za-z0-9._-]*)"
    places = {
        ("worlds",): WorldsHandler,
        ("worlds", world, "interrupt"): InterruptHandler,
        ("worlds", world, "(stop|restart|rescale)"): ClusterHandler,
        ("worlds", world, "trace"): TraceHandler,
        ("programs",): ProgramHandler,
    }
    return [
        (url_path_join(base_url, "sfm", *place), handler, {"service": service})
        for place, handler in places.items()
    ]
