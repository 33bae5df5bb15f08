"""Who sends more than the way between sites carries is held up, and what it acknowledges is not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.contract.conftest import Background
from tests.sites.through import TwoSites, meet_through_gateways, two_sites
from tests.tcp.conftest import link
from tests.waiting import wait_until

pytestmark = pytest.mark.tcp


@pytest.fixture
def sites(world: str, sfm_dir: Path) -> Iterator[TwoSites]:
    with two_sites(world, sfm_dir) as made:
        yield made


def test_acknowledgements_pass_what_their_process_sends_to_others(sites: TwoSites) -> None:
    gateway = sites.add_gateway("a", limit=2_000_000)
    sites.add_gateway("b")

    def held_up() -> bool:
        return any(one["held_up"] for one in gateway.status()["processes"])

    with ExitStack() as stack:
        a = stack.enter_context(sites.join("a", "A"))
        b = stack.enter_context(sites.join("b", "B"))
        others = [stack.enter_context(sites.join("b", f"C{n}")) for n in range(7)]
        for one in (b, *others):
            meet_through_gateways(a, one)
        flooding = [
            Background(lambda name=one.name: a.send(dest=name, data=bytes(2_000_000)))
            for one in others
        ]
        wait_until(held_up)
        for n in range(30):  # for longer than it takes to be called out of reach
            b.send(dest="A", n=n)
            assert a.recv(src="B").n == n
            time.sleep(0.1)
            assert link(b, "A").silence is None
        for one, call in zip(others, flooding, strict=True):
            assert len(one.recv(src="A").data) == 2_000_000
            call.result()
