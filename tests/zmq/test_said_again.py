"""The sender learns what was received, whichever connections break; and a stopped process is
not taken for one that is out of reach."""

from __future__ import annotations

import os
import signal
import time

import pytest

from sfm_kernel.message import encode
from tests.waiting import wait_until
from tests.zmq.by_hand import Impostor
from tests.zmq.conftest import Join, Start, link

pytestmark = pytest.mark.zmq


Credited = tuple[Impostor, int]


@pytest.fixture
def credited(fake: Impostor) -> Credited:
    """An impostor of A, from which B has received a message, and the credit that B has sent."""
    b = fake.receiver
    fake.greet()
    fake.hears(b"W")
    fake.put(b"D", 1, encode(dest="B", src="A", n=1), flag=True)
    assert b.recv(src="A").n == 1
    return fake, fake.hears(b"A").number


def test_a_credit_is_said_again_on_the_connection_that_its_receiver_makes(
    credited: Credited,
) -> None:
    """A does not ask: its own connection may be another one, which did not break."""
    fake, credit = credited
    fake.accept()
    fake.put(b"W", fake.hears(b"H").number)
    assert fake.hears(b"A").number == credit


def test_a_sender_that_asks_twice_is_answered_twice(credited: Credited) -> None:
    fake, credit = credited
    for _ in range(2):
        fake.put(b"Q")
        answers = fake.hears(b"A"), fake.hears(b"A")  # of the user's account, and of the library's
        assert [answer.number for answer in answers if not answer.flag] == [credit]


@pytest.mark.fault
def test_a_process_that_is_stopped_is_not_out_of_reach(join: Join, process: Start) -> None:
    """Its kernel has no room for more, and says so: seldom, when it is asked."""
    a = join("A")
    b = process("B", "sfm.recv(src='A')\nsys.stdin.read()")
    a.send(dest="B", n=0)
    wait_until(lambda: link(a, "B").up)
    os.kill(b.pid, signal.SIGSTOP)
    a.send(dest="B", data=bytes(1_500_000))
    for _ in range(40):
        time.sleep(0.1)
        assert link(a, "B").silence is None and link(a, "B").lost is None
    os.kill(b.pid, signal.SIGCONT)
