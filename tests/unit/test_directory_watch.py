"""The directory server's connection to a member, with which it sees the member's death."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator

import pytest

from sfm_kernel.directory import watch as module
from sfm_kernel.directory.watch import Watch


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as one:
        yield one


@pytest.fixture
def watch(listener: socket.socket, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    monkeypatch.setattr(module, "WELCOME_SECONDS", 0.02)
    watch = Watch(f"tcp://127.0.0.1:{listener.getsockname()[1]}")
    yield watch
    watch.close()


def check_until(watch: Watch, condition: Callable[[], object]) -> None:
    while not condition():
        watch.check()
        time.sleep(0.005)


def test_before_zeromq_hangs_up_another_connection_is_there(
    listener: socket.socket, watch: Watch
) -> None:
    listener.settimeout(0.01)
    accepted: list[socket.socket] = []

    def another() -> bool:
        try:
            accepted.append(listener.accept()[0])
        except TimeoutError:
            return False
        accepted[-1].sendall(b"the greeting")
        return True

    for _ in range(4):
        check_until(watch, another)
        assert not watch.dead and not watch.unsure
        for old in accepted[:-1]:
            check_until(watch, lambda: watch.settled)
            assert old.recv(1) == b""  # not before the next was there
            old.close()
        del accepted[:-1]
    listener.close()
    accepted[0].close()  # the process has died
    check_until(watch, lambda: watch.dead)


def test_a_process_that_does_not_accept_gets_one_connection(
    listener: socket.socket, watch: Watch
) -> None:
    check_until(watch, lambda: watch.settled)  # in the kernel: the process is stopped
    for _ in range(10):
        assert watch.due is None
        watch.check()
        time.sleep(0.01)
    listener.accept()[0].close()
    listener.settimeout(0.0)
    with pytest.raises(BlockingIOError):
        listener.accept()
