"""Gateways give processes weights and reservations. A process that does not read, or sends more
than the path carries, stops nobody else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from sfm_kernel import Endpoint
from sfm_kernel.gateway.service import Service
from tests.contract.conftest import Background
from tests.sites.through import TwoSites, meet_through_gateways, two_sites
from tests.waiting import wait_until
from tests.zmq.conftest import link, transport

pytestmark = pytest.mark.zmq


@pytest.fixture
def sites(world: str, sfm_dir: Path) -> Iterator[TwoSites]:
    with two_sites(world, sfm_dir) as made:
        yield made


def forwarded(gateway: Service) -> int:
    frames: int = gateway.status()["forwarded"]["frames"]
    return frames


def test_a_full_inbox_behind_a_gateway_holds_up_nobody_else(sites: TwoSites) -> None:
    gateways = [sites.add_gateway(site) for site in ("a", "b")]
    with sites.join("a", "A") as a, sites.join("b", "full") as full, sites.join("b", "B") as b:
        meet_through_gateways(a, full)
        meet_through_gateways(a, b)
        sent: list[int] = []

        def flood() -> None:
            for n in range(60):
                a.send(dest="full", n=n, data=bytes(1_000_000))
                sent.append(n)

        a.buffering = 4_000_000
        flooding = Background(flood)
        wait_until(lambda: len(sent) >= 3)
        before = list(map(forwarded, gateways))
        for n in range(50):
            a.send(dest="B", n=n, data=bytes(n * 1000))
            b.send(dest="A", n=b.recv(src="A").n)
            assert a.recv(src="B").n == n
        after = map(forwarded, gateways)
        assert all(now > then + 100 for now, then in zip(after, before, strict=False))
        assert len(sent) < 10, "nobody has received"
        assert [full.recv(src="A").n for _ in range(60)] == list(range(60))
        flooding.result()


def test_acknowledgements_pass_what_their_process_sends_to_others(sites: TwoSites) -> None:
    gateway = sites.add_gateway("a", limit=2_000_000)
    sites.add_gateway("b")

    def held_up() -> bool:
        return any(process["held_up"] for process in gateway.status()["processes"])

    with ExitStack() as stack:
        a = stack.enter_context(sites.join("a", "A"))
        b = stack.enter_context(sites.join("b", "B"))
        others = [stack.enter_context(sites.join("b", f"C{n}")) for n in range(7)]
        for end in (b, *others):
            meet_through_gateways(a, end)
        flooding = [
            Background(lambda name=receiver.name: a.send(dest=name, data=bytes(2_000_000)))
            for receiver in others
        ]
        wait_until(held_up)
        for n in range(30):  # for longer than it takes to be called out of reach
            b.send(dest="A", n=n)
            assert a.recv(src="B").n == n
            time.sleep(0.1)
            assert link(b, "A").silence is None
        for receiver, call in zip(others, flooding, strict=True):
            assert len(receiver.recv(src="A").data) == 2_000_000
            call.result()


def test_a_weight_belongs_to_the_process_with_the_name(sites: TwoSites) -> None:
    """When two processes crowd a narrow path, the favoured one has three turns of four."""
    sites.add_gateway("a", weights={"favoured": 3.0, "nobody": 9.0}, limit=8_000_000)
    sites.add_gateway("b")
    count, much = 40, bytes(100_000)
    with (
        sites.join("b", "B") as b,
        sites.join("a", "plain") as plain,
        sites.join("a", "favoured") as favoured,
    ):
        for sender in (plain, favoured):
            meet_through_gateways(sender, b)
            sender.buffering = 4 * count * len(much)
        for sender, times in ((plain, 2 * count), (favoured, count)):
            for _ in range(times):
                sender.send(dest="B", data=much)
        order = [b.recv().src for _ in range(3 * count)]
        first, last = order.index("favoured"), len(order) - order[::-1].index("favoured")
        assert "plain" in order[last:], "they have crowded it all the time"
        meanwhile = order[first:last].count("plain")
        assert meanwhile < 0.6 * count, f"{meanwhile} beside {count}: {order}"


def test_a_reservation_is_for_each_gateway_of_another_site(sites: TwoSites) -> None:
    """Connections to the same gateway share it; between gateways of one site there is none."""
    gateway = sites.add_gateway("a", pacing=10_000_000, connections=2)
    for site in ("a", "b", "b", "c"):
        sites.add_gateway(site)

    def given() -> dict[str, list[int | None]]:
        connections = {other["uid"]: other["connections"] for other in gateway.status()["gateways"]}
        return {uid: [each["pacing"] for each in listed] for uid, listed in connections.items()}

    asked = {
        other.gateway.uid: [None] if other.gateway.site == "a" else [5_000_000, 5_000_000]
        for other in sites.gateways[1:]
    }
    wait_until(lambda: given() == asked)


@pytest.mark.parametrize("connections", [1, 3])
def test_a_flow_keeps_to_one_reserved_connection(sites: TwoSites, connections: int) -> None:
    """Each connection has its share of the reservation, and one flow is never faster than that."""
    rate, much = 10_000_000, 8_000_000
    gateway = sites.add_gateway("a", pacing=rate, connections=connections)
    sites.add_gateway("b")

    def reserved() -> list[dict[str, Any]]:
        return [each for other in gateway.status()["gateways"] for each in other["connections"]]

    wait_until(lambda: len(reserved()) == connections)
    with sites.join("a", "A") as a, sites.join("b", "B") as b:
        meet_through_gateways(a, b)
        assert [each["pacing"] for each in reserved()] == connections * [rate // connections]

        def goes_on_one() -> bool:
            """Not while the machine is so busy that the link goes around the gateways."""
            before = [each["sent"]["bytes"] for each in reserved()]
            a.send(dest="B", data=bytes(much))
            b.recv()
            after = [each["sent"]["bytes"] for each in reserved()]
            sent = sorted(now - then for now, then in zip(after, before, strict=False))
            return sent[-1] >= much and sum(sent[:-1]) < much / 2

        wait_until(goes_on_one)


def test_pairs_share_the_gateways_of_their_site(sites: TwoSites) -> None:
    """Also those that come later, as soon as nothing is under way."""
    uids = [sites.add_gateway("a").gateway.uid for _ in range(2)]
    sites.add_gateway("b")
    with sites.join("a", "A") as a, ExitStack() as stack:
        others: list[Endpoint] = []

        def meet() -> None:
            others.append(end := stack.enter_context(sites.join("b")))
            meet_through_gateways(a, end)
            a.send(dest=end.name, n=1)
            assert end.recv().n == 1

        def through() -> dict[str, list[str]]:
            used = {uid: list[str]() for uid in sorted(uids)}
            for end in others:
                nth = (int(a.uid, 16) ^ int(end.uid, 16)) % len(uids)
                used[sorted(uids)[nth]].append(end.uid)
            return {uid: sorted(peers) for uid, peers in used.items()}

        def routes() -> dict[str, list[str]]:
            rows = transport(a).exchange.connections()
            return {row["gateway"]: sorted(row["peers"]) for row in rows}

        while not all(through().values()):
            meet()
        wait_until(lambda: routes() == through())
        uids.append(sites.add_gateway("a").gateway.uid)
        while not all(through().values()):
            meet()
        wait_until(lambda: routes() == through())
        for end in others:
            a.send(dest=end.name, n=2)
            assert end.recv().n == 2
        used = through()
        for service in sites.gateways:
            if peers := used.get(service.gateway.uid):
                assert {flow["receiver"] for flow in service.status()["flows"]} >= set(peers)
