"""A guest, and for tests with traced victims a survivor and a process that never notices."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

import sfm_kernel
from sfm_kernel import Endpoint
from sfm_kernel.endpoint import peers
from tests.conftest import Spawn

STEADY = """
import sys, sfm_kernel
sfm = sfm_kernel.join(sys.argv[1], "steady")
sfm.wait_for("home")
while True: sfm.send(dest="home", echo=sfm.recv(src="home").n)
"""


@pytest.fixture
def home(world: str) -> Iterator[Endpoint]:
    with sfm_kernel.join(world, "home", guest=True) as endpoint:
        yield endpoint


@pytest.fixture
def survivor(over_shm: None, home: Endpoint, monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    monkeypatch.setattr(peers, "DEATH_CHECK_EVERY", 1)  # many deaths, soon noticed
    return home


@pytest.fixture
def check_the_others(survivor: Endpoint, spawn: Spawn) -> Callable[[], None]:
    """``check_the_others()``: a process that has nothing to do with the victims still answers."""
    numbers = itertools.count()
    spawn(STEADY, survivor.world)
    survivor.wait_for("steady", timeout=20)

    def check() -> None:
        number = next(numbers)
        survivor.send(dest="steady", n=number)
        assert survivor.recv(20, src="steady").echo == number

    return check
