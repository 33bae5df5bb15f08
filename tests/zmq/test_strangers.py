"""A stranger without the world's key who reaches a member can do nothing that others notice."""

from __future__ import annotations

import contextlib
import random
import resource
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import psutil
import pytest

import sfm_kernel
from sfm_kernel import Endpoint
from tests.waiting import wait_until
from tests.zmq import wire
from tests.zmq.conftest import Impostor, Join, Pose, link, member, transport
from tests.zmq.sockets import connect
from tests.zmq.strangers import (
    FEW,
    assert_not_taken_in,
    crowd,
    disturb,
    hung_up,
    pour,
    running,
    said,
)

pytestmark = pytest.mark.zmq

NOBODY = "d" * 32


def claim(nbytes: int, **other: int) -> bytes:
    """The header of a frame with ``nbytes`` sealed bytes."""
    pair = {"magic": ord("S"), "klass": 1, "ahead": 0} | other
    return wire.HEADER.pack(
        nbytes, pair["magic"], 8, pair["klass"], 0, pair["ahead"], 1, 1, 0, bytes(16), bytes(16), 1
    )


@pytest.fixture
def address(join: Join) -> Iterator[str]:
    """The address of a process that talks with another, whatever the stranger has done."""
    a, b = join("A"), join("B")
    b.send(dest="A", n=1)
    assert a.recv().n == 1
    yield member(a, "A").address
    b.send(dest="A", n=2)
    assert a.recv().n == 2
    assert not a.peek()


LONGEST = wire.INNER.size + wire.LARGEST + wire.TAG


@pytest.mark.parametrize("length", [1 << 31, LONGEST + 1, LONGEST, 513])
def test_a_frame_without_end_is_not_taken_in(address: str, length: int) -> None:
    """Not one that is too long, and not a long one as the first."""
    assert_not_taken_in(address, claim(length))


@pytest.mark.parametrize("length", [1 << 31, LONGEST])
def test_a_connecting_process_takes_no_frame_without_end_either(length: int, join: Join) -> None:
    a = join("A")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        transport(a).exchange.link(NOBODY, f"tcp://127.0.0.1:{listener.getsockname()[1]}")
        with listener.accept()[0] as fake:
            assert pour(fake, claim(length)) < 64 << 20


def test_a_stranger_that_does_not_show_the_key_is_dropped(address: str) -> None:
    with connect(address) as silent, connect(address) as slow:
        slow.sendall(claim(100) + bytes(99))
        assert hung_up(silent) and hung_up(slow)


# ---- many ------------------------------------------------------------------------------------

VICTIM = """
import os, resource, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, ({few}, {few}))
import sfm_kernel
sfm = sfm_kernel.join(sys.argv[1], "V")
print(next(one.address for one in sfm.members() if one.name == "V"), flush=True)
while True:
    message = sfm.recv()
    files = []
    try:
        for _ in range(20):
            files.append(open(os.devnull))
    except OSError:
        pass
    for file in files:
        file.close()
    while True:
        try:
            sfm.send(dest="A", n=message.n, opened=len(files))
            break
        except OSError:  # they come faster than they are turned away, for a moment
            time.sleep(0.01)
"""


@pytest.mark.fault
def test_a_crowd_leaves_a_member_its_descriptors(world: str, join: Join) -> None:
    with running(VICTIM, world) as (victim, address):
        a = join("A")
        with crowd(address):
            n = 0

            def goes_well() -> bool:
                nonlocal n
                n += 1
                a.send(dest="V", n=n)
                return bool(a.recv(src="V", n=n).opened == 20)

            wait_until(goes_well)
            with sfm_kernel.join(world, "B") as b:  # a process that comes later is let in as well
                b.send(dest="V", n="from B")
                assert a.recv(src="V", n="from B")
            wait_until(lambda: psutil.Process(victim.pid).num_fds() < FEW - 20)
        assert "have not shown the world's key" in said(victim)


@pytest.mark.fault
def test_a_listening_process_raises_its_limit_of_descriptors(world: str) -> None:
    code = """
import resource, sys, sfm_kernel
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
with sfm_kernel.join(sys.argv[1]):
    print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    command = [sys.executable, "-c", code, world]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert int(printed[0]) > 100 and int(printed[1]) == hard


# ---- strangers, and peers that are only slow -------------------------------------------------


@pytest.mark.parametrize("hangs_up", ["at once", "after a while"])
def test_a_peer_without_time_for_our_key_does_not_refuse_it(hangs_up: str, join: Join) -> None:
    a = join("A")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        to_it = transport(a).exchange.link(NOBODY, url)
        if hangs_up == "after a while":
            for _ in range(4):
                with listener.accept()[0]:
                    time.sleep(1.7)
            assert to_it.lost is None
        listener.settimeout(0.2)  # nobody connects any more once it is lost
        while to_it.lost is None:
            with contextlib.suppress(TimeoutError), listener.accept()[0]:
                pass
        assert "refuses this world's key" in to_it.lost


# ---- noise -----------------------------------------------------------------------------------


def noise(dice: random.Random) -> bytes:
    """Bytes that a stranger might send."""
    rest = dice.randbytes(dice.randrange(400))
    good = claim(dice.randrange(40, 500))
    kinds = [
        b"",
        dice.randbytes(1),
        good[: dice.randrange(64)],
        good,
        b"GET / HTTP/1.1\r\n\r\n",
        claim(dice.getrandbits(32)),
        claim(40 + len(rest), klass=dice.randrange(256)),
        claim(100, magic=dice.randrange(256)),
        claim(max(40, len(rest)), ahead=dice.getrandbits(32)),
    ]
    return dice.choice(kinds) + rest


def test_noise_disturbs_nobody(address: str, effort: int) -> None:
    disturb(address, noise, 100 * effort)


# ---- what was overheard ----------------------------------------------------------------------


class Ear:
    """Sits between two peers, and keeps what the one that connects sends to the other."""

    def __init__(self, to: str) -> None:
        self._to, self.heard = to, bytearray()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.05)
        self.address = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(TimeoutError), self._listener.accept()[0] as client:
                with connect(self._to) as server:
                    self._forward(client, server)

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(ConnectionError):
            while not self._over.is_set():
                for source in ready(client, server):
                    if not (data := source.recv(1 << 16)):
                        return
                    (server if source is client else client).sendall(data)
                    self.heard += data if source is client else b""

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        self._listener.close()


def ready(*sockets: socket.socket) -> list[socket.socket]:
    """Those that have something, within 50 ms. (Not select: descriptors may have large numbers.)"""
    poller = select.poll()
    for sock in sockets:
        poller.register(sock, select.POLLIN)
    found = {fd for fd, _ in poller.poll(50)}
    return [sock for sock in sockets if sock.fileno() in found]


Overheard = tuple[Endpoint, Endpoint, list[bytes]]


@pytest.fixture
def overheard(join: Join, by_hand: None) -> Iterator[Overheard]:
    """A and B, and all frames that A has said to B, some of them after breaks."""
    a, b = join("A"), join("B")
    ear = Ear(member(a, "B").address)
    to_b = transport(a).exchange.link(b.uid, ear.address)
    try:
        for n in range(5):
            a.send(dest="B", n=n)
            b.send(dest="A", n=b.recv().n)
            assert a.recv().n == n
            to_b._break()
            wait_until(lambda: to_b.up)
        yield a, b, [b"".join(frame) for frame in wire.split(bytearray(ear.heard))]
        a.send(dest="B", n=5)
        assert b.recv().n == 5
        assert not b.peek()
    finally:
        ear.close()


def test_overheard_frames_cannot_be_replayed(overheard: Overheard) -> None:
    a, b, frames = overheard
    assert len(frames) > 2  # in the other rounds B may have made the connection
    for first in range(len(frames)):
        with connect(member(a, "B").address) as wire_, contextlib.suppress(ConnectionError):
            wire_.sendall(b"".join(frames[first:]))
            assert hung_up(wire_)
    assert link(b, "A").lost is None and not b.peek()


def test_overheard_frames_cannot_be_replayed_to_another_process(
    overheard: Overheard, join: Join
) -> None:
    """A peer that looks for a former owner of a port is answered, and may be an echo."""
    a, _, frames = overheard
    c = join("C")
    with connect(member(a, "C").address) as stranger, contextlib.suppress(ConnectionError):
        stranger.sendall(b"".join(frames))
        assert hung_up(stranger)
    c.send(dest="A", n="real")
    assert a.recv(src="C").n == "real"
    a.send(dest="C", n="real")
    assert c.recv(src="A").n == "real"


def test_a_greeting_for_somebody_else_opens_nothing(join: Join, impostor: Pose) -> None:
    """Otherwise what was overheard in one conversation would open a connection in another."""
    b, a = join("B"), join("A")
    b.send(dest="A", n=1)
    assert a.recv().n == 1
    fake = impostor(b, a)
    other = wire.Pair(fake.secret, a.uid, NOBODY, counter=1 << 40)
    address = member(a, "A").address.encode()
    fake.socket.sendall(other.seal(wire.Frame(b"H", 0, address)))
    assert fake.hears(b"W").number == 0
    fake.put(b"B")  # a true word of A's, which it says when it leaves
    fake.is_hung_up_on()
    assert link(b, "A").lost is None


def test_an_address_does_not_steer_the_terminal(
    fake: Impostor, capfd: pytest.CaptureFixture[str]
) -> None:
    fake.put(b"H", 0, "tcp://127.0.0.1:1\x1b]0;owned\x07\x9b31m".encode())
    fake.put(b"D", 1, b"no packet")  # it is reported
    text = ""
    while "lost" not in text:
        text += capfd.readouterr().err
        time.sleep(0.01)
    assert "\x1b" not in text and "\x07" not in text and "\x9b" not in text
    assert "\\u{1b}]0;owned" in text
    assert str(sfm_kernel.WorldGone("no server at \x1b[31mred")) == "no server at \\x1b[31mred"
