"""A process that has no descriptor left goes on, and takes nobody for dead."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
from collections.abc import Iterator

import pytest

import sfm_kernel
from sfm_kernel import PeerLost, RecvTimeout

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


@pytest.mark.parametrize("kind", ["shm", pytest.param("zmq", marks=pytest.mark.zmq)])
def test_the_living_stay_alive(kind: str, world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFM_TRANSPORT", kind)
    with sfm_kernel.join(world, "home", guest=True) as home:
        with subprocess.Popen([sys.executable, "-c", ECHO, world]) as echo:
            try:
                home.wait_for("V", timeout=20)
                home.send(dest="V", n=0)
                assert home.recv(20, src="V").echo == 0
                (v,) = [one for one in home.members() if one.name == "V"]
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
