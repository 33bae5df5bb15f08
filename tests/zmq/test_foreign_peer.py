"""Members without sfm-kernel: the wire format, written again (examples/pyzmq_peer and c_peer).

What an echo has to do is tried with both; ``test_c_peer`` has what only the one in C does.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel import EncodeError, Endpoint, PeerLost, SFMError
from sfm_kernel.directory import DirectoryServer
from tests.waiting import next_line, wait_until
from tests.zmq.conftest import link

pytestmark = [pytest.mark.zmq, pytest.mark.fault]

EXAMPLES = Path(__file__).parents[2] / "examples"
PRELUDE = """
import sys
from pyzmq_peer.peer import Lost, Peer
world, url, key, site = sys.argv[1:]
peer = Peer(world, url, bytes.fromhex(key), "P", site)
assert "sfm_kernel" not in sys.modules and "numpy" not in sys.modules
print("joined", flush=True)
"""
ECHO = """
while "stop" not in (message := peer.recv()):
    src = message.pop("src")
    del message["dest"]
    peer.send(src, **message)
peer.leave()
"""

Run = Callable[..., subprocess.Popen[str]]
Play = Callable[..., subprocess.Popen[str]]
HEADERS = [Path("/usr/include/zmq.h"), Path("/usr/include/sodium.h")]


@pytest.fixture
def server(world: str, sfm_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DirectoryServer]:
    with DirectoryServer(world, os.urandom(32), "tcp://127.0.0.1:0") as server:
        monkeypatch.setenv("SFM_DIRECTORY", server.url)
        monkeypatch.setenv("SFM_KEY", server.key.hex())
        yield server


@pytest.fixture
def run() -> Iterator[Run]:
    """Starts a peer, and returns when it has joined."""
    with contextlib.ExitStack() as stack:

        def start(*command: str | Path, **options: Any) -> subprocess.Popen[str]:
            pipes: Any = {"stdout": subprocess.PIPE, "text": True, "bufsize": 1}
            process = stack.enter_context(subprocess.Popen(command, **pipes, **options))
            stack.callback(process.kill)
            assert next_line(process) == "joined"
            return process

        yield start


@pytest.fixture
def play(server: DirectoryServer, run: Run) -> Play:
    """``play(code)`` starts a peer in Python that has joined as "P" and runs the code."""

    def start(code: str, site: str = "") -> subprocess.Popen[str]:
        about = server.world, server.url, server.key.hex(), site
        command = sys.executable, "-c", PRELUDE + code, *about
        return run(*command, stdin=subprocess.PIPE, cwd=EXAMPLES)

    return start


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled peer in C, which echoes."""
    if not all(header.exists() for header in HEADERS):
        pytest.skip("no headers: apt-get install libzmq3-dev libsodium-dev")
    folder = tmp_path_factory.mktemp("c_peer") / "sources"
    shutil.copytree(EXAMPLES / "c_peer", folder)
    flags = "CFLAGS=-O1 -Werror " + os.environ.get("C_PEER_FLAGS", "")
    subprocess.run(["make", "-s", "-B", "-C", folder, flags], check=True)
    return folder / "c_peer"


@pytest.fixture
def in_c(server: DirectoryServer, run: Run, program: Path) -> subprocess.Popen[str]:
    """It has joined as "P"."""
    about = server.world, server.url, server.key.hex(), "P"
    return run(program, *about, stderr=subprocess.PIPE)


@pytest.fixture(params=["pyzmq", "c"])
def echo(request: pytest.FixtureRequest) -> subprocess.Popen[str]:
    """A peer of each kind that has joined as "P" and echoes."""
    if request.param == "c":
        started: subprocess.Popen[str] = request.getfixturevalue("in_c")
        return started
    play: Play = request.getfixturevalue("play")
    return play(ECHO)


@pytest.fixture
def a(server: DirectoryServer) -> Iterator[Endpoint]:
    with sfm_kernel.join(server.world, "A") as endpoint:
        yield endpoint


VALUES: dict[str, Any] = {
    "constants": {"none": None, "yes": True, "no": False},
    "integers": {"small": -5, "edge": (1 << 63) - 1, "large": -(1 << 200)},
    "floats": {"x": 0.1, "inf": float("inf")},
    "texts": {"short": "ä", "long": "ö" * 5000, "empty": ""},
    "bytes": {"short": b"\0\1", "long": bytes(range(256)) * 100},
    "arrays": {
        "matrix": np.arange(6.0).reshape(2, 3),
        "counts": np.arange(5, dtype=np.uint16),
        "none": np.empty(0, np.int32),
        "flags": np.array([True, False]),
    },
    "much": {"data": np.arange(700_000.0)},
}


@pytest.mark.usefixtures("echo")
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_values_come_back_as_they_went(values: dict[str, Any], a: Endpoint) -> None:
    a.send(dest="P", **values)
    came = a.recv(src="P")
    assert a.route_kind("P") == "zmq"
    for name, value in values.items():
        back = came[name]
        assert type(back) is type(value) and np.array_equal(back, value), name
        if isinstance(value, np.ndarray):
            assert (back.dtype, back.shape) == (value.dtype, value.shape)


def test_it_may_be_the_first_to_speak_and_receives_by_template(a: Endpoint, play: Play) -> None:
    code = """
peer.send("A", n=1)
print(peer.recv(src="A", tag=2)["n"], peer.recv()["n"], flush=True)
sys.stdin.read()
"""
    p = play(code)
    assert a.recv(src="P").n == 1
    a.send(dest="P", tag=1, n="first")
    a.send(dest="P", tag=2, n="second")
    assert next_line(p) == "second first"


@pytest.mark.usefixtures("echo")
def test_a_value_that_would_be_pickled_is_refused_by_name(a: Endpoint) -> None:
    with pytest.raises(EncodeError, match=r"attribute 'bad' .* as this list would be") as caught:
        a.send(dest="P", good=1, bad=[1, 2])
    assert caught.value.attribute == "bad"
    a.send(dest="P", n=1)
    assert a.recv(src="P").n == 1, "nothing was sent before"


def test_members_of_other_sites_cannot_send_to_it(a: Endpoint, play: Play) -> None:
    play(ECHO, site="elsewhere")
    with pytest.raises(SFMError, match=r"only processes of site 'elsewhere' can send to it"):
        a.send(dest="P", n=1)


@pytest.mark.usefixtures("echo")
def test_what_a_broken_connection_loses_is_sent_again(a: Endpoint) -> None:
    for n in range(60):
        a.send(dest="P", n=n, data=bytes(50_000))
        if n % 10 == 5:
            link(a, "P")._break()
    assert [a.recv(src="P").n for _ in range(60)] == list(range(60))


def test_both_wait_while_much_waits_at_the_other(a: Endpoint, play: Play) -> None:
    """More than either takes in before something is received."""
    code = """
for n in range(40):
    peer.send("A", n=n, data=bytes(4 << 20))
assert all(peer.recv(src="A")["n"] == n for n in range(40))
print("received", flush=True)
peer.leave()
"""
    p = play(code)
    assert [a.recv(src="P").n for _ in range(40)] == list(range(40))
    for n in range(40):
        a.send(dest="P", n=n, data=bytes(4 << 20))
    assert next_line(p) == "received"


WAITS_FOR_B = """
def is_there(name):
    try:
        return peer.directory.find(name)
    except Lost:
        return None
while not is_there("B"):
    peer.poll(0.05)
print("B is there", flush=True)
try:
    peer.recv(src="B")
except Lost as error:
    print(error, flush=True)
"""


def test_a_death_is_noticed_on_both_sides(server: DirectoryServer, a: Endpoint, play: Play) -> None:
    p = play(WAITS_FOR_B + ECHO)
    code = "import sys, sfm_kernel\nsfm = sfm_kernel.join(sys.argv[1], 'B')\ninput()"
    with subprocess.Popen([sys.executable, "-c", code, server.world], stdin=subprocess.PIPE) as b:
        assert next_line(p) == "B is there"
        b.send_signal(signal.SIGKILL)
    assert "is not there, or no longer" in next_line(p)
    a.send(dest="P", n=2)
    assert a.recv(src="P").n == 2
    p.kill()
    with pytest.raises(PeerLost):
        a.recv(src="P")


def test_it_leaves(a: Endpoint, echo: subprocess.Popen[str]) -> None:
    a.send(dest="P", stop=True)
    assert echo.wait() == 0
    wait_until(lambda: [member.name for member in a.members()] == ["A"])
    with pytest.raises(PeerLost):
        a.recv(src="P")


def test_a_wrong_key_is_said(server: DirectoryServer) -> None:
    command = [sys.executable, "-m", "pyzmq_peer", server.world, server.url, os.urandom(32).hex()]
    ended = subprocess.run(command, cwd=EXAMPLES, capture_output=True, text=True)
    assert ended.returncode != 0 and "not to this key" in ended.stderr
