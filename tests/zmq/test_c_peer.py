"""A member that has libzmq and libsodium alone: the wire format in C (examples/c_peer)."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sfm_kernel import EncodeError, Endpoint, PeerLost
from sfm_kernel.directory import DirectoryServer
from tests.waiting import next_line, wait_until
from tests.zmq.by_hand import Impostor
from tests.zmq.conftest import link, member, packet
from tests.zmq.test_foreign_peer import EXAMPLES, VALUES, a, server, values_come_back
from tests.zmq.test_versions import FOREIGN

__all__ = ["a", "server"]  # fixtures

pytestmark = [pytest.mark.zmq, pytest.mark.fault]

Play = Callable[[], subprocess.Popen[str]]
HEADERS = [Path("/usr/include/zmq.h"), Path("/usr/include/sodium.h")]


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled peer."""
    if not all(header.exists() for header in HEADERS):
        pytest.skip("no headers: apt-get install libzmq3-dev libsodium-dev")
    folder = tmp_path_factory.mktemp("c_peer") / "sources"
    shutil.copytree(EXAMPLES / "c_peer", folder)
    flags = "CFLAGS=-O1 -Werror " + os.environ.get("C_PEER_FLAGS", "")
    subprocess.run(["make", "-s", "-B", "-C", folder, flags], check=True)
    return folder / "c_peer"


@pytest.fixture
def play(server: DirectoryServer, program: Path) -> Iterator[Play]:
    """``play()`` starts the peer, which joins as "P"."""
    started = list[subprocess.Popen[str]]()

    def start() -> subprocess.Popen[str]:
        command = [program, server.world, server.url, server.key.hex(), "P"]
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(subprocess.Popen(command, text=True, **pipes))
        assert next_line(started[-1]) == "joined"
        return started[-1]

    yield start
    for process in started:
        process.kill()
        with process:
            pass


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_values_come_back_as_they_went(values: dict[str, Any], a: Endpoint, play: Play) -> None:
    play()
    values_come_back(a, values)


def test_a_value_that_would_be_pickled_is_refused_by_name(a: Endpoint, play: Play) -> None:
    play()
    with pytest.raises(EncodeError, match=r"attribute 'bad' .* as this list would be"):
        a.send(dest="P", good=1, bad=[1, 2])
    a.send(dest="P", n=1)
    assert a.recv(src="P").n == 1, "nothing was sent before"


def test_what_a_broken_connection_loses_is_sent_again(a: Endpoint, play: Play) -> None:
    play()
    for n in range(60):
        a.send(dest="P", n=n, data=bytes(50_000))
        if n % 10 == 5:
            link(a, "P")._break()
    assert [a.recv(src="P").n for _ in range(60)] == list(range(60))


def test_both_wait_while_much_waits_at_the_other(a: Endpoint, play: Play) -> None:
    """More than both take in before something is received."""
    play()

    def send() -> None:
        for n in range(40):
            a.send(dest="P", n=n, data=bytes(4 << 20))

    sender = threading.Thread(target=send)
    sender.start()
    sender.join(2.0)  # it waits for this thread
    assert [a.recv(src="P").n for _ in range(40)] == list(range(40))
    sender.join()


def test_a_death_is_noticed_on_both_sides(server: DirectoryServer, a: Endpoint, play: Play) -> None:
    p = play()
    code = "import sys, sfm_kernel\nb = sfm_kernel.join(sys.argv[1], 'B')\nb.send(dest='P', n=1)\n"
    code += "b.recv(src='P')\nprint('B is there', flush=True)\ninput()"
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code, server.world], **pipes) as b:
        assert next_line(b) == "B is there"
        b.send_signal(signal.SIGKILL)
    assert next_line(p) == "B is gone"
    a.send(dest="P", n=2)
    assert a.recv(src="P").n == 2
    p.kill()
    with pytest.raises(PeerLost):
        a.recv(src="P")


def test_it_leaves(a: Endpoint, play: Play) -> None:
    p = play()
    a.send(dest="P", stop=True)
    assert p.wait() == 0
    wait_until(lambda: [member.name for member in a.members()] == ["A"])
    with pytest.raises(PeerLost):
        a.recv(src="P")


@pytest.fixture
def fake(a: Endpoint, play: Play) -> Iterator[tuple[Impostor, subprocess.Popen[str]]]:
    """An impostor that sends to P as if it were A, and P."""
    p = play()
    wait_until(lambda: len(a.members()) == 2)
    with contextlib.closing(Impostor(a, member(a, "P"), a)) as impostor:
        yield impostor, p


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
