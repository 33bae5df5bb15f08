"""The requests of a class: what students send, what the teacher's page asks for, and the page.

Everything that a student sends is taken for hostile: bounded before it is read, and shown as text.
"""

from __future__ import annotations

import hmac
import json
import ssl
from importlib.resources import files
from typing import Any

from tornado import web
from tornado.httpserver import HTTPServer

from sfm_kernel.classroom.board import Board, Refused
from sfm_kernel.classroom.picture import LARGEST, NoPicture

CONNECTIONS = 400
"""At a time; further ones are closed."""

SLOW = 10.0
"""Seconds for a request's body; twice as long for its head, and between two requests."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

FILES = {"page.js": "text/javascript", "page.css": "text/css"}


def file(name: str) -> str:
    """The text of the page, or of a file of it."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def bearer(request: Any) -> str:
    """The token of a request; empty where it has none."""
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


@web.stream_request_body
class Share(web.RequestHandler):
    """What students' notebooks send. Nobody is answered anything of others.

    Who has no token is turned away before the body is read.
    """

    def initialize(self, board: Board | None) -> None:
        """What tornado calls for each request. Without a board no class is open here."""
        self._board, self._body = board, bytearray()

    def check_xsrf_cookie(self) -> None:
        """No cookie counts here: the token is in a header, which no other site's page can set."""

    def prepare(self) -> None:
        """Look at the head of the request."""
        connection = self.request.connection
        if connection is not None and hasattr(connection, "set_max_body_size"):
            connection.set_max_body_size(LARGEST)
        try:
            if self._board is None:
                raise Refused(404, "no class is open here: the teacher opens its page first")
            self._board.check(bearer(self.request))
            if int(self.request.headers.get("Content-Length") or 0) > LARGEST:
                raise Refused(413, f"a picture has at most {LARGEST} bytes")
        except Refused as problem:
            self._refuse(problem)

    def data_received(self, chunk: bytes) -> None:
        """A part of the body."""
        if len(self._body) + len(chunk) <= LARGEST and not self._finished:
            self._body += chunk

    def post(self) -> None:
        """A picture, or without a body: it has not changed."""
        self._answer(lambda board, secret: board.take(secret, bytes(self._body)))

    def delete(self) -> None:
        """The student shares no more."""
        self._answer(lambda board, secret: board.leave(secret))

    def _answer(self, act: Any) -> None:
        assert self._board is not None
        try:
            act(self._board, self.request.headers.get("X-SFM-Share", ""))
        except Refused as problem:
            self._refuse(problem)
        except NoPicture as problem:
            self._refuse(Refused(400, f"this is no picture of a world: {problem}"))
        else:
            self.set_status(204)
            self.finish()

    def _refuse(self, problem: Refused) -> None:
        self.set_status(problem.status)
        self.finish(json.dumps({"message": problem.text}))


class Teacher(web.RequestHandler):
    """What the teacher's page asks for. Needs the teacher's key."""

    def initialize(self, board: Board, key: str, url: str) -> None:
        """What tornado calls for each request."""
        self._board, self._key, self._url = board, key, url

    def prepare(self) -> None:
        """403 for everybody else."""
        self.set_header("Cache-Control", "no-store")
        if not hmac.compare_digest(bearer(self.request).encode(), self._key.encode()):
            self.set_status(403)
            self.finish(json.dumps({"message": "only the teacher's key opens this page"}))

    def get(self, *path: str) -> None:
        """A part of what is known."""
        what, one = path
        answer(self, self._board, what, one, self._url)


def answer(
    handler: web.RequestHandler, board: Board, what: str, one: str | None, url: str = ""
) -> None:
    """Answer the page.

    Args:
        what: ``worlds``: all in short, or ``one`` of them; ``session``: how students join.
        url: where students reach the class, if that is not where the page is seen from.
    """
    handler.set_header("Content-Type", "application/json")
    handler.set_header("X-Content-Type-Options", "nosniff")
    if what == "session":
        handler.finish(json.dumps({"join": board.join, "url": url}))
    elif not one:
        handler.finish(json.dumps(board.listing()))
    elif (found := board.details(one)) is not None:
        handler.finish(json.dumps(found))
    else:
        raise web.HTTPError(404)


class Page(web.RequestHandler):
    """The page, in which nothing is that a student has sent."""

    def get(self, name: str = "") -> None:
        """The page itself, or its script or style sheet."""
        self.set_header("Content-Security-Policy", POLICY)
        self.set_header("Referrer-Policy", "no-referrer")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Content-Type", f"{FILES.get(name, 'text/html')}; charset=UTF-8")
        self.finish(file(name or "page.html"))


WORLDS = "(worlds|session)(?:/([0-9a-f]{1,64}))?"
"""The paths that ``answer`` knows."""


def application(board: Board, key: str, base: str = "/", url: str = "") -> web.Application:
    """A class of its own.

    Args:
        base: the path under which it is, with a slash at both ends.
    """
    teacher = {"board": board, "key": key, "url": url}
    return web.Application(
        [
            (f"{base}share", Share, {"board": board}),
            (f"{base}{WORLDS}", Teacher, teacher),
            (f"{base}({'|'.join(FILES)})?", Page),
        ],
        log_function=lambda handler: None,  # a line a second for each student
    )


class Server(HTTPServer):
    """A server that slow and many connections do not fill."""

    def initialize(self, *args: Any, most: int, **more: Any) -> None:  # type: ignore[override]
        """What tornado calls instead of ``__init__``."""
        self._most, self._open = most, 0
        super().initialize(*args, **more)

    def handle_stream(self, stream: Any, address: Any) -> None:
        """A new connection."""
        if self._open >= self._most:
            stream.close()
            return
        self._open += 1
        super().handle_stream(stream, address)

    def on_close(self, server_conn: object) -> None:
        """A connection is closed."""
        self._open -= 1
        super().on_close(server_conn)


def server(
    app: web.Application,
    context: ssl.SSLContext | None = None,
    *,
    most: int = CONNECTIONS,
    slow: float = SLOW,
) -> Server:
    """A server for a class; ``most`` and ``slow`` as CONNECTIONS and SLOW."""
    return Server(
        app,
        most=most,
        ssl_options=context,
        max_header_size=8192,
        max_body_size=LARGEST,
        body_timeout=slow,
        idle_connection_timeout=2 * slow,
    )


def certificate(cert: str, key: str | None) -> ssl.SSLContext:
    """For HTTPS. Raises OSError (also ssl.SSLError) where the files are not what they should be."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)
    return context
