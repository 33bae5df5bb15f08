"""ZeroMQ: what connections, keys and crashes do. What all transports do alike is in contract/."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq

import sfm_kernel
from sfm_kernel import Endpoint, EndpointClosed, PeerLost, WorldAccess
from sfm_kernel._native import Inbox, Outflow
from sfm_kernel.directory import DirectoryServer
from sfm_kernel.directory.folders import is_alive
from sfm_kernel.transport.base import Member
from sfm_kernel.transport.zmq import ZmqTransport
from sfm_kernel.transport.zmq.link import Link

pytestmark = pytest.mark.zmq

PRELUDE = """
import os, signal, sys, threading, time
import sfm_kernel
from sfm_kernel import *
sfm = sfm_kernel.join(sys.argv[1], sys.argv[2])
print("joined", flush=True)
"""


@pytest.fixture(autouse=True)
def over_zmq(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFM_TRANSPORT", "zmq")


@pytest.fixture
def join(world: str) -> Iterator[Callable[..., Endpoint]]:
    """Joins the test's world in this process."""
    with contextlib.ExitStack() as stack:
        yield lambda *args, **kwargs: stack.enter_context(sfm_kernel.join(world, *args, **kwargs))


@pytest.fixture
def process(world: str) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts processes that join as ``name`` and run ``code``; returns when they have joined."""
    started: list[subprocess.Popen[str]] = []

    def start(name: str, code: str, **env: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PRELUDE + code, world, name]
        pipe = subprocess.PIPE
        one = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, text=True, bufsize=1, env={**os.environ, **env}
        )
        started.append(one)
        assert one.stdout is not None
        assert one.stdout.readline() == "joined\n"
        return one

    yield start
    for one in started:
        one.kill()
        with one:
            pass


def transport(endpoint: Endpoint) -> ZmqTransport:
    (found,) = (one for one in endpoint._transports if isinstance(one, ZmqTransport))
    return found


def member(endpoint: Endpoint, name: str) -> Member:
    return next(one for one in endpoint.members() if one.name == name)


def link(endpoint: Endpoint, name: str) -> Link:
    return transport(endpoint).links[member(endpoint, name).uid]


def repeat(call: Callable[[], object]) -> None:
    """Until it raises."""
    while True:
        call()


def wait_until(condition: Callable[[], object]) -> None:
    while not condition():
        time.sleep(0.005)


# ---- in order, complete, once ----------------------------------------------------------------


def test_a_message_that_was_sent_twice_arrives_once(join: Callable[..., Endpoint]) -> None:
    a, b = join("A"), join("B")
    a.send(dest="B", n=0)
    to_b = link(a, "B")
    packet = sfm_kernel.message.pack({"dest": "B", "src": "A", "n": "twice"})
    with to_b._lock:
        to_b._outbox.extend([(False, packet, 2), (False, packet, 2)])
    next(to_b._numbers)
    to_b.flush()
    a.send(dest="B", n="last")
    assert [b.recv().n for _ in range(3)] == [0, "twice", "last"]


def test_a_header_without_body_is_passed_over(join: Callable[..., Endpoint]) -> None:
    a, b = join("A"), join("B")
    a.send(dest="B", n=0)
    to_b = link(a, "B")
    wait_until(lambda: to_b.is_up)
    with to_b._lock:
        assert to_b.line is not None
        to_b.line.dealer.send(bytes(42), zmq.SNDMORE)
    a.send(dest="B", n=1)
    assert [b.recv().n for _ in range(2)] == [0, 1]


@pytest.mark.fault
def test_interrupts_lose_and_repeat_nothing(
    join: Callable[..., Endpoint], process: Callable[..., subprocess.Popen[str]], effort: int
) -> None:
    code = f"""
armed, sent, tried = False, [], 0

def interrupt(*_):
    global armed
    if armed:
        armed = False
        raise KeyboardInterrupt

def disturb():
    while tried < {2000 * effort}:
        time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, interrupt)
threading.Thread(target=disturb, daemon=True).start()
while tried < {2000 * effort}:
    tried += 1
    try:
        armed = True
        sfm.send(dest="B", n=tried, data=bytes(tried * 7919 % 100_000))
        armed = False
        sent.append(tried)
    except KeyboardInterrupt:
        pass
sfm.buffering = 0  # returns only if the account of what was received is exact
sfm.send(dest="B", sent=sent)
"""
    b = join("B")
    process("A", code)
    got: list[int] = []
    while "sent" not in (message := b.recv(src="A")):
        got.append(message.n)
    assert got == sorted(set(got))
    assert set(message.sent) <= set(got)


def test_a_gap_is_noticed_on_both_sides(
    join: Callable[..., Endpoint], capfd: pytest.CaptureFixture[str]
) -> None:
    a, b = join("A"), join("B")
    a.send(dest="B", n=0)
    next(link(a, "B")._numbers)  # as if ZeroMQ had dropped a message
    a.send(dest="B", n=2)
    assert b.recv(src="A").n == 0
    with pytest.raises(PeerLost, match="'A'"):
        b.recv(src="A")
    with pytest.raises(PeerLost, match="lost on the way"):
        repeat(lambda: a.send(dest="B", n=3))
    assert "lost on the way" in capfd.readouterr().err


def cut(endpoint: Endpoint, address: str) -> None:
    """Break this process's connection to ``address``, as a failing network does."""
    host, port = address.removeprefix("tcp://").split(":")
    for fd in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):
            if not stat.S_ISSOCK(os.fstat(fd).st_mode):
                continue
            with socket.socket(fileno=os.dup(fd)) as connection:
                if connection.getpeername() == (host, int(port)):
                    connection.shutdown(socket.SHUT_RDWR)


def test_a_connection_that_breaks_is_made_again(join: Callable[..., Endpoint]) -> None:
    a, b = join("A"), join("B")
    for n in range(5):
        a.send(dest="B", n=n)
        assert b.recv(src="A").n == n
        before = link(a, "B").line
        assert before is not None and before.breaks == n
        cut(a, link(a, "B").address)
        wait_until(lambda line=before, n=n: line.breaks == n + 1 and line.up)  # type: ignore[misc]


def test_what_a_break_swallowed_is_noticed_without_another_message(
    join: Callable[..., Endpoint],
) -> None:
    a, b = join("A"), join("B")
    a.send(dest="B", n=0)
    assert b.recv(src="A").n == 0
    link(a, "B")._last += 1  # the last message went down with the connection
    cut(a, link(a, "B").address)
    with pytest.raises(PeerLost):
        b.recv(src="A")
    with pytest.raises(PeerLost):
        repeat(lambda: a.send(dest="B", n=1))


def test_acknowledgements_come_for_the_last_small_message_too(
    join: Callable[..., Endpoint],
) -> None:
    a, b = join("A", buffering=100_000), join("B")
    for n in range(50):
        a.send(dest="B", n=n)
        assert b.recv().n == n
        a.send(dest="B", n=n, large=bytes(200_000))  # waits until all before was received
        assert len(b.recv(n=n).large) == 200_000


# ---- death -----------------------------------------------------------------------------------

FOREVER = "threading.Event().wait()"


@pytest.mark.fault
def test_the_sender_is_killed(
    join: Callable[..., Endpoint], process: Callable[..., subprocess.Popen[str]]
) -> None:
    b = join("B")
    a = process("A", "for n in range(1000): sfm.send(dest='B', n=n)\n" + FOREVER)
    b.recv(n=500)
    a.kill()
    with pytest.raises(PeerLost, match="'A'"):
        repeat(lambda: b.recv(src="A"))


@pytest.mark.fault
def test_the_receiver_is_killed(
    join: Callable[..., Endpoint], process: Callable[..., subprocess.Popen[str]]
) -> None:
    a = join("A", buffering=1000)
    b = process("B", FOREVER)
    a.send(dest="B", n=0, data=bytes(1000))
    threading.Timer(0.2, b.kill).start()
    with pytest.raises(PeerLost, match="'B'"):
        a.send(dest="B", n=1, data=bytes(1000))
    with pytest.raises(PeerLost):
        a.send(dest="B", n=2)


@pytest.mark.fault
def test_a_stopped_process_is_waited_for(
    join: Callable[..., Endpoint], process: Callable[..., subprocess.Popen[str]]
) -> None:
    a = join("A")
    b = process("B", "sfm.send(dest='A', n=sfm.recv().n + 1)\n" + FOREVER)
    b.send_signal(signal.SIGSTOP)
    a.send(dest="B", n=1)  # connects to the stopped process
    with pytest.raises(sfm_kernel.RecvTimeout):
        a.recv(1.5, src="B")
    assert not transport(a).lost(member(a, "B"))
    b.send_signal(signal.SIGCONT)
    assert a.recv(src="B").n == 2


@pytest.mark.fault
def test_a_forked_child_does_not_keep_the_dead_alive(
    join: Callable[..., Endpoint], process: Callable[..., subprocess.Popen[str]]
) -> None:
    a = join("A")
    code = """
sfm.send(dest="A", n=1)
sfm.recv()
pid = os.fork()
if pid == 0:
    try:
        sfm.send(dest="A", n="child")
    except EndpointClosed:
        sys.stdin.read()
    os._exit(0)
sfm.send(dest="A", n=2)
threading.Event().wait()
"""
    b = process("B", code)
    a.recv(n=1)
    a.send(dest="B", go=True)
    a.recv(n=2)
    to_b = link(a, "B")
    b.kill()
    wait_until(lambda: to_b.lost is not None)  # the connection itself tells, not the directory
    with pytest.raises(PeerLost):
        a.recv(src="B")
    assert b.stdin is not None
    b.stdin.close()  # ends the child
    wait_until(lambda: not is_alive(member(a, "B").segment))


def test_who_leaves_is_gone_at_once(join: Callable[..., Endpoint]) -> None:
    a, b = join("A"), join("B")
    a.send(dest="B", n=0)
    b.recv()
    b.close()
    with pytest.raises(PeerLost, match="'B'"):
        a.send(dest="B", n=1)


# ---- machines --------------------------------------------------------------------------------


@pytest.fixture
def machines(
    world: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DirectoryServer]:
    """A world of a directory server; each process that gets another SFM_DIR is elsewhere."""
    with DirectoryServer(world, os.urandom(32), "tcp://127.0.0.1:0") as server:
        monkeypatch.delenv("SFM_TRANSPORT")  # ZeroMQ is chosen because nothing else reaches
        monkeypatch.setenv("SFM_DIRECTORY", server.url)
        monkeypatch.setenv("SFM_KEY", server.key.hex())
        monkeypatch.setenv("SFM_DIR", str(tmp_path / "here"))
        yield server


@pytest.mark.fault
def test_between_machines(
    machines: DirectoryServer,
    join: Callable[..., Endpoint],
    process: Callable[..., subprocess.Popen[str]],
    tmp_path: Path,
) -> None:
    a = join("A")
    echo = "while True: sfm.send(dest='A', n=sfm.recv(src='A').n)"
    there = process("B", echo, SFM_DIR=str(tmp_path / "there"))
    process("C", echo)
    assert (a.route_kind("B"), a.route_kind("C")) == ("zmq", "shm")
    for n in range(100):
        if n == 50:
            machines.close()  # who knows each other goes on
        for dest in ("B", "C"):
            a.send(dest=dest, n=n)
            assert a.recv(src=dest).n == n
    there.kill()
    with pytest.raises(PeerLost, match="'B'"):
        a.recv(src="B")
    a.send(dest="C", n="still")
    assert a.recv(src="C").n == "still"


@pytest.mark.fault
def test_the_death_of_a_silent_process_on_another_machine(
    machines: DirectoryServer,
    join: Callable[..., Endpoint],
    process: Callable[..., subprocess.Popen[str]],
    tmp_path: Path,
) -> None:
    a = join("A")
    there = process("B", FOREVER, SFM_DIR=str(tmp_path / "there"))
    threading.Timer(0.2, there.kill).start()
    with pytest.raises(PeerLost, match="'B'"):
        a.recv(src="B")
    again = process("B", "sfm.send(dest='A', rank=sfm.rank)\n" + FOREVER)
    assert a.recv(src="B").rank == 1
    assert again.poll() is None


# ---- keys ------------------------------------------------------------------------------------


def test_a_stranger_is_refused(join: Callable[..., Endpoint], world: str) -> None:
    a = join("A")
    with sfm_kernel.join(world + "-2", "stranger") as stranger:
        route = transport(stranger).route(member(a, "A"), lambda: True)
        assert route is not None
        packet = sfm_kernel.message.pack({"dest": "A", "src": "stranger", "evil": True})
        route.send(packet, 1 << 20)  # waits in the outbox for a connection
        with pytest.raises(PeerLost, match="key"):
            repeat(lambda: route.send(packet, 0))
    assert not a.peek()


def test_no_transport_without_a_secret() -> None:
    for key in (b"", b"short"):
        with pytest.raises(WorldAccess):
            ZmqTransport(Inbox(None), key, "0" * 32)


def test_what_is_meant_for_a_former_owner_of_the_port_is_dropped(
    join: Callable[..., Endpoint],
) -> None:
    a, b = join("A"), join("B")
    dead = "d" * 32
    former = transport(a).link(dead, member(a, "B").address)
    former.outflow = Outflow(transport(a).inbox, "dead")
    former.send(sfm_kernel.message.pack({"dest": "dead", "src": "A", "n": 1}), 1 << 20, print)
    wait_until(lambda: former.is_up)
    a.send(dest="B", n=2)
    assert b.recv().n == 2
    assert not b.peek()


# ---- what it costs ---------------------------------------------------------------------------


def test_what_was_sent_before_closing_arrives(
    join: Callable[..., Endpoint], process: Callable[..., subprocess.Popen[str]]
) -> None:
    b = join("B")
    a = process(
        "A", "for n in range(50): sfm.send(dest='B', n=n, data=bytes(100_000))\nsfm.close()"
    )
    assert a.wait() == 0
    assert [b.recv().n for _ in range(50)] == list(range(50))


def test_closing_both_sides_at_once(world: str) -> None:
    a, b = sfm_kernel.join(world, "A"), sfm_kernel.join(world, "B")
    for n in range(10):
        a.send(dest="B", n=n)
        b.send(dest="A", n=n)
    threads = [threading.Thread(target=one.close) for one in (a, b)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_call_that_is_blocked_while_the_own_endpoint_closes(
    join: Callable[..., Endpoint],
) -> None:
    a, _ = join("A", buffering=1000), join("B")
    a.send(dest="B", data=bytes(1000))
    threading.Timer(0.1, a.close).start()
    with pytest.raises((EndpointClosed, PeerLost)):
        a.send(dest="B", data=bytes(1000))


def test_nothing_stays_open(world: str) -> None:
    def once() -> int:
        with sfm_kernel.join(world, "A") as a, sfm_kernel.join(world, "B") as b:
            for n in range(3):
                a.send(dest="B", n=n, data=bytes(200_000))
                b.recv()
        gc.collect()  # an endpoint and its network thread's callbacks refer to each other
        return len(os.listdir("/proc/self/fd"))

    first = once()  # pyzmq's own thread for buffers without copies has come
    threads = threading.active_count()
    for _ in range(3):
        assert once() <= first
    assert threading.active_count() <= threads


def test_zmq_is_not_imported_before_it_is_needed(world: str) -> None:
    code = """
import sys, sfm_kernel
with sfm_kernel.join(sys.argv[1]) as a, sfm_kernel.join(sys.argv[1]) as b:
    a.send(dest=1, n=1)
    b.recv(src=0)
assert "zmq" not in sys.modules
"""
    env = {**os.environ, "SFM_TRANSPORT": "shm"}
    subprocess.run([sys.executable, "-c", code, world], check=True, env=env)
