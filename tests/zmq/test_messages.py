"""What connections do to messages: in order, complete, once. (All transports alike: contract/.)"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import subprocess
from collections.abc import Callable

import pytest
import zmq

import sfm_kernel
from sfm_kernel import Endpoint, PeerLost
from tests.zmq.conftest import link, repeat, wait_until

pytestmark = pytest.mark.zmq


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
