"""Connections deliver messages in order, complete and once. (All transports alike: contract/.)"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from sfm_kernel import PeerLost
from tests.waiting import wait_until
from tests.zmq import wire
from tests.zmq.by_hand import Impostor
from tests.zmq.conftest import Join, Pose, Start, link, packet, repeat, unpacked
from tests.zmq.sockets import cut, port

pytestmark = pytest.mark.zmq


# ---- in order, complete, once ----------------------------------------------------------------


@pytest.mark.parametrize("ends", ["fake", "far"])
def test_it_speaks_as_it_is_written(ends: str, request: pytest.FixtureRequest) -> None:
    """A conversation, both ways, with a second implementation: within a site, and between two."""
    fake: Impostor = request.getfixturevalue(ends)
    largest, times = (wire.LARGEST_CLEAR, 10_000) if ends == "fake" else (wire.LARGEST, 600)
    b, large = fake.receiver, packet(data=bytes(range(256)) * times)
    fake.greet()
    fake.put(b"D", 1, packet(n=1))
    first = largest - 8
    fake.put(b"F", 2, len(large).to_bytes(8, "little") + large[:first])
    chunks = [large[i : i + largest] for i in range(first, len(large), largest)]
    for number, chunk in enumerate(chunks, 3):
        fake.put(b"P", number, chunk)
    assert fake.hears(b"W").number == 0
    assert b.recv(src="A").n == 1
    assert b.recv(src="A").data == bytes(range(256)) * times
    while fake.hears(b"R").arrived < 2 + len(chunks):
        pass
    b.send(dest="A", n="answer")
    frame = fake.hears(b"D")
    assert frame.number == 1 and frame.arrived == 2 + len(chunks)
    assert unpacked(frame.body).n == "answer"
    b.send(dest="A", data=bytes(largest + 40_000))
    frame = fake.hears(b"F")
    length = int.from_bytes(frame.body[:8], "little")
    assert frame.number == 2 and length == len(frame.body) - 8 + frame.ahead
    body = frame.body[8:] + fake.hears(b"P").body
    assert len(body) == length
    assert unpacked(body).data == bytes(largest + 40_000)
    fake.put(b"B")
    with pytest.raises(PeerLost):
        b.recv(src="A")


def sealed(*args: Any, **other: Any) -> Callable[[Impostor], bytes]:
    return lambda fake: fake.pair.seal(wire.Frame(*args, **other))


def changed(fake: Impostor) -> bytes:
    frame = fake.pair.seal(wire.Frame(b"."))
    return frame[:-20] + bytes([frame[-20] ^ 4]) + frame[-19:]


def with_another_key(fake: Impostor) -> bytes:
    return other(fake, bytes(32), fake.pair.peer).seal(wire.Frame(b"H"))


def for_somebody_else(fake: Impostor) -> bytes:
    return other(fake, fake.secret, "7" * 32).seal(wire.Frame(b"D", 1, packet(n=1)))


def clear_of_elsewhere(fake: Impostor) -> bytes:
    pair = other(fake, fake.secret, fake.pair.peer)
    pair.clear = not pair.clear
    return pair.seal(wire.Frame(b"H"))


def other(fake: Impostor, secret: bytes, peer: str) -> wire.Pair:
    return wire.Pair(secret, fake.pair.own, peer, sites=("elsewhere", ""), counter=1 << 41)


NONSENSE = {
    "zeros": lambda fake: bytes(100),
    "another protocol": lambda fake: b"GET / HTTP/1.1\r\nHost: here\r\n\r\n" * 5,
    "an unknown kind": sealed(b"?"),
    "an unknown class": sealed(b".", klass=7),
    "a changed bit": changed,
    "for somebody else": for_somebody_else,
    "another key": with_another_key,
    "clear, of another site": clear_of_elsewhere,
}


@pytest.mark.parametrize("nonsense", NONSENSE.values(), ids=NONSENSE)
@pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
def test_nonsense_ends_its_connection_and_nothing_else(
    nonsense: Callable[[Impostor], bytes], first: bool, far: Impostor
) -> None:
    fake, b = far, far.receiver
    if not first:
        fake.greet()
        fake.put(b"D", 1, packet(n=1))
        assert b.recv(src="A").n == 1
    fake.connection.send(nonsense(fake))
    fake.is_hung_up_on()
    fake.again()
    fake.greet()
    fake.put(b"D", 1, packet(n=1))
    fake.put(b"D", 2, packet(n=2))
    assert b.recv(src="A", n=2).n == 2
    assert b.peek() == first


def test_a_message_before_the_greeting_is_not_taken_in(fake: Impostor) -> None:
    b = fake.receiver
    fake.put(b"D", 1, packet(n="before it greeted"))
    fake.is_hung_up_on()
    assert not b.peek()


def test_a_large_message_in_parts(fake: Impostor) -> None:
    b, large = fake.receiver, packet(data=bytes(range(200)) * 20)
    length = len(large).to_bytes(8, "little")
    fake.greet()
    fake.put(b"F", 1, length + large[:1000])
    fake.put(b"X", 2)  # interrupted: forgotten
    fake.put(b"F", 3, length + large[:1000])
    fake.put(b"D", 4, packet(n="between"))  # another thread's message
    fake.put(b"P", 5, large[1000:])
    assert b.recv(src="A").n == "between"
    assert b.recv(src="A").data == bytes(range(200)) * 20


def test_large_messages_of_several_threads(join: Join) -> None:
    a, b = join("A"), join("B")

    def send(thread: int) -> None:
        for n in range(3):
            a.send(dest="B", thread=thread, n=n, data=np.full(700_000, thread))
            a.send(dest="B", thread=thread, n=n, small=True)

    with ThreadPoolExecutor(3) as pool:
        sending = pool.map(send, range(3))
        for number in range(3):
            for n in range(3):
                message = b.recv(thread=number)
                assert message.n == n and (message.data == number).all()
                message = b.recv(thread=number)
                assert message.n == n and message.small
        list(sending)


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
    frames: list[tuple[bytes, bytes]], join: Join, impostor: Pose, capfd: pytest.CaptureFixture[str]
) -> None:
    b, a = join("B"), join("A")
    a.send(dest="B", n=0)
    assert b.recv(src="A").n == 0
    fake = impostor(b, a)
    fake.greet()
    for number, (kind, body) in enumerate(frames, 2):
        fake.put(kind, number, body)
    with pytest.raises(PeerLost, match="'A'"):
        b.recv(src="A")
    with pytest.raises(PeerLost):
        repeat(lambda: a.send(dest="B", n=3))
    assert "damaged" in capfd.readouterr().err


@pytest.mark.fault
def test_interrupts_lose_and_repeat_nothing(join: Join, process: Start, effort: int) -> None:
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


# ---- connections that break ------------------------------------------------------------------


def test_a_connection_that_breaks_is_made_again(join: Join) -> None:
    a, b = join("A"), join("B")
    for n in range(20):
        a.send(dest="B", n=n)
        if n % 3:
            b.send(dest="A", n=n)
            assert a.recv(src="B").n == n
        assert b.recv(src="A").n == n
        assert cut(port(a), port(b)) > 0
    wait_until(lambda: link(a, "B").up and link(b, "A").up)


def test_a_break_in_the_middle_of_a_large_message(join: Join) -> None:
    a, b = join("A"), join("B")
    a.send(dest="B", n=0)
    b.recv(n=0)
    over = threading.Event()

    def disturb() -> None:
        while not over.is_set():
            if link(a, "B").up:  # on a busy machine it takes its time
                cut(port(a), port(b))
            over.wait(0.05)

    disturbing = threading.Thread(target=disturb)
    disturbing.start()
    sent = np.frombuffer(secrets.token_bytes(20_000_000), dtype=np.uint8)
    sending = threading.Thread(target=lambda: a.send(dest="B", data=sent, n=1))
    sending.start()
    try:
        assert np.array_equal(b.recv(n=1).data, sent)
    finally:
        over.set()
        for thread in (disturbing, sending):
            thread.join()


def test_an_acknowledgement_that_a_break_swallowed_comes_again(join: Join) -> None:
    a, b = join("A"), join("B")
    b.send(dest="A")
    a.recv()
    a.send(dest="B", n=1)
    assert b.recv().n == 1
    assert link(a, "B").waiting, "acknowledged too early for this test"
    cut(port(a), port(b))
    wait_until(lambda: not link(a, "B").waiting)


# ---- who receives ----------------------------------------------------------------------------

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
    join: Join, process: Start
) -> None:
    a = join("A")
    b = process("B", ALTERNATELY)
    for _ in range(5):
        for pause in (0.02, 1.0, 0):
            a.send(dest="B")
            time.sleep(pause)
        a.recv(20, src="B")
    assert b.wait(20) == 0


def test_acknowledgements_come_for_the_last_small_message_too(join: Join) -> None:
    a, b = join("A", buffering=100_000), join("B")
    for n in range(50):
        a.send(dest="B", n=n)
        assert b.recv().n == n
        a.send(dest="B", n=n, large=bytes(200_000))  # waits until all before was received
        assert len(b.recv(n=n).large) == 200_000
