"""A member that has libzmq and libsodium alone: the wire format in C (examples/c_peer)."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sfm_kernel import Endpoint, PeerLost
from sfm_kernel.directory import DirectoryServer
from tests.waiting import next_line, wait_until
from tests.zmq.by_hand import Impostor
from tests.zmq.conftest import member, packet
from tests.zmq.test_foreign_peer import a, in_c, program, run, server
from tests.zmq.test_versions import FOREIGN

__all__ = ["a", "in_c", "program", "run", "server"]  # fixtures

pytestmark = [pytest.mark.zmq, pytest.mark.fault]


@pytest.mark.usefixtures("in_c")
def test_both_wait_while_much_waits_at_the_other(a: Endpoint) -> None:
    """More than both take in before something is received."""

    def send() -> None:
        for n in range(40):
            a.send(dest="P", n=n, data=bytes(4 << 20))

    sender = threading.Thread(target=send)
    sender.start()
    sender.join(2.0)  # it waits for this thread
    assert [a.recv(src="P").n for _ in range(40)] == list(range(40))
    sender.join()


def test_a_death_is_noticed_on_both_sides(
    server: DirectoryServer, a: Endpoint, in_c: subprocess.Popen[str]
) -> None:
    code = "import sys, sfm_kernel\nb = sfm_kernel.join(sys.argv[1], 'B')\nb.send(dest='P', n=1)\n"
    code += "b.recv(src='P')\nprint('B is there', flush=True)\ninput()"
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code, server.world], **pipes) as b:
        assert next_line(b) == "B is there"
        b.send_signal(signal.SIGKILL)
    assert next_line(in_c) == "B is gone"
    a.send(dest="P", n=2)
    assert a.recv(src="P").n == 2
    in_c.kill()
    with pytest.raises(PeerLost):
        a.recv(src="P")


@pytest.fixture
def fake(
    a: Endpoint, in_c: subprocess.Popen[str]
) -> Iterator[tuple[Impostor, subprocess.Popen[str]]]:
    """An impostor that sends to P as if it were A, and P."""
    wait_until(lambda: len(a.members()) == 2)
    with contextlib.closing(Impostor(a, member(a, "P"), a)) as impostor:
        yield impostor, in_c


@pytest.mark.parametrize(
    ("kind", "body"),
    [(b"D", b""), (b"D", bytes(100)), (b"D", packet(n=1)[:-1]), (b"F", b"\1"), (b"F", bytes(8))],
)
def test_who_sends_nonsense_is_given_up(
    fake: tuple[Impostor, subprocess.Popen[str]], kind: bytes, body: bytes
) -> None:
    impostor, p = fake
    impostor.greet()
    impostor.put(kind, 1, body)
    assert impostor.hears(b"L").body
    assert p.poll() is None


def test_another_version_is_said(fake: tuple[Impostor, subprocess.Popen[str]]) -> None:
    impostor, p = fake
    impostor.pair.version = FOREIGN
    impostor.greet()
    assert p.wait() == 1 and p.stderr is not None
    assert f"A speaks version {FOREIGN} of the wire format" in p.stderr.read()


def test_a_wrong_key_is_said(server: DirectoryServer, program: Path) -> None:
    command = [program, server.world, server.url, os.urandom(32).hex(), "P"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 1 and "not to this key" in ended.stderr
