"""A class's page in a Jupyter server: ``sfm/classroom``, without another port or key.

A user of this server who opens the page also opens the class. Students' notebooks send to
``sfm/classroom/share``, which asks only for the class's join token, since students have no account
on this server. So a class also works if only the teacher's Jupyter server can be reached, behind
the proxy of a JupyterHub or of Binder.
"""

from __future__ import annotations

from typing import Any

from jupyter_server.auth.decorator import allow_unauthenticated
from jupyter_server.base.handlers import APIHandler, JupyterHandler
from jupyter_server.utils import url_path_join
from tornado import web

from sfm_kernel.classroom.shared_worlds import SharedWorlds
from sfm_kernel.classroom.web import FILES, POLICY, WORLDS, Share, answer, file
from sfm_kernel.jupyter.server.handlers import Service, require


class ShareHandler(Share):
    """Takes students' reports, with the join token of the class that is open on this server."""

    def initialize(self, service: Service) -> None:  # type: ignore[override]
        super().initialize(service.shared_worlds)

    @allow_unauthenticated
    def post(self) -> None:
        """A student's notebook reports its world, or that nothing has changed."""
        super().post()

    @allow_unauthenticated
    def delete(self) -> None:
        """A student's notebook no longer shares its world."""
        super().delete()


class _Teacher(JupyterHandler):
    def initialize(self, service: Service) -> None:
        self.service = service

    @property
    def shared_worlds(self) -> SharedWorlds:
        """The worlds that are shared with the class, which opens with its page."""
        if self.service.shared_worlds is None:
            self.service.shared_worlds = SharedWorlds()
        return self.service.shared_worlds


class PageHandler(_Teacher):
    """The page, its script and its style sheet."""

    @property
    def content_security_policy(self) -> str:
        """The page's own policy."""
        return POLICY

    @web.authenticated
    async def get(self, name: str | None = None) -> None:
        """Answer one of them."""
        await require(self, "execute")  # messages are shown
        self.set_header("Content-Type", f"{FILES.get(name or '', 'text/html')}; charset=UTF-8")
        self.finish(file(name or "page.html"))


class WorldsHandler(_Teacher, APIHandler):
    """Answers the page's requests; 403 for other users, without a login page."""

    @web.authenticated
    async def get(self, resource: str, identity: str | None = None) -> None:
        """Answer all worlds, one of them, or how students join."""
        await require(self, "execute")
        self._track_activity = False  # an open page does not mean that its user is active
        answer(self, self.shared_worlds, resource, identity)


class _Slash(_Teacher):
    @web.authenticated
    async def get(self) -> None:
        """Redirect to the path with a slash, relative to which the page's files are found."""
        self.redirect(self.request.path + "/")


def routes(base_url: str, service: Service) -> list[tuple[str, type[Any], dict[str, Service]]]:
    """The handlers with their paths."""
    base = url_path_join(base_url, "sfm/classroom")
    paths = {
        "": _Slash,
        "/share": ShareHandler,
        f"/{WORLDS}": WorldsHandler,
        f"/({'|'.join(FILES)})?": PageHandler,
    }
    return [(base + path, handler, {"service": service}) for path, handler in paths.items()]
