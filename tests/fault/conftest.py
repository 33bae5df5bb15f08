"""Fixtures of the tests with traced victims: a survivor, and a process that never notices."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

import sfm_kernel
from sfm_kernel import Endpoint
from sfm_kernel.endpoint import peers

STEADY = """
import sys, sfm_kernel
sfm = sfm_kernel.join(sys.argv[1], "steady")
sfm.wait_for("home")
while True: sfm.send(dest="home", echo=sfm.recv(src="home").n)
"""


@pytest.fixture
def survivor(world: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setenv("SFM_TRANSPORT", "shm")
    monkeypatch.setattr(peers, "DEATH_CHECK_EVERY", 1)  # many deaths, soon noticed
    with sfm_kernel.join(world, "home", guest=True) as endpoint:
        yield endpoint


@pytest.fixture
def check_the_others(survivor: Endpoint) -> Iterator[Callable[[], None]]:
    """Asks a process that has nothing to do with the victims whether it is all right."""
    numbers = itertools.count()
    with subprocess.Popen([sys.executable, "-c", STEADY, survivor.world]) as steady:

        def check() -> None:
            number = next(numbers)
            survivor.send(dest="steady", n=number)
            assert survivor.recv(20, src="steady").echo == number

        try:
            survivor.wait_for("steady", timeout=20)
            yield check
        finally:
            steady.kill()
