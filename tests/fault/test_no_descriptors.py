"""A process that has no descriptor left goes on, and takes nobody for dead."""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import subprocess
import time
from collections.abc import Iterator

import pytest

from sfm_kernel import Endpoint, PacketError, PeerLost, RecvTimeout, SFMError
from tests.conftest import Spawn
from tests.waiting import next_line

ECHO = """
import sys, sfm_kernel
sfm = sfm_kernel.join(sys.argv[1], "V")
sfm.wait_for("home")
while True: sfm.send(dest="home", echo=sfm.recv(src="home").n)
"""


@contextlib.contextmanager
def no_descriptors() -> Iterator[None]:
    """Until the end, this process can open nothing."""
    gc.collect()  # what earlier tests have left would give descriptors back meanwhile
    gc.disable()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 200), hard))
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        yield
    finally:
        for fd in taken:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        gc.enable()


@pytest.mark.zmq
@pytest.mark.parametrize("kind", ["zmq"], indirect=True)
def test_a_connection_that_cannot_be_made_yet(
    kind: str, home: Endpoint, spawn: Spawn, capfd: pytest.CaptureFixture[str]
) -> None:
    quiet = "import sfm_kernel.transport.zmq as zmq\nzmq.MOST_MET = 0\n"  # they connect to nobody
    for name in ("V", "W"):
        spawn(quiet + ECHO.replace('"V"', f'"{name}"'), home.world)
    home.wait_for("V", "W", timeout=20)
    home.send(dest="W", n=0)
    assert home.recv(20, src="W").echo == 0
    with no_descriptors():
        home.send(dest="V", n=1)
        said = ""
        while "ulimit" not in said:
            time.sleep(0.05)
            said += capfd.readouterr().err
        time.sleep(0.3)  # it tries again, and fails
    assert home.recv(20, src="V").echo == 1


def test_the_living_stay_alive(kind: str, home: Endpoint, spawn: Spawn) -> None:
    echo = spawn(ECHO, home.world)
    home.wait_for("V", timeout=20)
    home.send(dest="V", n=0)
    assert home.recv(20, src="V").echo == 0
    (v,) = [member for member in home.members() if member.name == "V"]
    with no_descriptors():
        assert home.alive(v)
        with pytest.raises(RecvTimeout):
            home.recv(1.5, src="V")
        for n in range(5):
            home.send(dest="V", n=n)
            assert home.recv(20, src="V").echo == n
    echo.kill()
    echo.wait()
    with pytest.raises(PeerLost):  # and it sees again once it can
        home.recv(20, src="V")


def test_a_new_sender_waits_until_its_ring_can_be_opened(
    over_shm: None, home: Endpoint, spawn: Spawn
) -> None:
    send = ECHO.replace("sfm.wait_for", "print(flush=True), input(), sfm.send(dest='home', n=1)")
    new = spawn(send, home.world, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    next_line(new)
    with no_descriptors():
        new.stdin.write("go\n")
        new.stdin.flush()
        with pytest.raises(SFMError, match=r"Nothing is lost.*ulimit") as failure:
            home.recv(20)
        assert not isinstance(failure.value, PacketError)
        with pytest.raises(RecvTimeout):  # it is reported once
            home.recv(0.3)
    assert home.recv(20).n == 1
