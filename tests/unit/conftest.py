"""Fixtures of the unit tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import zmq

from sfm_kernel.directory import DirectoryServer
from tests.unit.classes import Class
from tests.unit.machines import KEY, Machine, MakeMachine


@pytest.fixture
def own_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root of the test's own."""
    monkeypatch.setenv("SFM_DIR", str(tmp_path / "root"))
    return tmp_path / "root"


@pytest.fixture
def server(world: str) -> Iterator[DirectoryServer]:
    with DirectoryServer(world, KEY, "tcp://127.0.0.1:0") as running:
        yield running


@pytest.fixture
def machine(
    server: DirectoryServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MakeMachine]:
    machines: list[Machine] = []

    def make() -> Machine:
        machines.append(Machine(tmp_path / str(len(machines)), server, monkeypatch))
        return machines[-1]

    yield make
    for machine in machines:
        for process in machine.processes:
            process.leave()
        machine.directory.close()


@pytest.fixture
def dealer() -> Iterator[zmq.Socket[bytes]]:
    """A socket that is not connected yet."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.linger = 0
        yield socket


@pytest.fixture
def room() -> Iterator[Class]:
    """A class that serves."""
    with closing(Class()) as made:
        yield made
