"""A class's page in a Jupyter server: ``sfm/classroom``, with no port and no key of its own.

A user of this server sees the page, and opens the class with it. Students' notebooks send to
``sfm/classroom/share``, which asks for the class's join token and for nothing else: students have
no account here. So a class works where only the Jupyter server of the teacher's machine can be
reached, behind the proxy of a JupyterHub or of Binder.
"""

from __future__ import annotations

from typing import Any

from jupyter_server.auth.decorator import allow_unauthenticated
from jupyter_server.base.handlers import APIHandler, JupyterHandler
from jupyter_server.utils import url_path_join
from tornado import web

from sfm_kernel.classroom.board import Board
from sfm_kernel.classroom.web import FILES, POLICY, WORLDS, Share, answer, file
from sfm_kernel.jupyter.server.handlers import Service, require


class ShareHandler(Share):
    """Takes what students send, with the join token of the class that is open here."""

    def initialize(self, service: Service) -> None:  # type: ignore[override]
        """Take the shared parts; tornado calls it for each request."""
        super().initialize(service.board)

    @allow_unauthenticated
    def post(self) -> None:
        """A student's notebook shows its world, or that nothing has changed."""
        super().post()

    @allow_unauthenticated
    def delete(self) -> None:
        """A student's notebook shows its world no more."""
        super().delete()


class _Teacher(JupyterHandler):
    def initialize(self, service: Service) -> None:
        """Take the shared parts; tornado calls it for each request."""
        self.service = service

    @property
    def board(self) -> Board:
        """The board of the class, which opens with its page."""
        if self.service.board is None:
            self.service.board = Board()
        return self.service.board


class PageHandler(_Teacher):
    """The page, its script and its style sheet."""

    @property
    def content_security_policy(self) -> str:
        """The page's own policy."""
        return POLICY

    @web.authenticated
    async def get(self, name: str | None = None) -> None:
        """One of them."""
        await require(self, "execute")  # messages are shown
        self.set_header("Content-Type", f"{FILES.get(name or '', 'text/html')}; charset=UTF-8")
        self.finish(file(name or "page.html"))


class WorldsHandler(_Teacher, APIHandler):
    """Answers the page's requests; 403 for others, and no login."""

    @web.authenticated
    async def get(self, what: str, one: str | None = None) -> None:
        """All worlds, one of them, or how students join."""
        await require(self, "execute")
        self._track_activity = False  # a page that is left open is nobody at work
        answer(self, self.board, what, one)


class _Slash(_Teacher):
    @web.authenticated
    async def get(self) -> None:
        """The page's files are found beside it."""
        self.redirect(self.request.path + "/")


def routes(base_url: str, service: Service) -> list[tuple[str, type[Any], dict[str, Service]]]:
    """The handlers with their paths."""
    base = url_path_join(base_url, "sfm/classroom")
    places = {
        "": _Slash,
        "/share": ShareHandler,
        f"/{WORLDS}": WorldsHandler,
        f"/({'|'.join(FILES)})?": PageHandler,
    }
    return [(base + place, handler, {"service": service}) for place, handler in places.items()]
