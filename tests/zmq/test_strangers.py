"""A stranger without the world's key who reaches a member can do nothing that others notice."""

from __future__ import annotations

import contextlib
import itertools
import random
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

import sfm_kernel
from sfm_kernel import Endpoint, PeerLost
from sfm_kernel._native import Member
from sfm_kernel.transport.keys import KeyPair
from tests.waiting import wait_until
from tests.zmq import wire
from tests.zmq.by_hand import Impostor, dealer
from tests.zmq.conftest import (
    NOBODY,
    Join,
    Pose,
    link,
    link_to,
    member,
    packet,
    repeat,
    transport,
)
from tests.zmq.ear import GREETING, Ear, frames
from tests.zmq.sockets import connect
from tests.zmq.strangers import (
    FEW,
    assert_not_taken_in,
    command,
    crowd,
    disturb,
    greeting,
    hung_up,
    pour,
    running,
    said,
)

pytestmark = pytest.mark.zmq

HELLO = 2 + 200
"""Bytes of the first command of a member that connects."""


@pytest.fixture
def talking(join: Join) -> Iterator[Endpoint]:
    """A process that talks with another, whatever a stranger has done to it."""
    a, b = join("A"), join("B")
    b.send(dest="A", n=1)
    assert a.recv().n == 1
    yield a
    b.send(dest="A", n=2)
    assert a.recv().n == 2
    assert not a.peek()


@pytest.fixture
def address(talking: Endpoint) -> str:
    """Its address."""
    return member(talking, "A").address


@pytest.fixture
def hello(talking: Endpoint) -> bytes:
    """What a member that connects says first: a greeting, and HELLO, which the other answers."""
    said, to = b"", member(talking, "A")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        with (
            dealer(Member.from_json(to.to_json() | {"address": address}), talking._directory.pair),
            listener.accept()[0] as server,
        ):
            server.sendall(greeting())
            while len(said) < GREETING + HELLO:
                said += server.recv(1 << 10)
    return said


@pytest.mark.parametrize("length", [1 << 40, 1 << 31, 200])
def test_a_command_without_end_is_not_taken_in(address: str, length: int) -> None:
    """Not one that is too long for any frame, and not one of a proper length that never ends."""
    assert_not_taken_in(address, greeting() + command(length))


def test_a_connecting_process_takes_no_command_without_end_either(join: Join) -> None:
    a = join("A")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        link_to(a, f"tcp://127.0.0.1:{listener.getsockname()[1]}")
        with listener.accept()[0] as fake:
            assert pour(fake, greeting() + command(1 << 31)) < 64 << 20


@pytest.mark.parametrize("length", [1 << 25, 600])
def test_a_member_is_not_heard_that_begins_with_a_long_frame(
    talking: Endpoint, length: int
) -> None:
    """Not one that is too long, and not a long one as the first."""
    with dealer(member(talking, "A"), talking._directory.pair) as fake:
        fake.send(bytes(length))
        with pytest.raises(EOFError):
            fake.receive()


def test_a_stranger_that_does_not_show_the_key_is_dropped(address: str, hello: bytes) -> None:
    with connect(address) as silent, connect(address) as slow, connect(address) as halfway:
        slow.sendall(greeting()[:50])
        halfway.sendall(hello)  # HELLO without INITIATE
        assert hung_up(silent) and hung_up(slow) and hung_up(halfway)


@pytest.mark.parametrize("whose", ["a fresh pair", "another world's"])
def test_a_foreign_key_is_refused(whose: str, talking: Endpoint, world: str) -> None:
    """Though it knows the public half of the member's."""
    with contextlib.ExitStack() as stack:
        pair = KeyPair.fresh()
        if "world" in whose:
            pair = stack.enter_context(sfm_kernel.join(world + "-2"))._directory.pair
        stranger = stack.enter_context(dealer(member(talking, "A"), pair))
        stranger.send(b"let me in")
        with pytest.raises(EOFError):
            stranger.receive()


def test_a_member_speaks_in_no_other_name(join: Join, impostor: Pose) -> None:
    a, b, c = join("A"), join("B"), join("C")
    fake = impostor(a, b)
    fake.keys = c._directory.pair
    fake.again()
    fake.greet()
    fake.put(b"D", 1, packet(n="from B?"))
    fake.is_hung_up_on()
    assert not a.peek()
    c.send(dest="A", n="from C")
    assert a.recv().src == "C"


def test_a_member_that_is_put_out_is_cut_off_and_not_let_in_again(join: Join) -> None:
    a, b = join("A"), join("B")
    b.send(dest="A", n=1)
    assert a.recv().n == 1
    transport(a).exchange.expel(b.uid, "(it was put out)")
    with pytest.raises(PeerLost):
        repeat(lambda: a.send(dest="B", n=2))
    assert link(a, "B").lost == "(it was put out)"
    entry = member(a, "B")
    transport(a).exchange.announce([(entry.uid, entry.public)])  # by who has not heard of it yet
    wait_until(lambda: transport(b).silence(member(b, "A")) is not None)
    assert not a.peek()


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
        assert "have not shown a member's key" in said(victim)


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


@pytest.mark.parametrize("pauses", [[], [1.7] * 4, [0.45] * 5], ids=["at once", "late", "reset"])
def test_a_peer_without_time_for_our_key_does_not_refuse_it(
    pauses: list[float], join: Join
) -> None:
    a = join("A")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        to_it = link_to(a, url)
        listener.settimeout(20)
        for pause in pauses:  # it is stopped, and a firewall that was restarted resets connections
            with listener.accept()[0]:
                time.sleep(pause)
        assert to_it.lost is None
        listener.settimeout(0.2)  # nobody connects any more once it is lost
        while to_it.lost is None:
            with contextlib.suppress(TimeoutError), listener.accept()[0]:
                pass
        assert "does not have its key" in to_it.lost


# ---- noise -----------------------------------------------------------------------------------


def noise(dice: random.Random, hello: bytes) -> bytes:
    """Bytes that a stranger might send."""
    rest = dice.randbytes(dice.randrange(400))
    place = dice.randrange(len(hello))
    kinds = [
        b"",
        dice.randbytes(1),
        hello[:place],
        hello,
        hello[:place] + bytes([hello[place] ^ 1 << dice.randrange(8)]) + hello[place + 1 :],
        b"GET / HTTP/1.1\r\n\r\n",
        greeting(dice.choice([b"NULL", b"PLAIN", b"GSSAPI", dice.randbytes(20)])),
        greeting(version=dice.randrange(256)),
        greeting(magic=dice.randbytes(1)),
        greeting() + command(dice.getrandbits(40)),
        greeting() + command(len(rest)),
    ]
    return dice.choice(kinds) + rest


def test_noise_disturbs_nobody(address: str, hello: bytes, effort: int) -> None:
    disturb(address, lambda dice: noise(dice, hello), 100 * effort)


# ---- what was overheard ----------------------------------------------------------------------

Heard = tuple[Endpoint, Endpoint, Ear]


@pytest.fixture
def heard(join: Join) -> Iterator[Heard]:
    """A and B, and who hears what they say on a connection that A has made."""
    a, b = join("A"), join("B")
    ear = Ear(member(a, "B").address)
    at_b = member(a, "B")
    to_b = link_to(a, ear.address, uid=b.uid, site=at_b.site, public=at_b.public)
    talk = itertools.count()

    def talk_on() -> None:
        n = next(talk)
        a.send(dest="B", n=n)
        b.send(dest="A", n=b.recv().n)
        assert a.recv().n == n

    try:
        talk_on()
        yield a, b, ear
        talk_on()
        assert to_b.lost is None and link(b, "A").lost is None
        assert not a.peek() and not b.peek()
    finally:
        ear.close()


@pytest.fixture
def overheard(heard: Heard) -> Heard:
    """The same after some breaks; in some rounds it may be B who has made a connection."""
    a, b, _ = heard
    for n in range(4):
        link(a, "B")._break()
        wait_until(lambda: link(a, "B").up)
        a.send(dest="B", again=n)
        assert b.recv(again=n)
    return heard


def test_what_was_overheard_opens_no_connection(overheard: Heard) -> None:
    a, b, ear = overheard
    for words, _ in ear.said:
        with connect(member(a, "B").address) as stranger, contextlib.suppress(ConnectionError):
            stranger.sendall(words)
            assert hung_up(stranger)
    assert not b.peek()


def test_what_was_overheard_opens_none_to_another_process(overheard: Heard, join: Join) -> None:
    """However true the words are."""
    a, _, ear = overheard
    c = join("C")
    for words, _ in ear.said:
        with connect(member(a, "C").address) as stranger, contextlib.suppress(ConnectionError):
            stranger.sendall(words)
            assert hung_up(stranger)
    assert transport(c).exchange.known(a.uid) is None
    c.send(dest="A", n="real")
    assert a.recv(src="C").n == "real"
    a.send(dest="C", n="real")
    assert c.recv(src="A").n == "real"


def test_recorded_words_are_no_sign_of_life(overheard: Heard) -> None:
    """Nor are they taken for those of another process, which would prove a death."""
    a, _, ear = overheard
    with contextlib.closing(Ear(member(a, "B").address)) as other:
        other.recites = bytes(ear.said[0][1])
        dead = link_to(a, other.address)
        wait_until(lambda: dead.up or dead.lost is not None)
        assert "does not have its key" in str(dead.lost)


@pytest.mark.parametrize("side", [0, 1])
def test_words_said_again_on_a_living_connection_end_only_that(side: int, heard: Heard) -> None:
    _, _, ear = heard
    *_, last = frames(bytes(ear.said[0][side]))
    ear.say_again(side, last)
    wait_until(lambda: ear.ended)


def test_a_greeting_is_answered_only_by_whom_it_was_meant_for(join: Join, impostor: Pose) -> None:
    """Otherwise what was overheard in one conversation would open a connection in another."""
    b, a = join("B"), join("A")
    b.send(dest="A", n=1)
    assert a.recv().n == 1
    fake = impostor(b, a)
    other = wire.Pair(fake.secret, a.uid, NOBODY, sites=("", "elsewhere"), counter=1 << 40)
    fake.connection.send(other.seal(wire.Frame(b"H", 0, member(a, "A").address.encode())))
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
