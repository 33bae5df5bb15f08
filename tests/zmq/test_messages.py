"""What connections do to messages: in order, complete, once. (All transports alike: contract/.)"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel import Endpoint, PeerLost
from tests.zmq.conftest import Impostor, line, link, repeat, wait_until

pytestmark = pytest.mark.zmq


# ---- in order, complete, once ----------------------------------------------------------------


def packet(**attributes: object) -> bytes:
    return sfm_kernel.message.encode(dest="B", src="A", **attributes)


def test_what_is_no_message_is_passed_over(
    join: Callable[..., Endpoint], impostor: Callable[..., Impostor]
) -> None:
    b, a = join("B"), join("A")
    fake = impostor(b, a)
    fake.put(b"D", 1, packet(n="before it greeted"))
    fake.greet()
    fake.put_frames(b"")
    fake.put_frames(b"D" * 100)
    fake.put_frames(fake.header.pack(b"?", False, b"", b"", 1))
    fake.put_frames(b"two", b"frames")
    fake.put(b"D", 1, packet(n=1))
    assert b.recv(src="A").n == 1


def test_a_large_message_in_parts(
    join: Callable[..., Endpoint], impostor: Callable[..., Impostor]
) -> None:
    b, a = join("B"), join("A")
    fake, large = impostor(b, a), packet(data=bytes(range(200)) * 20)
    length = len(large).to_bytes(8, "little")
    fake.greet()
    fake.put(b"F", 1, length + large[:1000])
    fake.put(b"X", 2)  # interrupted: forgotten
    fake.put(b"F", 3, length + large[:1000])
    fake.put(b"D", 4, packet(n="between"))  # of another thread
    fake.put(b"P", 5, large[1000:])
    assert b.recv(src="A").n == "between"
    assert b.recv(src="A").data == bytes(range(200)) * 20


def test_large_messages_of_several_threads(join: Callable[..., Endpoint]) -> None:
    a, b = join("A"), join("B")

    def send(thread: int) -> None:
        for n in range(3):
            a.send(dest="B", thread=thread, n=n, data=np.full(700_000, thread))
            a.send(dest="B", thread=thread, n=n, small=True)

    threads = [threading.Thread(target=send, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for number in range(3):
        for n in range(3):
            message = b.recv(thread=number)
            assert message.n == n and (message.data == number).all()
            message = b.recv(thread=number)
            assert message.n == n and message.small
    for thread in threads:
        thread.join()


@pytest.mark.parametrize(
    "frames",
    [
        pytest.param([(b"D", b"no packet")], id="no packet"),
        pytest.param([(b"P", b"of nothing")], id="a part of nothing"),
        pytest.param([(b"F", b"short")], id="no length"),
        pytest.param([(b"F", b"\xff" * 8 + packet(n=1))], id="a wrong length"),
        pytest.param([(b"F", len(packet(n=1)).to_bytes(8, "little") + packet(n=1)[:50]),
                      (b"P", bytes(1000))], id="too much"),
    ],
)  # fmt: skip
def test_damage_ends_the_conversation(
    frames: list[tuple[bytes, bytes]],
    join: Callable[..., Endpoint],
    impostor: Callable[..., Impostor],
    capfd: pytest.CaptureFixture[str],
) -> None:
    b, a = join("B"), join("A")
    a.send(dest="B", n=0)
    assert b.recv(src="A").n == 0
    fake = impostor(b, a)
    for number, (kind, body) in enumerate(frames, 2):
        fake.put(kind, number, body)
    with pytest.raises(PeerLost, match="'A'"):
        b.recv(src="A")
    with pytest.raises(PeerLost):
        repeat(lambda: a.send(dest="B", n=3))
    assert "damaged" in capfd.readouterr().err


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
        size = tried * 7919 % 100_000 * (40 if tried % 10 == 0 else 1)  # some in parts
        sfm.send(dest="B", n=tried, data=bytes(size))
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
    join: Callable[..., Endpoint],
    impostor: Callable[..., Impostor],
    capfd: pytest.CaptureFixture[str],
) -> None:
    a, b = join("A"), join("B")
    a.send(dest="B", n=0)
    assert b.recv(src="A").n == 0
    impostor(b, a).put(b"D", 3, packet(n=2))  # as if ZeroMQ had dropped a message
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
        before = line(a, "B")
        assert before.breaks == n
        cut(a, link(a, "B").address)
        wait_until(lambda: before.breaks == n + 1 and link(a, "B").up)  # noqa: B023


def test_an_acknowledgement_that_a_break_swallowed_comes_again(
    join: Callable[..., Endpoint],
) -> None:
    a, b = join("A"), join("B")
    b.send(dest="A")
    a.recv()
    a.send(dest="B", n=1)
    assert b.recv().n == 1
    assert link(a, "B").waiting, "acknowledged too early for this test"
    cut(b, link(b, "A").address)
    wait_until(lambda: not link(a, "B").waiting)


def test_what_a_break_swallowed_is_noticed_without_another_message(
    join: Callable[..., Endpoint], impostor: Callable[..., Impostor]
) -> None:
    a, b = join("A"), join("B")
    a.send(dest="B", n=0)
    assert b.recv(src="A").n == 0
    impostor(b, a).greet(2)  # the last message went down with the connection
    with pytest.raises(PeerLost):
        b.recv(src="A")
    with pytest.raises(PeerLost):
        repeat(lambda: a.send(dest="B", n=1))


ALTERNATELY = """
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
for _ in range(5):
    sfm.recv()
    sfm.recv()
    time.sleep(0.5)
    sfm.recv(8)  # less than the network thread sleeps
    sfm.send(dest="A")
"""


def test_a_thread_that_received_and_computes_leaves_the_socket_to_others(
    join: Callable[..., Endpoint], process: Callable[..., subprocess.Popen[str]]
) -> None:
    a = join("A")
    b = process("B", ALTERNATELY)
    for _ in range(5):
        for pause in (0.02, 1.0, 0):
            a.send(dest="B")
            time.sleep(pause)
        a.recv(20, src="B")
    assert b.wait(20) == 0


def test_acknowledgements_come_for_the_last_small_message_too(
    join: Callable[..., Endpoint],
) -> None:
    a, b = join("A", buffering=100_000), join("B")
    for n in range(50):
        a.send(dest="B", n=n)
        assert b.recv().n == n
        a.send(dest="B", n=n, large=bytes(200_000))  # waits until all before was received
        assert len(b.recv(n=n).large) == 200_000
