"""Many programs at different sites: collectives, and flows that share the path between sites."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from sfm_kernel._native import SCHEDULERS
from sfm_kernel.lessons.measure.rows import Row
from sfm_kernel.lessons.sites.emulated import Emulated
from sfm_kernel.lessons.sites.lab import Lab
from sfm_kernel.lessons.sites.pairs import joined, stopped
from sfm_kernel.lessons.sites.routes import DIRECT, Route
from sfm_kernel.lessons.sites.world import LabWorld


def routes(lab: Lab | Emulated, route: Route = DIRECT) -> Iterator[Row]:
    """The routes from one program to others: in its host, in its site, in another site."""
    here, there, *_ = lab.sites
    with LabWorld(lab, route) as world:
        hosts = {"a1": (here, 1), "a2": (here, 1), "a3": (here, 2), "b1": (there, 1)}
        programs = {name: world.program(name, *host) for name, host in hosts.items()}
        world.join(list(programs.values()))
        first = programs.pop("a1")
        for name in programs:
            site, host = hosts[name]
            if site == there:
                first.do("settle", to=name, kind=route.kind)
            kind = first.do("kind", to=name)["kind"]
            yield {"from": "a1", "to": name, "site": site, "host": host, "route_kind": kind}


def barrier(
    lab: Lab | Emulated, route: Route = DIRECT, each: int = 4, count: int = 20
) -> Iterator[Row]:
    """A barrier of ``each`` ranks in each of two sites, in blocks and alternating between sites."""
    with LabWorld(lab, route) as world:
        ranks = {
            site: [
                world.program(f"{site}{number}", site, number % world.hosts(site) + 1)
                for number in range(each)
            ]
            for site in lab.sites
        }
        programs = [program for many in ranks.values() for program in many]
        world.join(programs)
        blocks = [program.name for program in programs]
        in_turn = [program.name for some in zip(*ranks.values(), strict=True) for program in some]
        for name, order in (("contiguous", blocks), ("interleaved", in_turn)):
            for program in programs:
                program.begin("barriers", members=order, count=count)
            times = [program.end()["seconds"] for program in programs]
            seconds = median(map(max, zip(*times, strict=True)))
            yield {"what": f"barrier, {name}", "seconds": seconds, "rtts": seconds / lab.rtt}


def requests(
    lab: Lab | Emulated,
    route: Route = DIRECT,
    schedulers: Sequence[str] = SCHEDULERS,
    seconds: float = 6.0,
    bulks: int = 1,
) -> Iterator[Row]:
    """1 kB questions of one pair beside 4 MB messages of others, over one narrow path."""
    beside = "4 MB" if bulks == 1 else f"{bulks} times 4 MB"
    for scheduler in schedulers if route.gateways else ("no gateway",):
        scheduled = route.with_options("--scheduler", scheduler) if route.gateways else route
        with LabWorld(lab, scheduled) as world:
            *bulky, (server, client) = joined(world, bulks + 1)
            for receiver, sender in bulky:
                sender.begin("bulk", to=receiver.name, length=4 << 20, seconds=seconds + 1.5)
            client.do("request", to=server.name, length=1000, seconds=1.0, pause=0.02)
            asked = client.do("request", to=server.name, length=1000, seconds=seconds, pause=0.02)
            sent = [sender.end() for _, sender in bulky]
            took = sorted(asked["seconds"])
            for name, quantile in (("median", 0.5), ("p90", 0.9)):
                yield {
                    "what": f"1 kB beside {beside}, {scheduler}, {name}",
                    "scheduler": scheduler,
                    "seconds": took[int(len(took) * quantile)],
                    "rtts": took[int(len(took) * quantile)] / lab.rtt,
                    "mbit_s": sum(result["messages"] * (4 << 20) * 8e-6 / result["seconds"]
                                  for result in sent),
                }  # fmt: skip
            for pair in (*bulky, (server, client)):
                stopped(*pair)
