"""The directory server's connection to a member, which shows the member's death."""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from collections.abc import Callable, Iterator

import pytest

from sfm_kernel.directory import liveness as module
from sfm_kernel.directory.liveness import LivenessMonitor


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.fixture
def watch(listener: socket.socket) -> Iterator[LivenessMonitor]:
    watch = LivenessMonitor(f"tcp://127.0.0.1:{listener.getsockname()[1]}")
    yield watch
    watch.close()


def check_until(watch: LivenessMonitor, condition: Callable[[], object]) -> None:
    while not condition():
        watch.check()
        time.sleep(0.005)


def test_it_is_silent_until_the_process_dies(
    listener: socket.socket, watch: LivenessMonitor
) -> None:
    with listener.accept()[0] as accepted:
        check_until(watch, lambda: watch.settled)
        for _ in range(10):
            assert watch.due is None and not watch.dead and watch.unreachable is None
            watch.check()
            time.sleep(0.01)
        accepted.setblocking(False)
        with pytest.raises(BlockingIOError):
            accepted.recv(1)
    check_until(watch, listener_accepts(listener))  # closed, not dead: it connects again
    assert not watch.dead
    listener.close()
    check_until(watch, lambda: watch.dead)
    assert watch.unreachable is None


def test_one_look_sees_that_the_process_died_after_it_was_reached(
    listener: socket.socket, watch: LivenessMonitor
) -> None:
    listener.accept()[0].close()
    with selectors.DefaultSelector() as selector:  # select's own takes no descriptor above 1023
        selector.register(watch, selectors.EVENT_READ)
        selector.select()  # the end has come
    watch.check()
    assert watch.unsure


def test_a_process_that_dies_before_the_first_look_is_about_to_be_found_dead(
    listener: socket.socket, watch: LivenessMonitor
) -> None:
    listener.close()  # its kernel had accepted the connection, and resets it
    watch.check()
    assert watch.unsure or watch.dead
    check_until(watch, lambda: watch.dead)


def listener_accepts(listener: socket.socket) -> Callable[[], bool]:
    listener.settimeout(0.01)

    def accepts() -> bool:
        try:
            listener.accept()[0].close()
        except TimeoutError:
            return False
        return True

    return accepts


def test_a_process_that_does_not_accept_gets_one_connection(
    listener: socket.socket, watch: LivenessMonitor
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


def test_a_process_that_does_not_answer_is_unreachable_and_not_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "ATTEMPT_SECONDS", 0.05)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(0)
        address = silent.getsockname()
        watch = LivenessMonitor(f"tcp://127.0.0.1:{address[1]}")
        check_until(watch, lambda: watch.settled)
        with socket.socket() as other:  # the kernel takes no more, and says nothing
            other.setblocking(False)
            other.connect_ex(address)
            watch._broke()
            check_until(watch, lambda: (watch.unreachable or 0) > 0.2)
            assert not watch.dead
        silent.setblocking(False)  # whose connections come, and when, is the kernel's matter

        def answered() -> bool:
            with contextlib.suppress(BlockingIOError):
                silent.accept()[0].close()
            return watch.unreachable is None

        check_until(watch, answered)
    check_until(watch, lambda: watch.dead)
    watch.close()
