"""One suite for every transport: each test of this folder runs over each of them.

All endpoints of a test live in its own process; that two of them then go through shared memory or
TCP and not straight from inbox to inbox is what SFM_TRANSPORT is for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import sfm_kernel
from sfm_kernel import Endpoint


@pytest.fixture(
    params=["inproc", "shm", pytest.param("tcp", marks=pytest.mark.tcp)],
)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The transport under test."""
    monkeypatch.setenv("SFM_TRANSPORT", request.param)
    return str(request.param)


@pytest.fixture
def join(kind: str, world: str) -> Iterator[Callable[..., Endpoint]]:
    """Joins the test's world; leaves it at the end."""
    joined: list[Endpoint] = []

    def join(name: str | None = None, **options: Any) -> Endpoint:
        joined.append(sfm_kernel.join(options.pop("world", world), name, **options))
        return joined[-1]

    yield join
    for endpoint in joined:
        endpoint.close()


@pytest.fixture
def pair(join: Callable[..., Endpoint], kind: str) -> tuple[Endpoint, Endpoint]:
    """Two endpoints, "A" and "B"."""
    a, b = join("A"), join("B")
    assert a.route_kind("B") == kind
    return a, b


class Background(threading.Thread):
    """A call in another thread; ``result()`` gives its value or raises what it raised."""

    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._call, self._value, self._error = call, None, None
        self.start()

    def run(self) -> None:
        try:
            self._value = self._call()
        except BaseException as error:  # noqa: BLE001 - handed to whoever asks for the result
            self._error = error

    def result(self) -> Any:
        self.join(30)
        assert not self.is_alive(), "the call did not return"
        if self._error is not None:
            raise self._error
        return self._value


@pytest.fixture
def background() -> Callable[[Callable[[], Any]], Background]:
    return Background


def eventually(condition: Callable[[], Any], limit: float = 20.0) -> None:
    """Wait until ``condition()`` is true; fail after ``limit`` seconds."""
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, "it did not become true"
        time.sleep(0.005)
