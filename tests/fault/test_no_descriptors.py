"""A process that has no descriptor left goes on, and takes nobody for dead."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

import sfm_kernel
from sfm_kernel import PacketError, PeerLost, RecvTimeout, SFMError

ECHO = """
import sys, sfm_kernel
sfm = sfm_kernel.join(sys.argv[1], "V")
sfm.wait_for("home")
while True: sfm.send(dest="home", echo=sfm.recv(src="home").n)
"""


@contextlib.contextmanager
def no_descriptors() -> Iterator[None]:
    """Until the end, this process can open nothing."""
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


@pytest.mark.tcp
def test_a_connection_that_cannot_be_made_yet(
    world: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SFM_TRANSPORT", "tcp")
    with sfm_kernel.join(world, "home", guest=True) as home, contextlib.ExitStack() as stack:
        for name in ("V", "W"):
            command = [sys.executable, "-c", ECHO.replace('"V"', f'"{name}"'), world]
            stack.callback(stack.enter_context(subprocess.Popen(command)).kill)
        home.wait_for("V", "W", timeout=20)
        home.send(dest="W", n=0)
        assert home.recv(20, src="W").echo == 0
        with no_descriptors():
            home.send(dest="V", n=1)
            said = ""
            while "ulimit" not in said:
                time.sleep(0.05)
                said += capfd.readouterr().err
            time.sleep(0.3)  # it tries again, in vain
        assert home.recv(20, src="V").echo == 1


@pytest.mark.parametrize("kind", ["shm", pytest.param("tcp", marks=pytest.mark.tcp)])
def test_the_living_stay_alive(kind: str, world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFM_TRANSPORT", kind)
    with sfm_kernel.join(world, "home", guest=True) as home:
        with subprocess.Popen([sys.executable, "-c", ECHO, world]) as echo:
            try:
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
            finally:
                echo.kill()
        with pytest.raises(PeerLost):  # and it sees again once it can
            home.recv(20, src="V")


def test_a_new_sender_waits_until_its_ring_can_be_opened(
    world: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFM_TRANSPORT", "shm")
    send = ECHO.replace("sfm.wait_for", "print(flush=True), input(), sfm.send(dest='home', n=1)")
    with sfm_kernel.join(world, "home", guest=True) as home:
        pipe = subprocess.PIPE
        command = [sys.executable, "-c", send, world]
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as new:
            try:
                assert new.stdin is not None and new.stdout is not None
                new.stdout.readline()
                with no_descriptors():
                    new.stdin.write("go\n")
                    new.stdin.flush()
                    with pytest.raises(SFMError, match=r"Nothing is lost.*ulimit") as failure:
                        home.recv(20)
                    assert not isinstance(failure.value, PacketError)
                    with pytest.raises(RecvTimeout):  # told once
                        home.recv(0.3)
                assert home.recv(20).n == 1
            finally:
                new.kill()
