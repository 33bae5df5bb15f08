"""A member of a world, in one thread: what comes is taken in while it sends, receives or polls."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import time
import urllib.parse
from collections.abc import Iterator
from typing import Any

import zmq
from zmq.utils import z85

from .directory import Directory, Lost, show
from .link import HEADER, INNER, LARGEST, VERSION, Link
from .packet import decode, encode


class Peer:
    """A member of a world.

    Args:
        url, key: of the directory server, and the world's.
        site: the site whose members it talks to.
        ip: others reach this machine there; that of the way to the directory server by default.
    """

    def __init__(
        self,
        world: str,
        url: str,
        key: bytes,
        name: str | None = None,
        site: str = "",
        ip: str = "",
    ) -> None:
        self._context = zmq.Context()
        self._zap = self._context.socket(zmq.ROUTER)  # who may connect: before anybody can
        self._zap.bind("inproc://zeromq.zap.01")
        self.directory = Directory(self._context, url, key)
        self._router = self._context.socket(zmq.ROUTER)
        self._router.curve_server, self._router.curve_secretkey = True, self.directory.pair[1]
        self._router.router_mandatory, self._router.maxmsgsize = True, 2 * LARGEST
        self._router.sndhwm = 0  # credit bounds what waits
        self._router.zap_domain = b"sfm"
        self._router.bind(f"tcp://{ip or own_ip(url)}:*")
        self.uid, address = os.urandom(16).hex(), self._router.get_string(zmq.LAST_ENDPOINT)
        about = {"uid": self.uid, "pid": os.getpid(), "host": socket.gethostname(), "segment": ""}
        about |= {"address": address, "name": name, "site": site, "info": {"plain": True}}
        request = about | {"public": self.directory.public}
        while "member" not in (answer := self.directory.ask("join", request=request)):
            time.sleep(0.05)  # a process has just died: the server makes sure
        self.name, self.site = answer["member"]["name"], answer["member"]["site"]
        self._address, self._links = address, dict[str, Link]()
        self._dealers = dict[str, tuple[zmq.Socket[bytes], zmq.Socket[bytes]]]()
        self._newcomers = list[tuple[float, list[bytes]]]()
        self._owners = dict[bytes, str]()
        """Whose connection of the ROUTER it is, by its routing id."""

    # ---- what a program calls ----

    def send(self, dest: str | int, **attributes: Any) -> None:
        """Send a message; it waits while much waits there. Raises Lost, TypeError."""
        member = self.directory.find(dest)
        if member["site"] != self.site:
            raise Lost(f"process {dest!r} is at site {member['site']!r}, and not at {self.site!r}")
        link = self._link(member["uid"])
        packet = encode({"dest": member["name"], "src": self.name} | attributes)
        self._connect(member, link)
        while not link.may_send(len(packet)):
            self._check(member, link)
            self.poll(0.1)
        link.send(packet)
        self._check(member, link)

    def recv(self, timeout: float | None = None, **template: Any) -> dict[str, Any]:
        """The next message with these attributes. Raises TimeoutError; Lost if its ``src`` ends."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            for link in self._links.values():
                for packet in list(link.messages):
                    message, _ = decode(packet)
                    if all(message.get(name) == value for name, value in template.items()):
                        link.messages.remove(packet)
                        if (received := link.received(packet)) is not None:
                            return received
            if "src" in template:
                member = self.directory.find(template["src"])
                self._check(member, self._link(member["uid"]))
            if until is not None and time.monotonic() > until:
                raise TimeoutError(f"no message with {template} within {timeout} s")
            self.poll(0.1)

    def leave(self, timeout: float = 5.0) -> None:
        """Leave, when everything that was sent has arrived, or after so many seconds."""
        until = time.monotonic() + timeout
        while not all(link.is_settled for link in self._links.values()):
            if time.monotonic() > until:
                break
            self.poll(0.05)
        for link in self._links.values():
            link.put(b"B")
        self.directory.ask("leave", uid=self.uid)
        for dealer, report in self._dealers.values():
            dealer.linger = 1000
            report.close()
        self._router.linger = 1000
        self._context.destroy(linger=1000)

    # ---- connections ----

    def _link(self, uid: str) -> Link:
        if uid not in self._links:
            self._links[uid] = Link(self.uid, uid, self.site, self._address)
        return self._links[uid]

    def _check(self, member: dict[str, Any], link: Link) -> None:
        """Raise Lost if the member has ended; connect again if the connection has."""
        self.directory.find(member["uid"])
        if link.lost:
            raise Lost(f"process {member['name']!r}: {link.lost}")
        self._connect(member, link)

    def _connect(self, member: dict[str, Any], link: Link) -> None:
        if link.out is not None:
            return
        dealer = self._context.socket(zmq.DEALER)
        show(dealer, self.directory.pair, z85.encode(bytes.fromhex(member["public"])))
        dealer.reconnect_ivl, dealer.maxmsgsize = -1, 2 * LARGEST  # one socket is one connection
        dealer.sndhwm = 0
        report = dealer.get_monitor_socket(zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED)
        dealer.connect(member["address"])
        self._dealers[member["uid"]] = dealer, report

        def out(frame: bytes) -> None:
            with contextlib.suppress(zmq.Again):  # it has ended: its report, which comes, says so
                dealer.send(frame, zmq.DONTWAIT)

        link.use(out, broke=True)

    def poll(self, seconds: float = 0.0) -> None:
        """Take in what has come, and wait for it for so long."""
        poller = zmq.Poller()
        ends = [end for both in self._dealers.values() for end in both]
        for end in (self._zap, self._router, self.directory.socket, *ends):
            poller.register(end, zmq.POLLIN)
        ready = dict(poller.poll(int(1000 * seconds)))
        if self.directory.socket in ready:
            self.directory.read()
        self._newcomers += [(time.monotonic(), request) for request in waiting(self._zap)]
        self._newcomers = [newcomer for newcomer in self._newcomers if not self._admit(*newcomer)]
        for route, frame in waiting(self._router, copy=False):
            self._came_to_router(route.bytes, frame)
        for uid, (dealer, report) in list(self._dealers.items()):
            for (frame,) in waiting(dealer):
                self._take(uid, frame)
            if report in ready:  # it has ended, or was not made
                dealer.disable_monitor()
                dealer.close()
                del self._dealers[uid]
                self._links[uid].out = None

        for uid, link in self._links.items():
            if link.has_ended and time.monotonic() > link.again_at:
                link.again_at = time.monotonic() + 0.1
                with contextlib.suppress(Lost):
                    self._connect(self.directory.find(uid), link)

    def _admit(self, since: float, request: list[bytes]) -> bool:
        """Let a member connect (ZeroMQ's RFC 27), or wait until it is announced, but not for long.

        Returns whether it was answered. What comes on its connection tells whose it is.
        """
        route, empty, version, number, _, _, _, _, shown = request
        members = self.directory.state["members"]
        owners = [member["uid"] for member in members if member["public"] == shown.hex()]
        if not owners and time.monotonic() < since + 2:
            return False
        verdict = [b"200", b"OK", owners[0].encode()] if owners else [b"300", b"unknown", b""]
        self._zap.send_multipart([route, empty, version, number, *verdict, b""])
        return True

    def _came_to_router(self, route: bytes, message: zmq.Frame) -> None:
        uid, frame = str(message.get("User-Id")), message.bytes
        link = self._link(uid)
        if route not in self._owners:  # its first frame: a greeting, which may ask to be used
            self._owners[route] = uid
            again = INNER.unpack_from(frame, HEADER.size)[1]
            if link.out is None or again:

                def out(frame: bytes) -> None:
                    try:
                        self._router.send_multipart([route, frame])
                    except zmq.ZMQError as error:
                        if error.errno != errno.EHOSTUNREACH:
                            raise
                        link.out = None  # it has ended: the member connects again, or this process

                link.use(out)
        self._take(uid, frame)

    def _take(self, uid: str, frame: bytes) -> None:
        if len(frame) < HEADER.size + INNER.size:
            return
        _, magic, _, _, version, *_, clear, sender, receiver, _ = HEADER.unpack_from(frame)
        if magic == ord("S") and version != VERSION:
            self._link(uid).lost = f"it speaks version {version} of the wire format"
        ends = sender[::-1].hex(), receiver[::-1].hex()
        if (magic, version, clear, ends) == (ord("S"), VERSION, 1, (uid, self.uid)):
            self._link(uid).take(frame)


def waiting(end: zmq.Socket[bytes], copy: bool = True) -> Iterator[Any]:
    """What has come to a socket."""
    while True:
        try:
            yield end.recv_multipart(zmq.DONTWAIT, copy=copy)
        except zmq.Again:
            return


def own_ip(url: str) -> str:
    """This machine's address on the way to the directory server."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((urllib.parse.urlsplit(url).hostname, 9))
        return str(probe.getsockname()[0])
