"""The entries to this extension: the REST calls, and the websocket."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from jupyter_server.auth.decorator import authorized, ws_authenticated
from jupyter_server.base.handlers import APIHandler, JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from jupyter_server.utils import ensure_async, url_path_join
from tornado import web
from tornado.websocket import WebSocketClosedError, WebSocketHandler
from traitlets import Bool, Float
from traitlets.config import Configurable

from sfm_kernel.errors import BadName
from sfm_kernel.finished_runs import FinishedRuns
from sfm_kernel.jupyter.idle import notes
from sfm_kernel.jupyter.names import engine_names
from sfm_kernel.jupyter.server.clusters import (
    BadProgram,
    NotInterrupted,
    command,
    interrupt,
    is_at_prompt,
    kernels,
)
from sfm_kernel.jupyter.server.engines import ClusterFailed, StartedClusters
from sfm_kernel.jupyter.server.sampler import UnknownWorld, World, Worlds
from sfm_kernel.jupyter.server.stream import (
    BadSubscription,
    Publisher,
    Subscriber,
    Subscription,
    message_text,
)
from sfm_kernel.jupyter.settings import Settings

if TYPE_CHECKING:
    from sfm_kernel.classroom.shared_worlds import SharedWorlds

_PATIENCE = 3.0
"""Seconds to wait for a directory server; without an answer, its last one counts."""

_THREADS = 4
"""Threads that read worlds: a world with a stopped process makes its reader wait."""


class SFMPanel(Configurable):
    """The panel in JupyterLab. The limits of engines that it starts are those of ``SFM``."""

    starts = Bool(True, help="Whether engines can be started in the panel.").tag(config=True)
    rate = Float(20.0, min=1.0, help="Updates a second that a browser gets at most.").tag(
        config=True
    )


class Service:
    """The objects that the handlers of one server share. It is closed when the server ends.

    Attributes:
        panel: the panel's configuration.
        shared_worlds: the worlds of the class that is open on this server; None without one.
    """

    def __init__(self, app: Any) -> None:
        self.panel = SFMPanel(parent=app)
        self.shared_worlds: SharedWorlds | None = None
        self.executor = ThreadPoolExecutor(_THREADS, "sfm-read")  # no thread before it is needed
        self.worlds = Worlds()
        self.started = StartedClusters(lambda: Settings(app.config).environment())
        self.runs = FinishedRuns()
        listed = self.runs.newest_first
        self.publisher = Publisher(self.worlds, self.entries, self.executor, notes, listed)
        self._app = app

    async def entries(self) -> list[dict[str, Any]]:
        """The current worlds by title, each as the schema's ``world``."""
        pids, started = kernels(self._app.kernel_manager), self.started.by_world()
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self.executor, self.worlds.entries, pids, started)
        sessions: list[dict[str, Any]] = []
        if any(entry["starter"] for entry in found):
            sessions = await self._app.session_manager.list_sessions()
        paths = {s["kernel"]["id"]: s.get("path") or "" for s in sessions if s["kernel"]}
        for entry in found:
            notebook = os.path.basename(paths.get(entry.pop("starter"), ""))
            named = entry.pop("program") or notebook or entry["cluster"]
            entry["title"] = named or entry["world"]
        return sorted(found, key=lambda entry: (entry["title"], entry["world"]))

    def close(self) -> None:
        """Disconnect from directory servers. The rest ends with the process."""
        self.worlds.close()
        self.started.close()


class Refused(web.HTTPError):
    """The call is answered with an error that says what happened and what to do."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(status)
        self.text = text


async def require(handler: JupyterHandler, action: str, resource: str = "kernels") -> None:
    """Answer 403 if the user may not do this to kernels, of which worlds consist, or to others."""
    user = handler.current_user
    allowed = handler.authorizer.is_authorized(handler, user, action, resource)
    if not await ensure_async(allowed):
        raise web.HTTPError(403)


class Handler(APIHandler):
    """The base of all REST calls. Reading worlds needs the right to read kernels, and so on."""

    auth_resource = "kernels"

    def initialize(self, service: Service) -> None:
        self.service = service

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer a ``Refused`` with its text."""
        error = kwargs.get("exc_info", (None, None))[1]
        if isinstance(error, Refused):
            self.finish(json.dumps({"message": error.text}))
        else:
            super().write_error(status_code, **kwargs)

    def world(self, name: str) -> World:
        """The user's world of that name; 404 if there is none."""
        try:
            return self.service.worlds.find(name)
        except UnknownWorld as problem:
            raise Refused(404, str(problem)) from None

    def body(self) -> dict[str, Any]:
        """The request's body, a JSON object or nothing; 400 if it is something else."""
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
        """Call a function that reads a world in a thread; 404 if the world has ended."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(executor or self.service.executor, call)
        except FileNotFoundError:
            raise Refused(404, "the world has just ended") from None

    async def processes(self, world: World) -> list[dict[str, Any]]:
        """The current processes of a world."""
        await self.read(self.service.worlds.refresh)
        if world.remote is not None:
            await world.remote.refresh(_PATIENCE)
        snapshot = await self.read(world.snapshots.read)
        return list(snapshot["processes"])


class WorldsHandler(Handler):
    """The worlds of this user."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        self._track_activity = False  # an open panel does not mean that its user is active
        self.finish(json.dumps({"worlds": await self.service.entries()}))

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Start engines; with ``"progress": true`` lines {"came": 1, "of": 4} come first."""
        if not self.service.panel.starts:
            raise Refused(
                403,
                "nothing started: on this server, start engines in a notebook, with `%sfm start 4` "
                "(c.SFMPanel.starts in the server's configuration)",
            )
        try:
            names = engine_names(_engines(self.body()))
            told = partial(self._tell, len(names)) if self.body().get("progress") else None
            world, cluster = await self.service.started.start(names, told)
        except (BadName, TypeError) as problem:
            raise Refused(400, f"nothing started: {problem}") from None
        except ClusterFailed as problem:
            if not self._headers_written:
                raise Refused(500, str(problem)) from None
            self.finish(json.dumps({"message": str(problem)}))
        else:
            self.set_status(201)
            self.finish(json.dumps({"world": world, "cluster": cluster}))

    def _tell(self, total: int, came: int) -> None:
        self.write(json.dumps({"came": came, "of": total}) + "\n")
        self.flush()


def _engines(body: dict[str, Any]) -> int | list[str]:
    count, names = body.get("engines"), body.get("names")
    if type(count) is int and names is None:
        return count
    if count is None and isinstance(names, list) and all(isinstance(name, str) for name in names):
        return names
    raise TypeError('send {"engines": 4} or {"names": ["A", "B"]}')


class InterruptHandler(Handler):
    """Interrupts processes of a world, as a notebook's Stop button does."""

    @web.authenticated
    @authorized
    async def post(self, name: str) -> None:
        """Interrupt one, some or all."""
        world, uids = self.world(name), self.uids()
        processes, remote = await self.processes(world), world.remote
        order, executor = (remote.interrupt, remote.executor) if remote else (None, None)
        try:
            done = await self.read(
                lambda: interrupt(world.folder, processes, uids, order), executor
            )
        except NotInterrupted as problem:
            raise Refused(409, str(problem)) from None
        self.finish(json.dumps({"interrupted": done}))


class ClusterHandler(Handler):
    """Changes a cluster that was started from the panel."""

    @web.authenticated
    @authorized
    async def post(self, name: str, action: str) -> None:
        """Stop, restart or rescale; the body says which engines, or how many."""
        started = self.service.started
        if name not in started.by_world():
            self.world(name)
            raise Refused(
                409,
                f"the engines of {name} were not started from this panel, but by a notebook or a "
                f"program: use `%sfm stop`, `%sfm restart` or `%sfm scale` there",
            )
        try:
            if action == "rescale":
                await started.ask(name, do="rescale", engines=self._count())
            elif (uids := self.uids()) is not None:
                ranks = await self._ranks(name, uids)
                do = "end" if action == "stop" else action
                await started.ask(name, do=do, ranks=ranks)
            elif action == "restart":
                await started.ask(name, do="restart", ranks=None)
            else:
                await started.stop(name)
        except ClusterFailed as problem:
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
        ranks = {
            process["uid"]: process["rank"] for process in await self.processes(self.world(name))
        }
        if wrong := [uid for uid in uids if ranks.get(uid) is None]:
            raise Refused(409, f"no engines of this world (any longer): {', '.join(wrong)}")
        return sorted(ranks[uid] for uid in uids)


class TraceHandler(Handler):
    """The timeline as a file for Perfetto and Chrome's tracing."""

    @web.authenticated
    async def get(self, name: str) -> None:
        await require(self, "execute")  # messages are in it
        world = self.world(name)
        await self.processes(world)
        trace = await self.read(world.timeline.trace)
        self.set_header("Content-Disposition", f'attachment; filename="{name}.json"')
        self.finish(json.dumps(trace))


class ProgramHandler(Handler):
    """Says how a terminal runs a program of the file browser."""

    @web.authenticated
    async def post(self) -> None:
        """Answer the line to type, and whether the shell of ``terminal`` waits for one.

        Nothing is run: that needs the right to use terminals.
        """
        await require(self, "execute")
        body = self.body()
        try:
            line = command(self.settings["server_root_dir"], body)
        except BadProgram as problem:
            raise Refused(400, str(problem)) from None
        free = is_at_prompt(self.settings.get("terminal_manager"), body.get("terminal"))
        self.finish(json.dumps({"line": line, "free": free}))


class StreamHandler(WebSocketMixin, WebSocketHandler, JupyterHandler):
    """The websocket ``sfm/stream``: a panel sends its subscription, and gets the changes.

    Authentication, authorisation and origin are those of kernels' websockets. The websocket does
    not count as activity, so that an idle server is culled.
    """

    auth_resource = "kernels"

    def initialize(self, service: Service) -> None:
        self._publisher, self._rate = service.publisher, float(service.panel.rate)
        self._subscriber = Subscriber(self._send)
        self._sending: asyncio.Task[None] | None = None

    def set_default_headers(self) -> None:
        """Set none: JupyterHandler's make no sense for a websocket."""

    def get_compression_options(self) -> dict[str, Any] | None:
        """The options in the server's configuration."""
        options: dict[str, Any] | None = self.settings.get("websocket_compression_options")
        return options

    @ws_authenticated
    async def get(self, *args: Any, **kwargs: Any) -> None:
        await require(self, "execute")  # messages are shown
        await super().get(*args, **kwargs)

    def open(self, *args: str, **kwargs: str) -> None:
        """Begin to send, after the handshake."""
        super().open(*args, **kwargs)
        self._sending = asyncio.create_task(self._serve())
        self._publisher.join(self._subscriber)

    def on_message(self, message: str | bytes) -> None:
        """Take the panel's new subscription."""
        try:
            asked = Subscription.parse(message)
            asked = replace(asked, rate=min(asked.rate, self._rate))
            self._publisher.subscribe(self._subscriber, asked)
        except BadSubscription as problem:
            self._subscriber.post("error", message_text("error", text=str(problem)))

    def on_close(self) -> None:
        """Stop, after the panel or the server has closed the websocket."""
        self._publisher.leave(self._subscriber)
        if self._sending is not None:
            self._sending.cancel()

    async def _serve(self) -> None:
        try:
            await self._subscriber.run()
        except Exception:  # otherwise the stream would silently stop
            self.log.warning("sfm: the stream to a panel has failed", exc_info=True)
            self.close(1011, "the server's log says why")

    async def _send(self, text: str) -> None:
        with suppress(WebSocketClosedError):  # ``on_close`` follows
            await self.write_message(text)


def routes(base_url: str, service: Service) -> list[tuple[str, type[Any], dict[str, Service]]]:
    """The handlers with their paths."""
    world = r"([A-Za-z0-9_-][A-Za-z0-9._-]*)"
    paths = {
        ("worlds",): WorldsHandler,
        ("worlds", world, "interrupt"): InterruptHandler,
        ("worlds", world, "(stop|restart|rescale)"): ClusterHandler,
        ("worlds", world, "trace"): TraceHandler,
        ("programs",): ProgramHandler,
        ("stream",): StreamHandler,
    }
    return [
        (url_path_join(base_url, "sfm", *path), handler, {"service": service})
        for path, handler in paths.items()
    ]
