"""Connections that break at any time, peers out of reach: nothing is lost, nothing doubled."""

from __future__ import annotations

import os
import random
import secrets
import threading
import time

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel import Endpoint, PeerLost, WorldError
from tests.contract.conftest import Background
from tests.waiting import wait_until
from tests.zmq.by_hand import Impostor
from tests.zmq.conftest import Join, Pose, Start, link, link_to, member, repeat, transport
from tests.zmq.sockets import attempts, connections, cut, deafen, hear_again, place, port

pytestmark = pytest.mark.zmq


# ---- breaks ----------------------------------------------------------------------------------


class Breaking:
    """Breaks all connections between members again and again, at random times."""

    def __init__(self, seen_by: Endpoint, pause: float = 0.05) -> None:
        self._ports = [place(peer.address)[1] for peer in seen_by.members()]
        self._over, self._pause = threading.Event(), pause
        self._thread = threading.Thread(target=self._run)
        self.count = 0
        self._seed = secrets.randbits(32)
        print(f"seed {self._seed}")

    def _run(self) -> None:
        dice = random.Random(self._seed)
        while not self._over.wait(self._pause * dice.random() ** 2):
            self.count += cut(*self._ports) > 0

    def __enter__(self) -> Breaking:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def ended(*calls: Background) -> None:
    for call in calls:
        call.join()
        call.result()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("sizes", ["small", "mixed"])
def test_nothing_is_lost_or_doubled(sizes: str, join: Join, effort: int) -> None:
    """Two that talk at once, each with many messages under way, some of them large."""
    a, b = join("A", buffering=4_000_000), join("B", buffering=4_000_000)

    def size(n: int) -> int:
        return n % 50 if sizes == "small" else n * 7919 % 20_000 * (50 if n % 20 == 0 else 1)

    def send(end: Endpoint, to: str) -> None:
        n = 0
        while breaking.count < 60 * effort:
            end.send(dest=to, n=n, data=np.full(size(n), n % 251, dtype=np.uint8))
            n += 1
        end.send(dest=to, n=n, last=True)

    def receive(end: Endpoint, src: str) -> None:
        n = 0
        while "last" not in (message := end.recv(src=src)):
            assert message.n == n
            assert len(message.data) == size(n) and (message.data == n % 251).all()
            n += 1
        assert message.n == n

    with Breaking(a) as breaking:
        sending = Background(lambda: send(a, "B")), Background(lambda: send(b, "A"))
        ended(*sending, Background(lambda: receive(a, "B")), Background(lambda: receive(b, "A")))
    assert not a.peek() and not b.peek()


@pytest.mark.timeout(1800)
def test_questions_and_answers_while_connections_break(join: Join, effort: int) -> None:
    a, b = join("A"), join("B")

    def answer() -> None:
        while "last" not in (message := b.recv(src="A")):
            b.send(dest="A", n=message.n + 1)

    with Breaking(a, pause=0.02) as breaking:
        answering = Background(answer)
        n = 0
        while breaking.count < 100 * effort:
            a.send(dest="B", n=n)
            assert a.recv(src="B").n == n + 1
            n += 1
        a.send(dest="B", last=True)
        ended(answering)


@pytest.mark.timeout(1800)
def test_many_peers_while_connections_break(join: Join, effort: int) -> None:
    ends = [join() for _ in range(5)]

    def talk(end: Endpoint) -> None:
        others = [other.name for other in ends if other is not end]
        n = going = 0
        while going < len(others):  # until all have said that it is enough
            enough = breaking.count >= 30 * effort
            for other in others:
                end.send(dest=other, n=n, data=bytes(n * 997 % 9000), enough=enough)
            got = [end.recv(src=other) for other in others]
            assert all(message.n == n for message in got)
            going = len(others) if enough and all(message.enough for message in got) else 0
            n += 1

    with Breaking(ends[0], pause=0.2) as breaking:
        ended(*[Background(lambda end=end: talk(end)) for end in ends])


def test_a_process_that_leaves_while_connections_break_has_sent_everything(world: str) -> None:
    for _ in range(5):
        a, b = sfm_kernel.join(world, "A"), sfm_kernel.join(world, "B")
        with Breaking(a, pause=0.02):
            for n in range(300):
                a.send(dest="B", n=n, data=bytes(1000))
            closing = Background(a.close)
            assert [b.recv(src="A").n for _ in range(300)] == list(range(300))
            ended(closing)
        b.close()


@pytest.mark.fault
def test_a_death_is_seen_while_connections_break(join: Join, process: Start) -> None:
    a = join("A")
    b = process("B", "while True: sfm.send(dest='A', n=sfm.recv(src='A').n)")
    with Breaking(a) as breaking:
        while breaking.count < 20:
            a.send(dest="B", n=breaking.count)
            a.recv(src="B")
        b.kill()
        with pytest.raises(PeerLost, match="'B'"):
            repeat(lambda: a.recv(src="B"))
        with pytest.raises(PeerLost, match="'B'"):
            repeat(lambda: a.send(dest="B", n=0))


# ---- how many connections --------------------------------------------------------------------


def test_a_pair_has_one_connection(join: Join) -> None:
    a, b = join("A"), join("B")
    for n in range(50):
        a.send(dest="B", n=n, data=bytes(n * 3000))
        b.recv(n=n)
        b.send(dest="A", n=n, data=bytes(n * 3000))
        a.recv(n=n)
    assert connections(port(a), port(b)) == 1
    assert transport(a).exchange.known(b.uid) is not None
    cut(port(a), port(b))
    a.send(dest="B", n=1)
    b.recv()
    b.send(dest="A", n=1)
    a.recv()
    wait_until(lambda: connections(port(a), port(b)) == 1)


def test_two_that_connect_at_the_same_instant(join: Join, effort: int) -> None:
    for nth in range(20 * effort):
        a, b = join(f"A{nth}"), join(f"B{nth}")
        together = threading.Barrier(2)

        def both(end: Endpoint, to: str, together: threading.Barrier = together) -> None:
            together.wait()
            for n in range(10):
                end.send(dest=to, n=n)

        sending = [Background(lambda a=a, b=b: both(a, b.name))]
        sending += [Background(lambda a=a, b=b: both(b, a.name))]
        assert [a.recv().n for _ in range(10)] == [b.recv().n for _ in range(10)]
        ended(*sending)
        # The kernel's table is not read at one instant: others' connections come and go in it.
        wait_until(lambda a=a, b=b: connections(port(a), port(b)) in (1, 2))
        wait_until(lambda a=a, b=b: link(a, b.name).up and link(b, a.name).up)
        a.close()
        b.close()


# ---- silence is not death --------------------------------------------------------------------


def test_an_unreachable_process_is_waited_for(join: Join) -> None:
    a, b = join("A"), join("B")
    a.send(dest="B", n=0)
    b.send(dest="A", n=0)
    a.recv()
    b.recv()
    deafen(port(a), port(b))
    for n in range(1, 20):
        a.send(dest="B", n=n, data=bytes(50_000))
        b.send(dest="A", n=n)
    wait_until(lambda: link(a, "B").silence and link(b, "A").silence)
    time.sleep(1)
    assert link(a, "B").lost is None and link(a, "B").silence[0] > 1
    assert not transport(a).lost(member(a, "B"))
    with pytest.raises(sfm_kernel.RecvTimeout):
        a.recv(0.1, src="B")
    hear_again(port(a), port(b))
    assert [b.recv(src="A").n for _ in range(1, 20)] == list(range(1, 20))
    assert [a.recv(src="B").n for _ in range(1, 20)] == list(range(1, 20))
    wait_until(lambda: link(a, "B").silence is None and link(b, "A").silence is None)


def test_a_first_connection_that_nobody_answers(join: Join) -> None:
    a, b = join("A"), join("B")
    deafen(port(b))
    a.send(dest="B", n=1)
    wait_until(lambda: link(a, "B").silence)
    time.sleep(2)
    assert link(a, "B").lost is None
    hear_again(port(b))
    assert b.recv(src="A").n == 1
    wait_until(lambda: link(a, "B").silence is None and link(a, "B").up)


def test_a_line_that_has_fallen_silent_is_replaced(join: Join) -> None:
    """A firewall has forgotten it, say: TCP's own attempts on it will never be answered."""
    a, b = join("A"), join("B")
    a.send(dest="B", n=0)
    b.recv()
    deafen(port(b), listening=False)
    a.send(dest="B", n=1)
    b.send(dest="A", n=1)
    assert b.recv(src="A").n == a.recv(src="B").n == 1


def test_new_connections_are_tried_as_long_as_nobody_answers(join: Join) -> None:
    """Again and again: the kernel's own attempts on one become ever rarer."""
    a, b = join("A"), join("B")
    a.send(dest="B", n=0)
    b.recv()
    deafen(port(a), port(b))
    a.send(dest="B", n=1)
    tried: set[int] = set()
    wait_until(lambda: tried.update(attempts(port(b))) or len(tried) >= 4)
    assert link(a, "B").lost is None
    hear_again(port(b), connected=False)  # the old one stays as it is
    assert b.recv(src="A").n == 1


def test_a_process_unreachable_for_too_long_is_given_up(
    join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    b = join("B")  # waits as long as it takes
    monkeypatch.setenv("SFM_UNREACHABLE", "2")
    a = join("A")
    a.send(dest="B", n=0)
    assert b.recv().n == 0
    deafen(port(a), port(b))
    a.send(dest="B", n=1)
    with pytest.raises(PeerLost, match="SFM_UNREACHABLE"):
        repeat(lambda: (a.send(dest="B", n=2), time.sleep(0.05)))
    with pytest.raises(PeerLost):
        a.recv(src="B")
    assert link(b, "A").lost is None
    hear_again(port(a), port(b))
    with pytest.raises(PeerLost):  # it is told, since what it says is not taken in any more
        repeat(lambda: b.send(dest="A", n=3))


@pytest.mark.parametrize("wrong", ["soon", "-1", "0", "inf", "nan"])
def test_a_limit_that_is_none(wrong: str, world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFM_UNREACHABLE", wrong)
    with pytest.raises(WorldError, match="SFM_UNREACHABLE"):
        sfm_kernel.join(world, "A")


def test_a_process_that_reaches_us_need_not_be_reached(fake: Impostor) -> None:
    """A firewall lets connections through from one side only, and they break."""
    b = fake.receiver
    for n in range(3):
        fake.greet(again=n > 0)
        assert fake.hears(b"W").arrived == n
        fake.put(b"D", n + 1, sfm_kernel.message.encode(dest="B", src="A", n=n))
        assert b.recv(src="A").n == n
        b.send(dest="A", n=n)
        if n:
            fake.put(b"W", fake.hears(b"H").number)
        while fake.hears(b"D").number != n + 1:
            pass
        fake.again()
        time.sleep(0.3)  # B has tried to connect, and failed


# ---- proof of death --------------------------------------------------------------------------


def test_another_process_at_its_address(join: Join) -> None:
    """Somebody of the world listens where a dead process did: that says enough."""
    a, b = join("A"), join("B")
    dead = link_to(a, member(a, "B").address)
    wait_until(lambda: dead.lost is not None)
    a.send(dest="B", n=2)
    assert b.recv().n == 2
    b.send(dest="A", n=3)
    assert a.recv().n == 3


def test_a_process_that_refuses_connections_is_gone(join: Join) -> None:
    a, b = join("A"), join("B")
    address = member(a, "B").address
    b.close()
    gone = link_to(a, address)
    wait_until(lambda: gone.lost is not None)
    assert gone.lost == "", "that nobody is there is all there is to say"


def test_a_port_of_no_number(join: Join) -> None:
    wrong = link_to(join("A"), "tcp://nowhere:port")
    wait_until(lambda: wrong.lost is not None)
    assert "not a tcp://IP:port address" in str(wrong.lost)


def test_leaving_ends_at_once_in_any_order(world: str) -> None:
    for first in (0, 1):
        ends = [sfm_kernel.join(world, name) for name in ("A", "B")]
        ends[0].send(dest="B", n=1)
        ends[1].recv()
        other = link(ends[1 - first], "AB"[first])
        ends[first].close()
        wait_until(lambda other=other: other.lost is not None)
        ends[1 - first].close()


def test_nobody_waits_for_the_answer_of_a_departed_process(
    join: Join, impostor: Pose, capfd: pytest.CaptureFixture[str]
) -> None:
    a, b = join("A"), join("B")
    fake = impostor(a, b)
    fake.greet()
    fake.hears(b"W")
    a.send(dest="B", n=1)  # it never says that this has arrived
    transport(a).exchange.report_departed([b.uid])
    a.close()
    assert "without knowing" not in capfd.readouterr().err


@pytest.mark.fault
def test_a_forked_child_does_not_listen_for_its_parent(join: Join, process: Start) -> None:
    a = join("A")
    b = process(
        "B",
        "if os.fork() == 0:\n    sys.stdin.read()\n    os._exit(0)\n"
        "sfm.send(dest='A')\nthreading.Event().wait()",
    )
    a.recv(src="B")
    address = member(a, "B").address
    b.kill()
    os.waitid(os.P_PID, b.pid, os.WEXITED | os.WNOWAIT)
    gone = link_to(a, address)
    wait_until(lambda: gone.lost is not None)  # refused, though the child lives
    assert b.stdin is not None
    b.stdin.close()
