"""The records of finished runs: the panel opens them, and removes them."""

from __future__ import annotations

from typing import Any

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.utils import url_path_join
from tornado import web

from sfm_kernel.jupyter.server.handlers import Handler, Service, require


class RecordHandler(JupyterHandler):
    """The record of one run, a page."""

    auth_resource = "kernels"

    def initialize(self, service: Service) -> None:
        self.service = service

    @property
    def content_security_policy(self) -> str:
        """The server's policy. The page has an origin of its own: its script cannot use the server
        as the user, whatever a program might have put into it."""
        return f"{super().content_security_policy}; sandbox allow-scripts"

    @web.authenticated
    async def get(self, identity: str) -> None:
        """Answer the page."""
        await require(self, "execute")  # messages are shown
        try:
            page = self.service.runs.record(identity)
        except FileNotFoundError:
            raise web.HTTPError(404, "this run is no longer kept") from None
        self.set_header("Content-Type", "text/html; charset=UTF-8")
        self.finish(page)


class RemovalHandler(Handler):
    """Removes the records of runs."""

    @web.authenticated
    async def delete(self, identity: str | None = None) -> None:
        """Remove one, or all of them; one that does not exist is no error."""
        await require(self, "execute")
        self.service.runs.remove(identity)
        self.set_status(204)
        self.finish()


def routes(base_url: str, service: Service) -> list[tuple[str, type[Any], dict[str, Service]]]:
    """The handlers with their paths."""
    identity = r"([0-9]+-[0-9a-f]+)"
    paths = {
        ("runs",): RemovalHandler,
        ("runs", identity): RemovalHandler,
        ("runs", identity, "record"): RecordHandler,
    }
    return [
        (url_path_join(base_url, "sfm", *path), handler, {"service": service})
        for path, handler in paths.items()
    ]
