"""The line to a DirectoryServer: one request, one answer."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Any

import zmq

from sfm_kernel import errors
from sfm_kernel.directory.server import PURPOSE
from sfm_kernel.errors import EndpointClosed, WorldAccess, WorldError, WorldGone
from sfm_kernel.transport.zmq.curve import Keys
from sfm_kernel.transport.zmq.line import Line, prepare
from sfm_kernel.transport.zmq.sockets import Context, has_mail

ANSWER_SECONDS = 10.0
"""How long a server may take to answer. One that is not there is noticed much earlier."""

LARGEST_ANSWER = 16 << 20
"""Bytes that a frame from whoever is at the server's address may have: it tells of all members."""


class Client:
    """Asks the directory server of a world. Thread-safe: one request after the other.

    Attributes:
        world, url, key: of the server, and proven to be its own.
    Raises:
        WorldGone: the server does not answer, or keeps another world.
        WorldAccess: the key is not the server's.
        WorldError: the url is none.
    """

    def __init__(self, world: str, url: str, key: bytes) -> None:
        self.world, self.url, self.key = world, url, key
        self._asking = threading.Lock()
        self._pid = os.getpid()
        self._number = 0
        self._server: str | None = None
        keys = Keys(key, PURPOSE)
        self._context: Context = zmq.Context()
        self._dealer = self._context.socket(zmq.DEALER)
        prepare(self._dealer, LARGEST_ANSWER)
        keys.connect(self._dealer)
        self._line = Line(self._dealer)
        try:
            try:
                self._dealer.connect(url)
            except zmq.ZMQError as error:
                raise WorldError(f"{url!r} is no address of a directory server: {error}") from None
            theirs = self.ask("hello")["world"]
            if theirs != world:
                raise WorldGone(
                    f"the directory server at {url} keeps world {theirs!r}, not {world!r}"
                )
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the connection. Idempotent; in a forked child it stays the parent's."""
        if os.getpid() != self._pid:
            return
        with self._asking:
            if not self._context.closed:
                self._line.close()
                self._context.term()

    def ask(self, what: str, limit: float = ANSWER_SECONDS, **details: Any) -> dict[str, Any]:
        """The answer to one request.

        Raises:
            WorldGone: there is none within ``limit`` seconds. An answer that comes later, as after
                an interrupt, is skipped.
            EndpointClosed: this client was closed, or belongs to the parent process.
            What the server says is wrong with the request.
        """
        return self.exchange(what, b"", limit, **details)[0]

    def exchange(
        self, what: str, body: bytes = b"", limit: float = ANSWER_SECONDS, **details: Any
    ) -> tuple[dict[str, Any], list[bytes]]:
        """The same with a body, which the server gets as it is, and those of the answer."""
        if os.getpid() != self._pid:
            raise EndpointClosed("this directory belongs to the parent process: join for yourself")
        with self._asking:
            if self._context.closed:
                raise EndpointClosed("this directory was closed")
            self._number += 1
            request = json.dumps({"number": self._number, "ask": what, **details}).encode()
            self._line.update()
            if not self._line.dead:
                self._dealer.send_multipart([request, body] if body else [request])
            answer, bodies = self._receive(self._number, time.monotonic() + limit)
        if "error" in answer:
            raise getattr(errors, answer["error"], WorldError)(answer["message"])
        return answer, bodies

    def _receive(self, number: int, deadline: float) -> tuple[dict[str, Any], list[bytes]]:
        poller = zmq.Poller()
        poller.register(self._dealer, zmq.POLLIN)
        poller.register(self._line.monitor, zmq.POLLIN)
        while True:
            while has_mail(self._dealer):
                text, *bodies = self._dealer.recv_multipart()
                answer: dict[str, Any] = json.loads(text)
                if answer.get("number") == number:
                    self._recognise(answer["server"])
                    return answer, bodies
            self._line.update()
            if self._line.unwelcome:
                raise WorldAccess(
                    f"the directory server at {self.url} refuses the key: it is not the key of "
                    f"world {self.world!r} (or something else listens there)"
                )
            if self._line.dead or time.monotonic() > deadline:
                raise self._gone()
            poller.poll(50)

    def _recognise(self, server: str) -> None:
        if self._server is None:
            self._server = server
        elif server != self._server:  # a new one at the same address, which knows nobody
            raise self._gone()

    def _gone(self) -> WorldGone:
        return WorldGone(
            f"the directory server of world {self.world!r} does not answer at {self.url}. "
            f"Processes that know each other go on; start the cluster (or the server) again to "
            f"join or find others"
        )
