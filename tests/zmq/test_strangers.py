"""What somebody without the world's key can do who reaches a port: nothing that others notice."""

from __future__ import annotations

import contextlib
import random
import resource
import secrets
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import psutil
import pytest
import zmq

import sfm_kernel
from sfm_kernel import Endpoint
from sfm_kernel.directory import DirectoryServer, RemoteDirectory
from sfm_kernel.transport.zmq import line
from sfm_kernel.transport.zmq.line import Line, prepare
from tests.zmq.conftest import Impostor, member, wait_until

pytestmark = pytest.mark.zmq

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"CURVE".ljust(20, b"\0") + bytes(32)
"""How every connection of ZeroMQ's begins (ZMTP 3.1)."""
KEY = bytes(range(32))
MORE_THAN_THE_DEFAULT = 25.0
"""Seconds. ZeroMQ itself gives up a handshake after 30, and what a test waits for comes after 3."""


def claim(nbytes: int) -> bytes:
    """The head of a frame of so many bytes."""
    return b"\x06" + nbytes.to_bytes(8, "big")


def connect(address: str) -> socket.socket:
    parts = urlsplit(address)
    assert parts.hostname is not None and parts.port is not None
    return socket.create_connection((parts.hostname, parts.port))


def pour(connection: socket.socket) -> int:
    """Send until the other end hangs up, 256 MB at most; how much went."""
    connection.sendall(GREETING + claim(1 << 30))
    part, sent = bytes(1 << 20), 0
    with contextlib.suppress(ConnectionError):
        while sent < 256 << 20:
            sent += connection.send(part)
    return sent


def hung_up(connection: socket.socket) -> bool:
    """Wait for the end of a connection."""
    connection.settimeout(MORE_THAN_THE_DEFAULT)
    try:
        while connection.recv(4096):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True


@pytest.fixture(params=["member", "directory server"])
def address(
    request: pytest.FixtureRequest, world: str, join: Callable[..., Endpoint]
) -> Iterator[str]:
    """Where one listens. The member's connections are served, once somebody has connected."""
    if request.param == "member":
        a, b = join("A"), join("B")
        b.send(dest="A", n=1)
        assert a.recv().n == 1
        yield member(a, "A").address
        b.send(dest="A", n=2)
        assert a.recv().n == 2  # whatever the stranger has done
        return
    with DirectoryServer(world, KEY, "tcp://127.0.0.1:0") as server:
        yield server.url
        with RemoteDirectory(world, server.url, KEY) as client:
            assert client.members() == []


def test_a_frame_without_end_is_not_taken_in(address: str) -> None:
    process = psutil.Process()
    before = process.memory_info().rss
    with connect(address) as stranger:
        assert pour(stranger) < 64 << 20
    assert process.memory_info().rss - before < 64 << 20


def test_who_connects_takes_no_frame_without_end_either() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, zmq.Context() as context:
        dealer = context.socket(zmq.DEALER)
        prepare(dealer)
        dealer.connect(f"tcp://127.0.0.1:{listener.getsockname()[1]}")
        with listener.accept()[0] as fake:
            assert pour(fake) < 64 << 20
        dealer.close(0)


def test_who_does_not_complete_a_handshake_is_dropped(address: str) -> None:
    with connect(address) as silent, connect(address) as slow:
        slow.sendall(GREETING)
        assert hung_up(silent) and hung_up(slow)


# ---- many ------------------------------------------------------------------------------------

FEW = 128
"""Descriptors of the process that is attacked."""
CROWD = 200

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

SERVER = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, ({few}, {few}))
from sfm_kernel.directory import DirectoryServer
with DirectoryServer(sys.argv[1], bytes(range(32)), "tcp://127.0.0.1:0") as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def running(code: str, world: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process with ``FEW`` descriptors, and the address that it says it has."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", code.format(few=FEW), world]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as one:
        try:
            assert one.stdout is not None
            yield one, one.stdout.readline().strip()
        finally:
            one.kill()


@contextlib.contextmanager
def crowd(address: str) -> Iterator[list[socket.socket]]:
    """Silent connections, which come again when they are closed, until the end."""
    parts = urlsplit(address)
    silent: list[socket.socket] = []
    over = threading.Event()

    def one() -> socket.socket:
        connection = socket.socket()
        connection.setblocking(False)
        connection.connect_ex((parts.hostname, parts.port))
        return connection

    def come_again() -> None:
        while not over.is_set():
            readable, _, _ = select.select(silent, [], [], 0.05)
            for nth, connection in enumerate(silent):
                if connection in readable:
                    try:
                        gone = not connection.recv(4096)
                    except OSError:
                        gone = True
                    if gone:
                        connection.close()
                        silent[nth] = one()

    silent += [one() for _ in range(CROWD)]
    thread = threading.Thread(target=come_again)
    thread.start()
    try:
        yield silent
    finally:
        over.set()
        thread.join()
        for connection in silent:
            connection.close()


def said(process: subprocess.Popen[str]) -> str:
    process.kill()
    assert process.stderr is not None
    return process.stderr.read()


@pytest.mark.fault
def test_a_crowd_leaves_a_member_its_descriptors(world: str, join: Callable[..., Endpoint]) -> None:
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
            with sfm_kernel.join(world, "B") as b:  # who comes later is let in as well
                b.send(dest="V", n="from B")
                assert a.recv(src="V", n="from B")
            wait_until(lambda: psutil.Process(victim.pid).num_fds() < FEW - 20)
        assert "have not shown the world's key" in said(victim)


@pytest.mark.fault
def test_a_crowd_does_not_keep_members_from_joining(world: str) -> None:
    with running(SERVER, world) as (server, address):
        with crowd(address):
            for _ in range(20):
                with RemoteDirectory(world, address, KEY) as client:
                    assert client.members() == []
            wait_until(lambda: psutil.Process(server.pid).num_fds() < FEW - 20)
        assert "have not shown the world's key" in said(server)


@pytest.mark.fault
def test_who_listens_may_have_as_many_descriptors_as_it_is_allowed(world: str) -> None:
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


# ---- who is a stranger, and who only slow ----------------------------------------------------


@pytest.mark.parametrize("hangs_up", ["at once", "after a while"])
def test_who_has_no_time_for_our_key_does_not_refuse_it(
    hangs_up: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, "HANDSHAKE_SECONDS", 0.2 if hangs_up == "after a while" else 60)
    monkeypatch.setattr(line, "NEVER_SECONDS", 0.7)
    monkeypatch.setattr(line, "UNWELCOME_SECONDS", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as listener, zmq.Context() as context:
        dealer = context.socket(zmq.DEALER)
        prepare(dealer)
        state = Line(dealer)
        dealer.connect(f"tcp://127.0.0.1:{listener.getsockname()[1]}")
        for _ in range(5):
            with listener.accept()[0]:
                wait_until(lambda: state.update() or state._connected)
                if hangs_up == "after a while":
                    threading.Event().wait(0.3)
            wait_until(lambda: state.update() or not state._connected)
            if hangs_up == "after a while":
                assert not state.dead and not state.unwelcome and not state.failed
        assert state.unwelcome == (hangs_up == "at once")
        state.close()


# ---- noise -----------------------------------------------------------------------------------


def noise(dice: random.Random) -> bytes:
    """What a stranger might send."""
    rest = dice.randbytes(dice.randrange(400))
    kinds = [
        b"",
        dice.randbytes(1),
        GREETING[: dice.randrange(64)],
        b"GET / HTTP/1.1\r\n\r\n",
        GREETING + claim(dice.getrandbits(64)),
        GREETING + b"\x04" + bytes([min(255, len(rest))]) + b"\x05HELLO",
        GREETING.replace(b"CURVE", dice.choice([b"NULL\0", b"PLAIN"])) + b"\x04\x19\x05READY",
        bytes([dice.randrange(256)]).join([GREETING[:32], GREETING[32:]]),
    ]
    return dice.choice(kinds) + rest


def test_noise_disturbs_nobody(address: str, effort: int) -> None:
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    for _ in range(100 * effort):
        with connect(address) as stranger, contextlib.suppress(ConnectionError):
            stranger.sendall(noise(dice))
            if dice.random() < 0.2:
                stranger.settimeout(0.01)
                with contextlib.suppress(TimeoutError):
                    stranger.recv(100)


def test_what_was_overheard_cannot_be_said_again(
    join: Callable[..., Endpoint], impostor: Callable[..., Impostor], effort: int
) -> None:
    a, b = join("A"), join("B")
    a.send(dest="B", n=0)
    assert b.recv().n == 0
    port = int(member(b, "B").address.rpartition(":")[2])
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        fake = impostor(b, a)
        fake._dealer.disconnect(member(b, "B").address)
        fake._dealer.connect(f"tcp://127.0.0.1:{listener.getsockname()[1]}")
        fake.put(b"D", 2, sfm_kernel.message.encode(dest="B", src="A", n=1))
        with listener.accept()[0] as client, socket.create_connection(("127.0.0.1", port)) as wire:
            while not b.peek(n=1):
                for one in select.select([client, wire], [], [], 0.05)[0]:
                    data = one.recv(1 << 16)
                    (wire if one is client else client).sendall(data)
                    heard += [data] if one is client else []
        assert b.recv(n=1).n == 1
    assert b"".join(heard)[:64].startswith(b"\xff")
    for _ in range(10 * effort):
        with connect(member(b, "B").address) as wire, contextlib.suppress(ConnectionError):
            for part in heard:
                wire.sendall(part)
                wire.settimeout(0.02)
                with contextlib.suppress(TimeoutError):
                    wire.recv(4096)
    assert not b.peek()


def test_an_address_does_not_steer_the_terminal(
    join: Callable[..., Endpoint],
    impostor: Callable[..., Impostor],
    capfd: pytest.CaptureFixture[str],
) -> None:
    b, a = join("B"), join("A")
    fake = impostor(b, a)
    fake.put(b"G", 0, b"tcp://127.0.0.1:1\x1b]0;owned\x07\x9b31m")
    fake.put(b"D", 2)  # a gap: it is told of
    text = ""
    while "lost" not in text:
        text += capfd.readouterr().err
        threading.Event().wait(0.01)
    assert "\x1b" not in text and "\x07" not in text and "\\x1b]0;owned" in text
    assert str(sfm_kernel.WorldGone("no server at \x1b[31mred")) == "no server at \\x1b[31mred"
