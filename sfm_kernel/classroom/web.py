"""The requests to a class: students' reports, the requests of the teacher's page, and the page.

Everything that a student sends is treated as hostile: bounded before it is read, shown as text.
"""

from __future__ import annotations

import functools
import hmac
import json
import ssl
from importlib.resources import files
from typing import Any

from tornado import web
from tornado.httpserver import HTTPServer

from sfm_kernel.classroom.connections import Connections
from sfm_kernel.classroom.progress import csv_of
from sfm_kernel.classroom.report import LARGEST, BadReport
from sfm_kernel.classroom.shared_worlds import Refused, SharedWorlds

CONNECTIONS = 400
"""Most connections at a time. Half of them may come from one address and have shown no token."""

SLOW = 10.0
"""Seconds for a request's body; its head, and the pause between two requests, have twice that."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    # No text becomes markup, whatever the page's script does with what students send.
    "require-trusted-types-for 'script'; trusted-types 'none'"
)

FILES = {"page.js": "text/javascript", "page.css": "text/css"}


@functools.cache
def file(name: str) -> str:
    """The text of the page, its script or its style sheet."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def bearer(request: Any) -> str:
    """The token of a request; empty if it has none."""
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def prove(handler: web.RequestHandler) -> None:
    """Note that a request has shown a token, so that its connection keeps its place."""
    connections: Connections | None = handler.settings.get("connections")  # a Jupyter server: none
    stream = getattr(handler.request.connection, "stream", None)
    if connections is not None and stream is not None:
        connections.prove(stream)


@web.stream_request_body
class Share(web.RequestHandler):
    """Takes students' reports. No answer contains anything about other students.

    A request without the token is refused before its body is read.
    """

    def initialize(self, worlds: SharedWorlds | None) -> None:
        self._worlds, self._body = worlds, bytearray()

    def check_xsrf_cookie(self) -> None:
        """Nothing to check: the token is in a header, which no other site's page can set."""

    def prepare(self) -> None:
        """Check the head of the request."""
        connection = self.request.connection
        if connection is not None and hasattr(connection, "set_max_body_size"):
            connection.set_max_body_size(LARGEST)
        try:
            if self._worlds is None:
                raise Refused(404, "no class is open here: the teacher opens its page first")
            self._worlds.check(bearer(self.request))
            prove(self)
            if int(self.request.headers.get("Content-Length") or 0) > LARGEST:
                raise Refused(413, f"a report has at most {LARGEST} bytes")
        except Refused as problem:
            self._refuse(problem)

    def data_received(self, chunk: bytes) -> None:
        """Append a chunk of the body."""
        if len(self._body) + len(chunk) <= LARGEST and not self._finished:
            self._body += chunk

    def post(self) -> None:
        """Take a report; an empty body says that it has not changed."""
        self._answer(lambda worlds, secret: worlds.take(secret, bytes(self._body)))

    def delete(self) -> None:
        """The student stops sharing."""
        self._answer(lambda worlds, secret: worlds.leave(secret))

    def _answer(self, act: Any) -> None:
        assert self._worlds is not None
        try:
            act(self._worlds, self.request.headers.get("X-SFM-Share", ""))
        except Refused as problem:
            self._refuse(problem)
        except BadReport as problem:
            self._refuse(Refused(400, f"this is no report of a world: {problem}"))
        else:
            self.set_status(204)
            self.finish()

    def _refuse(self, problem: Refused) -> None:
        self.set_status(problem.status)
        self.finish(json.dumps({"message": problem.text}))


class Teacher(web.RequestHandler):
    """Answers the teacher's page; requires the teacher's key."""

    def initialize(self, worlds: SharedWorlds, key: str, url: str) -> None:
        self._worlds, self._key, self._url = worlds, key, url

    def prepare(self) -> None:
        """Answer 403 without the teacher's key."""
        self.set_header("Cache-Control", "no-store")
        if not hmac.compare_digest(bearer(self.request).encode(), self._key.encode()):
            self.set_status(403)
            self.finish(json.dumps({"message": "only the teacher's key opens this page"}))
        else:
            prove(self)

    def get(self, *path: str) -> None:
        """Answer the session, all worlds or one world."""
        resource, identity = path
        answer(self, self._worlds, resource, identity, self._url)


def answer(
    handler: web.RequestHandler,
    worlds: SharedWorlds,
    resource: str,
    identity: str | None,
    url: str = "",
) -> None:
    """Answer the page.

    Args:
        resource: ``worlds``, a summary of all; ``session``, how students join; or ``exercises``,
            the table of students and exercises as CSV.
        identity: the world whose details are asked for; None or empty for the summary.
        url: the class's url for students, if it differs from the page's.
    """
    handler.set_header("Content-Type", "application/json")
    handler.set_header("X-Content-Type-Options", "nosniff")
    if resource == "session":
        handler.finish(json.dumps({"join": worlds.join, "url": url}))
    elif resource == "exercises":
        handler.finish(json.dumps({"csv": csv_of(worlds.progress())}))
    elif not identity:
        handler.finish(json.dumps(worlds.listing()))
    elif (found := worlds.details(identity)) is not None:
        handler.finish(json.dumps(found))
    else:
        raise web.HTTPError(404)


class Page(web.RequestHandler):
    """The page, which contains nothing that a student has sent."""

    def get(self, name: str = "") -> None:
        """Answer the page itself, or its script or style sheet."""
        self.set_header("Content-Security-Policy", POLICY)
        self.set_header("Referrer-Policy", "no-referrer")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Content-Type", f"{FILES.get(name, 'text/html')}; charset=UTF-8")
        self.finish(file(name or "page.html"))


WORLDS = "(worlds|session|exercises)(?:/([0-9a-f]{1,64}))?"
"""The paths of ``answer``."""


def application(worlds: SharedWorlds, key: str, base: str = "/", url: str = "") -> web.Application:
    """The application of a class.

    Args:
        base: the path of the page, with a slash at both ends.
    """
    teacher = {"worlds": worlds, "key": key, "url": url}
    return web.Application(
        [
            (f"{base}share", Share, {"worlds": worlds}),
            (f"{base}{WORLDS}", Teacher, teacher),
            (f"{base}({'|'.join(FILES)})?", Page),
        ],
        log_function=lambda handler: None,  # it would log a line a second for each student
    )


class Server(HTTPServer):
    """A server that slow clients and many connections cannot exhaust."""

    def initialize(self, *args: Any, connections: Connections, **more: Any) -> None:  # type: ignore[override]
        """Tornado calls this instead of ``__init__``."""
        self._limited = connections
        super().initialize(*args, **more)

    def handle_stream(self, stream: Any, address: Any) -> None:
        """Take a new connection."""
        self._limited.add(stream, address[0] if isinstance(address, tuple) else "")
        super().handle_stream(stream, address)

    def on_close(self, server_conn: Any) -> None:
        """Note that a connection has ended."""
        self._limited.discard(server_conn.stream)
        super().on_close(server_conn)


def server(
    app: web.Application,
    context: ssl.SSLContext | None = None,
    *,
    most: int = CONNECTIONS,
    slow: float = SLOW,
) -> Server:
    """A server for a class; ``most`` and ``slow`` are like CONNECTIONS and SLOW."""
    connections = Connections(most, from_one=most // 2)
    app.settings["connections"] = connections
    return Server(
        app,
        connections=connections,
        ssl_options=context,
        max_header_size=8192,
        max_body_size=LARGEST,
        body_timeout=slow,
        idle_connection_timeout=2 * slow,
    )


def certificate(cert: str, key: str | None) -> ssl.SSLContext:
    """The context for HTTPS. Raises OSError (also ssl.SSLError) if the files are not usable."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)
    return context
