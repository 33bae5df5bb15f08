"""The directory server: the directory of a world on several machines."""

from __future__ import annotations

import errno
import json
import math
import select
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import zmq

from sfm_kernel._native import (
    LARGEST_FRAME,
    MAX_MEMBERS,
    JoinRequest,
    Table,
    check_world,
    stretched,
)
from sfm_kernel.directory.carrier import UID, Carrier
from sfm_kernel.directory.clients import Clients, Kind
from sfm_kernel.directory.gateways import LARGEST_REQUEST, Gateways
from sfm_kernel.directory.liveness import LivenessMonitor
from sfm_kernel.directory.zmq.admission import Admission
from sfm_kernel.directory.zmq.sockets import (
    HANDSHAKE_SECONDS,
    Context,
    Wake,
    descriptor,
    has_mail,
    joined,
)
from sfm_kernel.errors import SFMError, WorldAccess, WorldError
from sfm_kernel.transport.address import most_strangers, own_ip, raise_descriptors
from sfm_kernel.transport.closing import Closing
from sfm_kernel.transport.keys import KeyPair

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
    "snapshots" | "order" | "answer" | "enlist" | "reports" | "expel" | "rekey", ...}; its answer
    has the same number. Messages of relays and observers come with it as bytes, which the server
    does not read. Only clients that have shown the world's key can make requests (see ``clients``),
    and each for itself alone; gateways, with their key, enlist, and learn the gateways, and the
    uid, name and site of each member. The server stores the paths that members send, and never
    opens them.

    Args:
        world: its name, which clients must give as well.
        key: the world's secret, at least 16 bytes.
        bind: ZeroMQ address to listen on; port 0 chooses one. By default only this machine's
            address for others (``transport.address.own_ip``).
    Attributes:
        url: the address that clients connect to, with the public half of a key pair that is the
            server's own: "tcp://10.0.0.7:41234/" and 64 hexadecimal digits. Clients talk to nobody
            there who does not have the secret half.
    Raises:
        WorldAccess: the key is empty or short. WorldError: the address is not available.
    """

    def __init__(self, world: str, key: bytes, bind: str | None = None) -> None:
        self.world, self.key = check_world(world), stretched(key)
        self._table = Table()
        self._version = 0
        self._watches: dict[str, LivenessMonitor] = {}
        self._gateways = Gateways()
        self._carrier = Carrier()
        self._subscribers: dict[bytes, tuple[int, str]] = {}  # what each knows, and whose it is
        self._expelled: list[str] = []
        self._closing = False
        self._clients, pair = Clients(self.key), KeyPair.fresh()
        raise_descriptors()
        self._context: Context = zmq.Context()
        self._router = self._context.socket(zmq.ROUTER)
        self._router.linger = 500
        self._router.backlog = most_strangers()
        self._router.maxmsgsize = LARGEST_FRAME
        self._router.handshake_ivl = int(1000 * HANDSHAKE_SECONDS)
        self._admission = Admission(self._context, self._router, pair, self._clients.may_connect)
        try:
            self._bind(bind)
        except zmq.ZMQError as error:
            self._admission.close()
            self._context.destroy(0)
            raise WorldError(f"no directory server at {bind or own_ip()}: {error}") from error
        self._admission.address = address = self._router.get_string(zmq.LAST_ENDPOINT)
        place = address.replace("tcp://0.0.0.0:", f"tcp://{own_ip()}:")
        self.url = f"{place}/{pair.public.hex()}"
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
                    user = str(frames[-1].get("User-Id"))
                    self._admission.admit(int(frames[-1].get(zmq.MessageOption.SRCFD)), user)
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
        due = [self._carrier.next(), self._admission.next(), *(watch.due for watch in watches)]
        limits = [TICK_MS] if restless else []
        limits += [math.ceil(1000 * seconds) for seconds in due if seconds is not None]
        poller.poll(min(limits, default=None))
        for watch in watches:
            self._check(watch)
        self._gateways.forget_dead()

    def _all_watches(self) -> list[LivenessMonitor]:
        return [*self._watches.values(), *self._gateways.watches]

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
        about: dict[str, Any] = {}
        reply = partial(self._reply, client, about)
        try:
            asked = json.loads(request)
            about["number"] = asked["number"]
            if (kind := self._clients.newcomer(user)) is not None:
                return reply(self._greet(asked, kind))
            if self._clients.kind(user) is Kind.GATEWAY:
                if len(request) > LARGEST_REQUEST:
                    raise WorldError(f"a gateway's request has at most {LARGEST_REQUEST} bytes")
                if asked["ask"] not in _FOR_GATEWAYS:
                    raise WorldAccess(f"a gateway may not ask to {asked['ask']!r}")
                if asked["ask"] == "state":
                    return reply(self._state_for_gateways(asked))
            if asked["ask"] == "relay":
                self._bury(asked["dead"])
                self._carrier.serve_relay(asked, body, reply, user)
            elif asked["ask"] == "order":
                self._carrier.order(asked["uid"], body, reply)
            elif asked["ask"] == "answer":
                self._carrier.answer(int(asked["order"]), body, user)
                reply({})
            elif asked["ask"] == "subscribe":
                self._subscribe(client, -1, user)
            elif asked["ask"] == "snapshots":
                listed = frozenset(member.uid for member in self._table.members)
                answer, bodies = self._carrier.serve_observer(asked, listed)
                reply(answer | self._state(asked, user), bodies)
            else:
                reply(self._handlers[asked["ask"]](self, asked, user))
                if asked["ask"] == "join":
                    self._subscribe(client, self._version, user)
        except SFMError as error:
            reply({"error": type(error).__name__, "message": str(error)})
        except _NONSENSE as error:
            reply({"error": "WorldError", "message": f"request not understood: {error!r}"})

    def _subscribe(self, client: bytes, version: int, user: str) -> None:
        """Publish every change from now on to a client, which knows this version."""
        self._subscribers.pop(client, None)
        self._subscribers[client] = version, user
        while len(self._subscribers) > MOST_SUBSCRIBERS:  # most of them have ended long ago
            del self._subscribers[next(iter(self._subscribers))]

    def _publish(self) -> bool:
        """Send the state to subscribers that do not have it; return whether there were any."""
        behind = {
            client: user
            for client, (version, user) in self._subscribers.items()
            if version != self._version
        }
        if not behind:
            return False
        update = json.dumps({"number": None} | self._state({})).encode()
        for client, user in behind.items():
            self._subscribers[client] = self._version, user
            self._router.send_multipart([client, update])
            if not self._clients.may_connect(user):  # it was expelled, and knows it now
                del self._subscribers[client]
        return True

    def _reply(
        self,
        client: bytes,
        about: dict[str, Any],
        answer: dict[str, Any],
        bodies: Sequence[bytes] = (),
    ) -> None:
        self._router.send_multipart([client, json.dumps(about | answer).encode(), *bodies])

    def _greet(self, asked: dict[str, Any], kind: Kind) -> dict[str, Any]:
        """Admit a client that has shown a key; with that alone it may ask for nothing else."""
        if asked["ask"] != "hello":
            raise WorldAccess("who asks for more than hello needs a key pair of its own")
        self._clients.admit(
            asked["public"], kind, {member.public for member in self._table.members}
        )
        return {"world": self.world}

    def _join(self, asked: dict[str, Any], user: str) -> dict[str, Any]:
        request = JoinRequest.from_json(asked["request"])
        if request.public != user:
            raise WorldAccess("a member is announced with the public key of its own connection")
        for watch in self._watches.values():
            self._check(watch)
        if any(watch.unsure for watch in self._watches.values()):
            return {"again": True}  # a process has probably just died: wait until it is certain
        watch = LivenessMonitor(request.address)
        try:
            member = self._table.admit(request, lambda member: not self._watches[member.uid].dead)
        except BaseException:
            watch.close()
            raise
        self._watches[member.uid] = watch
        self._forget_replaced()
        return {"member": member.to_json()} | self._state({})

    def _enlist(self, asked: dict[str, Any], user: str) -> dict[str, Any]:
        gateway, is_new = self._gateways.enlist(asked, user)
        self._version += is_new
        return {"gateway": gateway.to_json()}

    def _leave(self, asked: dict[str, Any], user: str) -> dict[str, Any]:
        """Remove the asking client's entry, or that of a process that has died."""
        member = self._table.find(asked["uid"])
        if member is None:
            return {}
        if member.public != user:
            watch = self._watches[member.uid]
            self._check(watch)
            if watch.unsure:
                return {"again": True}
            if not watch.dead:
                raise WorldAccess(
                    f"process {member.name!r} lives: it leaves by itself, and nobody in its name"
                )
        self._table.remove(member.uid)
        self._forget_replaced()
        return {}

    def _expel(self, asked: dict[str, Any], user: str) -> dict[str, Any]:
        """Put a process out of the world, and all that is listed with its key, for ever."""
        name, members = str(asked["name"]), self._table.members
        ranked = [member for member in members if str(member.rank) == name]
        named = [member for member in members if str(member.name) == name] or ranked
        if not named:
            known = ", ".join(sorted(str(member.name) for member in members)) or "none"
            raise WorldError(f"no process of world {self.world!r} is called {name}. Known: {known}")
        public = named[0].public
        if public == user:
            raise WorldError("a process does not put itself out of the world: it can leave")
        self._clients.expel(public)
        self._admission.expel(public)
        for member in members:
            if member.public == public:
                self._table.remove(member.uid)
                self._expelled.append(member.uid)
        self._forget_replaced()
        return {"expelled": named[0].to_json()}

    def _rekey(self, asked: dict[str, Any], user: str) -> dict[str, Any]:
        """Ask newcomers for another key of the world's; who has joined stays."""
        key = stretched(bytes.fromhex(asked["key"]))
        self._clients.change_key(key)
        self.key = key
        return {}

    def _state(self, asked: dict[str, Any], user: str = "") -> dict[str, Any]:
        """The members, and those that are gone; only the version if the client knows it."""
        if asked.get("version") == self._version:
            return {"version": self._version}
        return {
            "version": self._version,
            "members": [member.to_json() for member in self._table.members],
            "departed": [member.to_json() for member in self._table.departed],
            "expelled": self._expelled,
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

    _handlers: ClassVar[dict[str, Callable[[Any, dict[str, Any], str], dict[str, Any]]]] = {
        "hello": lambda self, asked, user: {"world": self.world},
        "join": _join,
        "leave": _leave,
        "expel": _expel,
        "rekey": _rekey,
        "state": _state,
        "enlist": _enlist,
        "reports": lambda self, asked, user: {"reports": self._gateways.reports},
    }
