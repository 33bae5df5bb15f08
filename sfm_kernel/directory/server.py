"""The directory server: the directory of a world on several machines."""

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

from sfm_kernel._native import MAX_MEMBERS, knock
from sfm_kernel.directory.carrier import Carrier
from sfm_kernel.directory.folders import check_world
from sfm_kernel.directory.gateways import (
    GATEWAYS_PURPOSE,
    LARGEST_REQUEST,
    MEMBERS_PURPOSE,
    Gateways,
)
from sfm_kernel.directory.liveness import LivenessMonitor
from sfm_kernel.directory.table import UID, JoinRequest, Table
from sfm_kernel.directory.zmq.admission import Admission
from sfm_kernel.directory.zmq.curve import GATEWAY, Keys, gateway_key
from sfm_kernel.directory.zmq.sockets import (
    HANDSHAKE_SECONDS,
    LARGEST_FRAME,
    Context,
    Wake,
    descriptor,
    has_mail,
    joined,
)
from sfm_kernel.errors import SFMError, WorldAccess, WorldError
from sfm_kernel.transport.address import most_strangers, own_ip, raise_descriptors
from sfm_kernel.transport.closing import Closing

TICK_MS = 50
MOST_SUBSCRIBERS = 2 * MAX_MEMBERS
"""The most subscribers. The oldest is dropped beyond that: there are fewer living clients."""

_NONSENSE = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
"""The exceptions of reading a malformed request."""

_FOR_GATEWAYS = ("hello", "enlist", "state")
"""The requests that gateways may make, whose key opens less than the world's."""


class DirectoryServer(Closing):
    """Keeps the table of ``world`` and serves it from a thread until ``close``.

    A request is one JSON object, {"number", "ask": "hello" | "join" | "leave" | "state" | "relay" |
    "snapshots" | "order" | "answer" | "enlist" | "reports", ...}; its answer has the same number,
    and "server", a uid that differs for each server. Messages of relays and observers come with it
    as bytes, which the server does not read. Only clients with the world's key can make requests;
    gateways, with their key, enlist, and learn the gateways, and the uid, name and site of each
    member. The server stores the paths that members send, and never opens them.

    Args:
        world: its name, which clients must give as well.
        key: the world's secret, at least 16 bytes.
        bind: ZeroMQ address to listen on; port 0 chooses one. By default only this machine's
            address for others (``transport.address.own_ip``).
    Attributes:
        url: the address that clients connect to.
    Raises:
        WorldAccess: the key is empty or short. WorldError: the address is not available.
    """

    def __init__(self, world: str, key: bytes, bind: str | None = None) -> None:
        self.world, self.key = check_world(world), key
        self._uid = secrets.token_hex(16)
        self._table = Table()
        self._version = 0
        self._watches: dict[str, LivenessMonitor] = {}
        self._gateways = Gateways()
        self._carrier = Carrier()
        self._subscribers: dict[bytes, int] = {}
        self._closing = False
        keys = Keys(key, MEMBERS_PURPOSE)
        raise_descriptors()
        self._context: Context = zmq.Context()
        self._router = self._context.socket(zmq.ROUTER)
        self._router.linger = 500
        self._router.backlog = most_strangers()
        self._router.maxmsgsize = LARGEST_FRAME
        self._router.handshake_ivl = int(1000 * HANDSHAKE_SECONDS)
        self._authenticated: set[int] = set()
        gateways = Keys(gateway_key(key), GATEWAYS_PURPOSE)
        self._admission = Admission(
            self._context, self._router, keys, self._take_authenticated, gateways
        )
        try:
            self._bind(bind)
        except zmq.ZMQError as error:
            self._admission.close()
            self._context.destroy(0)
            raise WorldError(f"no directory server at {bind or own_ip()}: {error}") from error
        self._admission.address = address = self._router.get_string(zmq.LAST_ENDPOINT)
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
        """Stop serving. Members that know each other go on; none can join any more. Idempotent."""
        self._closing = True
        self._wake.ring()
        self._thread.join()

    # ---- the thread ----

    def _serve(self) -> None:
        try:
            while not self._closing:
                self._admission.serve()
                while has_mail(self._router):
                    frames = self._router.recv_multipart(copy=False)
                    self._authenticated.add(int(frames[-1].get(zmq.MessageOption.SRCFD)))
                    user = str(frames[-1].get("User-Id"))
                    client, *pieces = (frame.bytes for frame in frames)
                    self._serve_one(client, user, *joined(pieces))
                # No descriptor signals what arrived during a send.
                if not self._publish() and not self._carrier.release():
                    self._wait()  # the last read of each ZeroMQ socket found nothing
        finally:
            for watch in self._all_watches():
                watch.close()
            self._admission.close()
            self._router.close()
            self._context.term()
            self._wake.close()

    def _wait(self) -> None:
        """Sleep until a request arrives, a member's connection changes, or an answer is due."""
        poller = select.poll()
        for fd in (self._wake.fd, *self._admission.fds, descriptor(self._router)):
            poller.register(fd, select.POLLIN)
        watches = self._all_watches()
        for watch in watches:
            if watch.fileno() >= 0:
                poller.register(watch, select.POLLIN | (0 if watch.settled else select.POLLOUT))
        restless = not all(watch.settled for watch in watches)
        due = [self._carrier.next(), *(watch.due for watch in watches)]
        limits = [TICK_MS] if restless else []
        limits += [math.ceil(1000 * seconds) for seconds in due if seconds is not None]
        poller.poll(min(limits, default=None))
        for watch in watches:
            self._check(watch)
        self._gateways.forget_dead()

    def _all_watches(self) -> list[LivenessMonitor]:
        return [*self._watches.values(), *self._gateways.watches]

    def _take_authenticated(self) -> set[int]:
        """The descriptors that requests have come through since the last call."""
        taken, self._authenticated = self._authenticated, set()
        return taken

    def _check(self, watch: LivenessMonitor) -> None:
        before = watch.dead, watch.unreachable is None
        watch.check()
        if before != (watch.dead, watch.unreachable is None):
            self._version += 1

    def _bury(self, uids: Sequence[str]) -> None:
        """Accept a relay's report that processes are dead; some may not be listed."""
        if not all(UID.fullmatch(uid) for uid in uids):
            raise ValueError("a process's uid has 32 hexadecimal digits")
        for uid in uids:
            if (watch := self._watches.get(uid)) and not watch.dead:
                watch.bury()
                self._version += 1

    # ---- requests ----

    def _serve_one(self, client: bytes, user: str, request: bytes, body: bytes) -> None:
        """Answer a request, now or later."""
        about: dict[str, Any] = {"server": self._uid}
        reply = partial(self._reply, client, about)
        try:
            asked = json.loads(request)
            about["number"] = asked["number"]
            if user == GATEWAY:
                if len(request) > LARGEST_REQUEST:
                    raise WorldError(f"a gateway's request has at most {LARGEST_REQUEST} bytes")
                if asked["ask"] not in _FOR_GATEWAYS:
                    raise WorldAccess(f"a gateway may not ask to {asked['ask']!r}")
                if asked["ask"] == "state":
                    return reply(self._state_for_gateways(asked))
            if asked["ask"] == "relay":
                self._bury(asked["dead"])
                self._carrier.serve_relay(asked, body, reply)
            elif asked["ask"] == "order":
                self._carrier.order(asked["uid"], body, reply)
            elif asked["ask"] == "answer":
                self._carrier.answer(int(asked["order"]), body)
                reply({})
            elif asked["ask"] == "subscribe":
                self._subscribe(client, -1)
            elif asked["ask"] == "snapshots":
                listed = frozenset(member.uid for member in self._table.members)
                answer, bodies = self._carrier.serve_observer(asked, listed)
                reply(answer | self._state(asked), bodies)
            else:
                reply(self._handlers[asked["ask"]](self, asked))
                if asked["ask"] == "join":
                    self._subscribe(client, self._version)
        except SFMError as error:
            reply({"error": type(error).__name__, "message": str(error)})
        except _NONSENSE as error:
            reply({"error": "WorldError", "message": f"request not understood: {error!r}"})

    def _subscribe(self, client: bytes, version: int) -> None:
        """Publish every change from now on to a client, which knows this version."""
        self._subscribers.pop(client, None)
        self._subscribers[client] = version
        while len(self._subscribers) > MOST_SUBSCRIBERS:  # most of them have ended long ago
            del self._subscribers[next(iter(self._subscribers))]

    def _publish(self) -> bool:
        """Send the state to subscribers that do not have it; return whether there were any."""
        behind = [
            client for client, version in self._subscribers.items() if version != self._version
        ]
        if not behind:
            return False
        update = json.dumps({"server": self._uid, "number": None} | self._state({})).encode()
        for client in behind:
            self._subscribers[client] = self._version
            self._router.send_multipart([client, update])
        return True

    def _reply(
        self,
        client: bytes,
        about: dict[str, Any],
        answer: dict[str, Any],
        bodies: Sequence[bytes] = (),
    ) -> None:
        self._router.send_multipart([client, json.dumps(about | answer).encode(), *bodies])

    def _join(self, asked: dict[str, Any]) -> dict[str, Any]:
        request = JoinRequest.from_json(asked["request"])
        for watch in self._watches.values():
            self._check(watch)
        if any(watch.unsure for watch in self._watches.values()):
            return {"again": True}  # a process has probably just died: wait until it is certain
        watch = LivenessMonitor(request.address, knock(self.key, self._uid, request.uid))
        try:
            member = self._table.admit(request, lambda member: not self._watches[member.uid].dead)
        except BaseException:
            watch.close()
            raise
        self._watches[member.uid] = watch
        self._forget_replaced()
        return {"member": member.to_json()} | self._state({})

    def _enlist(self, asked: dict[str, Any]) -> dict[str, Any]:
        gateway, is_new = self._gateways.enlist(asked)
        self._version += is_new
        return {"gateway": gateway.to_json()}

    def _leave(self, asked: dict[str, Any]) -> dict[str, Any]:
        self._table.remove(asked["uid"])
        self._forget_replaced()
        return {}

    def _state(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The members, the dead, and the departed; only the version if the client knows it."""
        if asked.get("version") == self._version:
            return {"version": self._version}
        return {
            "version": self._version,
            "members": [member.to_json() for member in self._table.members],
            "departed": [member.to_json() for member in self._table.departed],
            "dead": [uid for uid, watch in self._watches.items() if watch.dead],
            "unreachable": {
                uid: seconds
                for uid, watch in self._watches.items()
                if (seconds := watch.unreachable) is not None
            },
            "gateways": [gateway.to_json() for gateway in self._gateways.listed],
        }

    def _state_for_gateways(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The gateways, and the members' names, which weights refer to."""
        if asked.get("version") == self._version:
            return {"version": self._version}
        return {
            "version": self._version,
            "members": [
                {"uid": member.uid, "name": member.name, "site": member.site}
                for member in self._table.members
            ],
            "gateways": [gateway.to_json() for gateway in self._gateways.listed],
        }

    def _forget_replaced(self) -> None:
        self._version += 1
        listed = {member.uid for member in self._table.members}
        for uid in self._watches.keys() - listed:
            self._watches.pop(uid).close()

    _handlers: ClassVar[dict[str, Callable[[Any, dict[str, Any]], dict[str, Any]]]] = {
        "hello": lambda self, asked: {"world": self.world},
        "join": _join,
        "leave": _leave,
        "state": _state,
        "enlist": _enlist,
        "reports": lambda self, asked: {"reports": self._gateways.reports},
    }
