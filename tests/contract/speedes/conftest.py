"""SpeedesComm over every transport. Each node is an endpoint of this process, in a thread."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sfm_kernel import Endpoint
from sfm_kernel.speedes import Received, SpeedesComm, fuzzy, start_up
from tests.contract.conftest import Background, Join, results
from tests.waiting import wait_until

LARGE = 200_000
"""Bytes that are written once for several receivers."""

Nodes = list[SpeedesComm]
MakeEndpoints = Callable[[int], list[Endpoint]]
MakeGroup = Callable[[int], Nodes]

in_memory = pytest.mark.parametrize("kind", ["inproc", "shm"], indirect=True)
"""Runs only if the transport shares memory."""


def together(calls: list[Callable[[], Any]]) -> list[Any]:
    """Run each call in a thread of its own, and return the results."""
    return results([Background(call) for call in calls])


def at_all(nodes: Nodes, call: Callable[[SpeedesComm], Any]) -> list[Any]:
    return together([lambda comm=comm: call(comm) for comm in nodes])


def start(endpoints: list[Endpoint], *args: Any, **options: Any) -> Nodes:
    return together([lambda sfm=sfm: start_up(sfm, *args, **options) for sfm in endpoints])


@pytest.fixture
def endpoints(join: Join) -> MakeEndpoints:
    return lambda n: [join() for _ in range(n)]


@pytest.fixture
def group(endpoints: MakeEndpoints) -> Iterator[MakeGroup]:
    """``group(n)``: the n nodes of a group; closed at the end."""
    with contextlib.ExitStack() as stack:

        def make(n: int) -> Nodes:
            return [stack.enter_context(comm) for comm in start(endpoints(n))]

        yield make


def comes(comm: SpeedesComm, type: int) -> Received:
    """The next message of a type, waited for."""
    found: list[Received | None] = []
    wait_until(lambda: found.append(comm.receive(type)) or found[-1] is not None)
    assert found[-1] is not None
    return found[-1]


def drain(comm: SpeedesComm, react: Callable[[Received], None] = lambda _: None) -> list[Received]:
    """All coordinated messages of a cycle."""
    got = []
    while (message := comm.coordinated_receive()) is not None:
        got.append(message)
        react(message)
    return got


def multicast_files(comm: SpeedesComm) -> list[Path]:
    return sorted(Path(comm._sfm.folder).glob("*.multicast*"))


def written(path: Path) -> int:
    """Bytes of memory that a file takes."""
    return path.stat().st_blocks * 512


@pytest.fixture(params=["each tells all", "tree"])
def any_fuzzy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "tree":
        monkeypatch.setattr(fuzzy, "DIRECT_NODES", 0)
