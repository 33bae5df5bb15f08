"""The client of a DirectoryServer: requests with their answers, and the updates it publishes."""

from __future__ import annotations

import json
import os
import select
import threading
import time
from collections.abc import Callable
from typing import Any

import zmq

from sfm_kernel import errors
from sfm_kernel.directory.address import ServerAddress
from sfm_kernel.directory.gateways import GATEWAYS_PURPOSE, MEMBERS_PURPOSE, GatewayKey
from sfm_kernel.directory.zmq.curve import derived_pair, prove
from sfm_kernel.directory.zmq.monitor import ConnectionMonitor, prepare
from sfm_kernel.directory.zmq.sockets import Context, Wake, descriptor, frames, has_mail
from sfm_kernel.errors import EndpointClosed, WorldAccess, WorldError, WorldGone
from sfm_kernel.transport.address import stretched
from sfm_kernel.transport.keys import KeyPair

ANSWER_SECONDS = 10.0
"""Seconds in which a server must answer. A server that has ended is noticed much earlier."""

TICK_MS = 250
"""Milliseconds between two checks of a connection that is down."""

LARGEST_ANSWER = 16 << 20
"""The most bytes of a frame from the server's address: an answer lists all members."""

MOST_SOCKETS = 4096
"""Of its context, which the connections to other members also use: three for each."""

OnUpdate = Callable[[dict[str, Any] | None], None]


class Client:
    """Asks the directory server of a world, and receives its updates. Thread-safe.

    It says hello with a pair that is derived from ``key``, and its own pair's public half, and asks
    with its own pair from then on; see ``directory.clients``.

    Args:
        url: the server's address, with its public key: see ``ServerAddress``.
        key: the world's key; or a gateway's, which may ask for less.
        patience: seconds to wait for the first answer.
    Attributes:
        world: as given; the server has proven that it is the one with this address.
        key: that which is used, see ``stretched``.
        pair: this client's own, by which the server knows it.
    Raises:
        WorldGone: the server does not answer, or keeps another world.
        WorldAccess: the key is not the server's.
        WorldError: the url is invalid.
    """

    def __init__(
        self, world: str, url: str, key: bytes | GatewayKey, patience: float = ANSWER_SECONDS
    ) -> None:
        self._address = ServerAddress.parse(url)
        self.world = world
        purpose = GATEWAYS_PURPOSE if isinstance(key, GatewayKey) else MEMBERS_PURPOSE
        self.key = key.key if isinstance(key, GatewayKey) else stretched(key)
        newcomer, self.pair = derived_pair(self.key, purpose), KeyPair.fresh()
        self._lock = threading.Condition()
        self._pid = os.getpid()
        self._number = 0
        self._answers: dict[int, tuple[dict[str, Any], list[bytes]]] = {}
        self._on_update: OnUpdate | None = None
        self._thread: threading.Thread | None = None
        self._wake = Wake()
        self._closing = False
        self._context: Context = zmq.Context()
        self._context.set(zmq.MAX_SOCKETS, MOST_SOCKETS)
        try:
            self._connect(newcomer)
            served = self.ask("hello", patience, public=self.pair.public.hex())["world"]
            if served != world:
                raise WorldGone(
                    f"the directory server at {self._address.place} keeps world {served!r}, "
                    f"not {world!r}"
                )
            self._monitor.close()
            self._connect(self.pair)
        except BaseException:
            self.close()
            raise

    def _connect(self, pair: KeyPair) -> None:
        """Begin to connect, and show this pair."""
        self._dealer = self._context.socket(zmq.DEALER)
        prepare(self._dealer, LARGEST_ANSWER)
        prove(self._dealer, pair, self._address.public)
        self._monitor = ConnectionMonitor(self._dealer)
        try:
            self._dealer.connect(self._address.place)
        except zmq.ZMQError as error:
            raise WorldError(
                f"{self._address.place!r} is no address of a directory server: {error}"
            ) from None

    @property
    def zmq_context(self) -> int:
        """See ``transport.base.DirectoryClient``."""
        return self._context.underlying

    def close(self) -> None:
        """Release the connection. Idempotent; does nothing in a forked child."""
        if os.getpid() != self._pid:
            return
        self._closing = True
        self._wake.ring()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        with self._lock:
            if not self._context.closed:
                self._monitor.close()
                self._context.term()
                self._wake.close()

    def ask(self, kind: str, limit: float = ANSWER_SECONDS, **details: Any) -> dict[str, Any]:
        """The answer to one request.

        Raises:
            WorldGone: there is none within ``limit`` seconds. A later answer, such as after an
                interrupt, is skipped.
            EndpointClosed: this client was closed, or belongs to the parent process.
            Other errors: the server refuses the request.
        """
        return self.exchange(kind, b"", limit, **details)[0]

    def exchange(
        self, kind: str, body: bytes = b"", limit: float = ANSWER_SECONDS, **details: Any
    ) -> tuple[dict[str, Any], list[bytes]]:
        """The answer to a request with a body, and the bodies of the answer; see ``ask``."""
        if os.getpid() != self._pid:
            raise EndpointClosed("this directory belongs to the parent process: join for yourself")
        deadline = time.monotonic() + limit
        with self._lock:
            self._check_open()
            self._number += 1
            number = self._number
            request = json.dumps({"number": number, "ask": kind, **details}).encode()
            self._monitor.update()
            pieces = frames(request, body)
            if not self._monitor.dead:
                self._dealer.send_multipart(pieces)
            try:
                self._wait_for(number, pieces, deadline)
                answer, bodies = self._answers[number]
            finally:
                self._answers.clear() if self._thread is None else self._answers.pop(number, None)
        if "error" in answer:
            raise getattr(errors, answer["error"], WorldError)(answer["message"])
        return answer, bodies

    def subscribe(self, on_update: OnUpdate) -> None:
        """Call ``on_update``, in a thread, with each state that the server publishes from now on.

        And with None when the server falls silent: then the last state may be out of date.
        """
        self._on_update = on_update
        self._thread = threading.Thread(target=self._listen, name="sfm-directory", daemon=True)
        self._thread.start()

    # ---- reading ----

    def _check_open(self) -> None:
        if self._closing or self._context.closed:
            raise EndpointClosed("this directory was closed")

    def _wait_for(self, number: int, request: list[bytes], deadline: float) -> None:
        """Return when the answer has arrived. Holds the lock, and releases it while it waits."""
        breaks = self._monitor.breaks
        if self._thread is not None:
            self._wake.ring()  # no descriptor signals what arrived during the send
        while True:
            if self._thread is None:
                self._read()
            if number in self._answers:
                return
            if self._monitor.up and self._monitor.breaks != breaks:
                # The connection has lost what was under way. Repeating a request does no harm.
                breaks = self._monitor.breaks
                self._dealer.send_multipart(request)
                self._wake.ring()
            self._check_open()
            if self._monitor.refused:
                raise WorldAccess(
                    f"the directory server at {self._address.place} refuses the key: it is not the "
                    f"key of world {self.world!r}, or a process with it was put out of the world"
                )
            if self._monitor.dead or time.monotonic() > deadline:
                why = (
                    "what listens there is not the server with the key in this address"
                    if self._monitor.rejected
                    else "processes that know each other go on"
                )
                raise WorldGone(
                    f"the directory server of world {self.world!r} does not answer at "
                    f"{self._address.place}: {why}. Start the cluster (or the server) again to "
                    f"join or find others, with the address that it then prints"
                )
            if self._thread is None:
                poller = zmq.Poller()
                poller.register(self._dealer, zmq.POLLIN)
                poller.register(self._monitor.monitor, zmq.POLLIN)
                poller.poll(50)
            else:
                self._lock.wait(min(0.05, max(0.0, deadline - time.monotonic())))

    def _read(self) -> list[dict[str, Any]]:
        """Store the answers that have arrived; return the server's updates."""
        updates = []
        while has_mail(self._dealer):
            text, *bodies = self._dealer.recv_multipart()
            answer: dict[str, Any] = json.loads(text)
            if answer.get("number") is None:
                updates.append(answer)
            else:
                self._answers[answer["number"]] = answer, bodies
        if self._monitor.update() and self._monitor.breaks and self._on_update:
            # For the server a new connection is a new client.
            self._number += 1
            request = {"number": None, "ask": "subscribe"}
            self._dealer.send(json.dumps(request).encode())
            self._wake.ring()
        return updates

    def _listen(self) -> None:
        """The thread of ``subscribe``."""
        assert self._on_update is not None
        poller = select.poll()
        for fd in (self._wake.fd, descriptor(self._dealer), descriptor(self._monitor.monitor)):
            poller.register(fd, select.POLLIN)
        was_up = True
        while True:
            self._wake.clear()
            if self._closing:  # after ``clear``, or the ring of ``close`` could be lost
                return
            with self._lock:
                updates = self._read()
                up = self._monitor.up
                self._lock.notify_all()
            for state in updates:
                self._on_update(state)
            if was_up and not up:
                self._on_update(None)
            was_up = up
            # The descriptors signal everything on a connection that is up.
            poller.poll(None if up else TICK_MS)
