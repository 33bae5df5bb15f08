"""The directory of a world whose processes meet from several machines."""

from __future__ import annotations

import errno
import json
import math
import secrets
import select
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import zmq

from sfm_kernel.directory.folders import check_world
from sfm_kernel.directory.relays import Relays
from sfm_kernel.directory.table import Table, Wish
from sfm_kernel.directory.watch import Watch
from sfm_kernel.errors import SFMError, WorldError
from sfm_kernel.transport.zmq.curve import Keys
from sfm_kernel.transport.zmq.door import Door
from sfm_kernel.transport.zmq.identity import own_ip
from sfm_kernel.transport.zmq.limits import bound, most_strangers, raise_descriptors
from sfm_kernel.transport.zmq.sockets import Context, descriptor, has_mail
from sfm_kernel.transport.zmq.wake import Wake

PURPOSE = b"sfm directory"
TICK_MS = 50

_NONSENSE = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
"""What reading a request raises that says something else than it should."""


class DirectoryServer:
    """Keeps the table of ``world`` and serves it from a thread until ``close``.

    A request is one JSON object, {"number", "ask": "hello" | "join" | "leave" | "state" | "relay" |
    "pictures" | "order", ...}; its answer has the same number, and "server", which differs for each
    server that ever ran. Pictures go with it as they are. Only who knows the key can ask. What
    members say about files is stored and never opened.

    Args:
        world: its name, which clients must give as well.
        key: the world's secret, at least 16 bytes.
        bind: ZeroMQ address to listen on; port 0 chooses one. By default this machine's address
            for others (``identity.own_ip``), and no other that it may have.
    Attributes:
        url: what clients connect to.
    Raises:
        WorldAccess: the key is empty or short. WorldError: the address cannot be had.
    """

    def __init__(self, world: str, key: bytes, bind: str | None = None) -> None:
        self.world, self.key = check_world(world), key
        self._name = secrets.token_hex(8)
        self._table = Table()
        self._version = 0
        self._watches: dict[str, Watch] = {}
        self._relays = Relays()
        self._closing = False
        keys = Keys(key, PURPOSE)
        raise_descriptors()
        self._context: Context = zmq.Context()
        self._router = self._context.socket(zmq.ROUTER)
        self._router.linger = 500
        self._router.backlog = most_strangers()
        bound(self._router)
        self._speakers: set[int] = set()
        self._door = Door(self._context, self._router, keys, self._tell_speakers)
        try:
            self._bind(bind)
        except zmq.ZMQError as error:
            self._door.close()
            self._context.destroy(0)
            raise WorldError(f"no directory server at {bind or own_ip()}: {error}") from error
        self._door.address = address = self._router.get_string(zmq.LAST_ENDPOINT)
        self.url = address.replace("tcp://0.0.0.0:", f"tcp://{own_ip()}:")
        self._wake = Wake()
        self._thread = threading.Thread(target=self._serve, name="sfm-directory", daemon=True)
        self._thread.start()

    def _bind(self, address: str | None) -> None:
        try:
            self._router.bind(address or f"tcp://{own_ip()}:0")
        except zmq.ZMQError as error:
            if address or error.errno != errno.EADDRNOTAVAIL:
                raise
            self._router.bind("tcp://*:0")  # a router in front of this machine has the address

    def close(self) -> None:
        """Stop serving. Who has met goes on; nobody can join any more. Idempotent."""
        self._closing = True
        self._wake.ring()
        self._thread.join()

    def __enter__(self) -> DirectoryServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- the thread ----

    def _serve(self) -> None:
        try:
            while not self._closing:
                self._door.serve()
                while has_mail(self._router):
                    frames = self._router.recv_multipart(copy=False)
                    self._speakers.add(int(frames[-1].get(zmq.MessageOption.SRCFD)))
                    client, request, *rest = (frame.bytes for frame in frames)
                    self._serve_one(client, request, rest[0] if rest else b"")
                if not self._relays.release():
                    self._wait()  # the last look at each ZeroMQ socket found nothing
        finally:
            for watch in self._watches.values():
                watch.close()
            self._door.close()
            self._router.close()
            self._context.term()
            self._wake.close()

    def _wait(self) -> None:
        """Sleep until there is a request, news of a member, or an answer is due."""
        poller = select.poll()
        for fd in (self._wake.fd, *self._door.fds, descriptor(self._router)):
            poller.register(fd, select.POLLIN)
        watches = list(self._watches.values())
        for watch in watches:
            if watch.fileno() >= 0:
                poller.register(watch, select.POLLIN | (0 if watch.settled else select.POLLOUT))
        restless = not all(watch.settled for watch in watches)
        due = [self._relays.next(), *(watch.due for watch in watches)]
        limits = [TICK_MS] if restless else []
        limits += [math.ceil(1000 * one) for one in due if one is not None]
        poller.poll(min(limits, default=None))
        for watch in watches:
            self._check(watch)

    def _tell_speakers(self) -> set[int]:
        """Through which descriptors requests have come since this was last asked."""
        told, self._speakers = self._speakers, set()
        return told

    def _check(self, watch: Watch) -> None:
        was_dead = watch.dead
        watch.check()
        if watch.dead != was_dead:
            self._version += 1

    # ---- requests ----

    def _serve_one(self, client: bytes, request: bytes, body: bytes) -> None:
        """Answer a request, now or later."""
        about: dict[str, Any] = {"server": self._name}
        reply = partial(self._reply, client, about)
        try:
            asked = json.loads(request)
            about["number"] = asked["number"]
            if asked["ask"] == "relay":
                self._relays.hear(asked, body, reply)
            elif asked["ask"] == "order":
                self._relays.order(asked, reply)
            elif asked["ask"] == "pictures":
                listed = frozenset(one.uid for one in self._table.members)
                shown, bodies = self._relays.show(asked, listed)
                reply(shown | self._state(asked), bodies)
            else:
                reply(self._handlers[asked["ask"]](self, asked))
        except SFMError as error:
            reply({"error": type(error).__name__, "message": str(error)})
        except _NONSENSE as error:
            reply({"error": "WorldError", "message": f"request not understood: {error!r}"})

    def _reply(
        self,
        client: bytes,
        about: dict[str, Any],
        answer: dict[str, Any],
        bodies: Sequence[bytes] = (),
    ) -> None:
        self._router.send_multipart([client, json.dumps(about | answer).encode(), *bodies])

    def _hello(self, asked: dict[str, Any]) -> dict[str, Any]:
        return {"world": self.world}

    def _join(self, asked: dict[str, Any]) -> dict[str, Any]:
        wish = Wish.from_json(asked["wish"])
        for watch in self._watches.values():
            self._check(watch)
        if any(watch.unsure for watch in self._watches.values()):
            return {"again": True}  # somebody has probably just died: who, is about to be known
        watch = Watch(wish.address)
        try:
            member = self._table.admit(wish, lambda one: not self._watches[one.uid].dead)
        except BaseException:
            watch.close()
            raise
        self._watches[member.uid] = watch
        self._forget_replaced()
        return {"member": member.to_json()}

    def _leave(self, asked: dict[str, Any]) -> dict[str, Any]:
        self._table.remove(asked["uid"])
        self._forget_replaced()
        return {}

    def _state(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Everybody, who is dead, and who left; nothing if the asker knows this version."""
        if asked.get("version") == self._version:
            return {"version": self._version}
        return {
            "version": self._version,
            "members": [one.to_json() for one in self._table.members],
            "departed": [one.to_json() for one in self._table.departed],
            "dead": [uid for uid, watch in self._watches.items() if watch.dead],
        }

    def _forget_replaced(self) -> None:
        self._version += 1
        listed = {one.uid for one in self._table.members}
        for uid in self._watches.keys() - listed:
            self._watches.pop(uid).close()

    _handlers: ClassVar[dict[str, Callable[[Any, dict[str, Any]], dict[str, Any]]]] = {
        "hello": _hello,
        "join": _join,
        "leave": _leave,
        "state": _state,
    }
