"""One suite for every transport: each test of this folder runs over each of them.

All endpoints of a test live in its own process. SFM_TRANSPORT makes them use shared memory or
ZeroMQ, and not go straight from inbox to inbox. A file with ``THROUGH_GATEWAYS`` also runs from
site to site.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import sfm_kernel
from sfm_kernel import Endpoint
from tests.sites.through import meet_through_gateways, two_sites

KINDS = ("inproc", "shm", pytest.param("zmq", marks=pytest.mark.zmq))
GATEWAY = pytest.param("gateway", marks=pytest.mark.zmq)
CONTENTS = {"value", "array"}

Pair = tuple[Endpoint, Endpoint]
Join = Callable[..., Endpoint]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each test runs over each transport, and between gateways if its file says so.

    Gateways do not see what a message contains; tests of ``CONTENTS`` do not use them.
    """
    names = set(metafunc.fixturenames)
    chosen = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if "kind" in names and "kind" not in chosen:
        is_far = hasattr(metafunc.module, "THROUGH_GATEWAYS") and not names & CONTENTS
        metafunc.parametrize("kind", [*KINDS, GATEWAY] if is_far else KINDS, indirect=True)


@pytest.fixture
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The transport under test."""
    if request.param != "gateway":
        monkeypatch.setenv("SFM_TRANSPORT", request.param)
    return str(request.param)


@pytest.fixture
def join(kind: str, world: str, sfm_dir: Path) -> Iterator[Join]:
    """Joins the test's world; leaves it at the end. Between gateways: at site a, then b, a, b …"""
    with ExitStack() as stack:
        if kind == "gateway":
            sites = stack.enter_context(two_sites(world, sfm_dir))
            for site in ("a", "b"):
                sites.add_gateway(site)
        site_names = itertools.cycle("ab")

        def join(name: str | None = None, **options: Any) -> Endpoint:
            if kind == "gateway":
                return stack.enter_context(sites.join(next(site_names), name, **options))
            joined = sfm_kernel.join(options.pop("world", world), name, **options)
            return stack.enter_context(joined)

        yield join


@pytest.fixture
def pair(join: Join, kind: str) -> Pair:
    """Two endpoints, "A" and "B"."""
    a, b = join("A"), join("B")
    if kind == "gateway":
        meet_through_gateways(a, b)
    assert a.route_kind("B") == kind
    return a, b


class Background(threading.Thread):
    """A call in another thread; ``result()`` gives its value or raises what it raised."""

    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._call, self._value = call, None
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._value = self._call()
        except BaseException as error:  # noqa: BLE001 - result() raises it
            self.error = error

    def result(self) -> Any:
        self.join(120)
        if self.is_alive():
            frame = sys._current_frames().get(self.ident or 0)
            stack = "".join(traceback.format_stack(frame))
            raise AssertionError(f"the call did not return: it is here\n{stack}")
        if self.error is not None:
            raise self.error
        return self._value


class interrupted_when:
    """Sends this process SIGINT, as Stop does, once the condition holds."""

    def __init__(self, condition: Callable[[], Any]) -> None:
        self._thread = threading.Thread(target=self._wait, args=(condition,))
        self._over = threading.Event()
        self._failure: BaseException | None = None

    def _wait(self, condition: Callable[[], Any]) -> None:
        try:
            # However long it takes on a busy machine: without the signal the call never ends.
            while not condition():
                if self._over.wait(0.005):
                    return
        except BaseException as failure:  # noqa: BLE001 - raised by __exit__
            self._failure = failure
        os.kill(os.getpid(), signal.SIGINT)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure


def results(calls: Iterable[Background]) -> list[Any]:
    """Wait for these calls; return their values in the same order."""
    return [call.result() for call in calls]
