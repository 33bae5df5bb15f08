"""A process dies at a chosen instruction of a call; the others go on, and nothing is torn.

Each way through the native core is stepped through once. Then a process is killed in front of
every instruction that synchronizes with another process (the SYNC POINTs of the sources and more),
and in front of some of the others; ``make long`` takes them all.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest

from sfm_kernel import Endpoint, PeerLost
from tests.contract.conftest import Background
from tests.fault import tracer
from tests.fault.victims import Nursery

pytestmark = [
    pytest.mark.timeout(7200),
    pytest.mark.skipif(not tracer.POSSIBLE, reason="the tracer knows x86-64 only"),
]

JOIN = """
sfm = sfm_kernel.join(world, "V")
sfm.wait_for("home")
small = [bytes([n]) * 50 for n in range(5)]
large = [bytes([n]) * 700_000 for n in range(5)]  # larger than a ring
arrays = [np.full(3 << 20, n, np.uint8) for n in range(5)]
def put(n, data):
    sfm.send(dest="home", n=n, data=data[n])
"""
JOIN_AND_SEND = JOIN + "for n in range(3): put(n, small)\n"
JOIN_AND_ASK = JOIN + "sfm.send(dest='home', ready=True)\n"


@dataclass
class Channel:
    """A code path through the core.

    Attributes:
        prepare, act: what the victim does before and while it is traced.
        meanwhile: what home does with a living victim; ends when that is dead.
        thread: the traced thread, by the beginning of its name; "" is the main thread.
        limit: native instructions to step through if the act does not end by itself.
    """

    prepare: str
    act: str
    meanwhile: Callable[[Endpoint], None]
    thread: str = ""
    limit: int = 20_000


def receive(home: Endpoint, first: int = 0) -> None:
    """The messages are whole and in order, and none that was sent before the act is missing."""
    seen = 0
    try:
        while True:
            m = home.recv(60, src="V")
            assert m.n == seen, "lost or out of order"
            assert bytes(m.data) == bytes([m.n]) * len(m.data), "torn"
            seen += 1
    except PeerLost:
        assert seen >= first


def flood(home: Endpoint, size: int) -> None:
    assert home.recv(60, src="V").ready
    home.buffering = 1 << 20
    with contextlib.suppress(PeerLost):
        while True:
            home.send(dest="V", data=bytes(size))


receive_after_three = partial(receive, first=3)
flood_small, flood_large = partial(flood, size=100), partial(flood, size=700_000)

WAYS = {
    "a small message": Channel(JOIN_AND_SEND, "put(3, small); put(4, small)", receive_after_three),
    "the first message": Channel(JOIN, "put(0, small); put(1, small)", receive),
    "a large message": Channel(JOIN_AND_SEND, "put(3, large); put(4, small)", receive_after_three),
    "an array": Channel(JOIN_AND_SEND, "put(3, arrays); put(4, small)", receive_after_three),
    "a send that waits": Channel(
        JOIN_AND_SEND, "sfm.buffering = 0; put(3, small); put(4, large)", receive_after_three
    ),
    "receiving": Channel(JOIN_AND_ASK, "for _ in range(30): sfm.recv()", flood_small),
    "receiving in parts": Channel(JOIN_AND_ASK, "for _ in range(2): sfm.recv()", flood_large),
    "a receive that waits": Channel(JOIN_AND_ASK, "sfm.recv(0.2, tag='never')", flood_small),
    "making room": Channel(JOIN_AND_ASK, "time.sleep(60)", flood_large, "sfm-network", 1000),
    "a callback": Channel(
        JOIN_AND_ASK, "sfm.regcb(lambda m: None); time.sleep(60)", flood_small, "sfm-network", 3000
    ),
}


@pytest.mark.parametrize("name", WAYS)
def test_killed_at_an_instruction(
    name: str, survivor: Endpoint, check_the_others: Callable[[], None], effort: int
) -> None:
    way = WAYS[name]
    nursery = Nursery(survivor.world, way.prepare, way.act, way.thread)
    reached = 0
    try:
        with nursery.victim() as victim:
            meanwhile = Background(lambda: way.meanwhile(survivor))
            places = victim.walk(way.limit)
            synchronizing = victim.synchronizing(places)
        meanwhile.result()
        chosen = choose(places, synchronizing, 5 if effort == 1 else len(places))
        print(
            f"{len(places)} instructions of the core, {len(set(places))} places, "
            f"{len(synchronizing)} synchronize; killed at {len(chosen)}"
        )
        assert len(places) > 200, "nothing of the native core was seen"
        for place, times in chosen:
            with nursery.victim() as victim:
                meanwhile = Background(lambda: way.meanwhile(survivor))
                reached += victim.run_to(place, times)
            meanwhile.result()
            check_the_others()
        assert reached > len(chosen) // 2, f"only {reached} of {len(chosen)} places were reached"
    finally:
        nursery.close()


def choose(places: list[int], always: set[int], others: int) -> list[tuple[int, int]]:
    """Places to die at, and at which pass: all of ``always``, and some others."""
    rng = random.Random(len(places))
    passes = {place: places.count(place) for place in set(places)}
    rest = sorted(set(places) - always)
    chosen = sorted(always) + rng.sample(rest, min(others, len(rest)))
    return [(place, rng.randint(1, min(passes[place], 20))) for place in chosen]
