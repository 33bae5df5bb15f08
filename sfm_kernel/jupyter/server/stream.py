"""The websocket ``sfm/stream``: a client says what it watches and gets what changes.

It does not count as activity: a server on which nothing else happens is culled as always.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

from jupyter_server.auth.decorator import ws_authenticated
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from jupyter_server.utils import url_path_join
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from sfm_kernel.jupyter.server.client import BadWish, Client, Wish
from sfm_kernel.jupyter.server.handlers import require
from sfm_kernel.jupyter.server.service import Service


class Stream(WebSocketMixin, WebSocketHandler, JupyterHandler):
    """One client. Authentication, authorisation and origin are those of kernels' websockets."""

    auth_resource = "kernels"

    def initialize(self, service: Service) -> None:
        """What tornado calls for each request."""
        self._hub = service.hub
        self._client = Client(self._send)
        self._rate: float = service.panel.rate
        self._sending: asyncio.Task[None] | None = None

    def set_default_headers(self) -> None:
        """Those of JupyterHandler make no sense for a websocket."""

    def get_compression_options(self) -> dict[str, Any] | None:
        """As the server's configuration says."""
        options: dict[str, Any] | None = self.settings.get("websocket_compression_options")
        return options

    @ws_authenticated
    async def get(self, *args: Any, **kwargs: Any) -> None:
        """The handshake."""
        await require(self, "execute")  # messages are shown
        await super().get(*args, **kwargs)

    def open(self, *args: str, **kwargs: str) -> None:
        """The handshake succeeded."""
        super().open(*args, **kwargs)
        self._sending = asyncio.create_task(self._serve())
        self._hub.join(self._client)

    def on_message(self, message: str | bytes) -> None:
        """A client says what it wants to see."""
        try:
            wish = Wish.parse(message)
            wish = replace(wish, rate=min(wish.rate, self._rate))
            self._hub.watch(self._client, wish)
        except BadWish as problem:
            text = json.dumps({"type": "error", "text": str(problem)})
            self._client.post("error", lambda: text)

    def on_close(self) -> None:
        """The websocket has closed, whoever did it."""
        self._hub.leave(self._client)
        if self._sending is not None:
            self._sending.cancel()

    async def _serve(self) -> None:
        try:
            await self._client.run()
        except Exception:  # or it would be a stream that has fallen silent
            self.log.warning("sfm: the stream to a client has failed", exc_info=True)
            self.close(1011, "the server's log says why")

    async def _send(self, text: str) -> None:
        try:
            await self.write_message(text)
        except WebSocketClosedError:  # on_close comes
            pass


def route(base_url: str, service: Service) -> tuple[str, type[Stream], dict[str, Service]]:
    """The handler with its place."""
    return url_path_join(base_url, "sfm", "stream"), Stream, {"service": service}
