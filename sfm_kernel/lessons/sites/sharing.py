"""Many programs at different sites: collectives, and flows that share the way between sites."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from sfm_kernel._native import SCHEDULERS
from sfm_kernel.lessons.measure.rows import Row
from sfm_kernel.lessons.sites.emulated import Emulated
from sfm_kernel.lessons.sites.lab import Lab
from sfm_kernel.lessons.sites.pairs import joined, part
from sfm_kernel.lessons.sites.ways import DIRECT, Way
from sfm_kernel.lessons.sites.world import LabWorld


def routes(lab: Lab | Emulated, way: Way = DIRECT) -> Iterator[Row]:
    """How messages of one program get to others: of its host, of its site, of another site."""
    here, there, *_ = lab.sites
    with LabWorld(lab, way) as world:
        places = {"a1": (here, 1), "a2": (here, 1), "a3": (here, 2), "b1": (there, 1)}
        programs = {name: world.program(name, *place) for name, place in places.items()}
        world.join(list(programs.values()))
        first = programs.pop("a1")
        for name in programs:
            site, host = places[name]
            if site == there:
                first.do("settle", to=name, kind=way.kind)
            kind = first.do("kind", to=name)["kind"]
            yield {"from": "a1", "to": name, "site": site, "host": host, "route_kind": kind}


def barrier(
    lab: Lab | Emulated, way: Way = DIRECT, each: int = 4, count: int = 20
) -> Iterator[Row]:
    """A barrier of as many ranks in each of two sites, in blocks and taken from sites in turn."""
    with LabWorld(lab, way) as world:
        ranks = {
            site: [
                world.program(f"{site}{number}", site, number % world.hosts(site) + 1)
                for number in range(each)
            ]
            for site in lab.sites
        }
        everybody = [one for many in ranks.values() for one in many]
        world.join(everybody)
        blocks = [one.name for one in everybody]
        in_turn = [one.name for some in zip(*ranks.values(), strict=True) for one in some]
        for name, order in (("contiguous", blocks), ("interleaved", in_turn)):
            for one in everybody:
                one.begin("barriers", members=order, count=count)
            told = [one.end()["seconds"] for one in everybody]
            seconds = median(map(max, zip(*told, strict=True)))
            yield {"what": f"barrier, {name}", "seconds": seconds, "rtts": seconds / lab.rtt}


def requests(
    lab: Lab | Emulated,
    way: Way = DIRECT,
    schedulers: Sequence[str] = SCHEDULERS,
    seconds: float = 6.0,
    bulks: int = 1,
) -> Iterator[Row]:
    """1 kB questions of one pair beside 4 MB messages of others, over the one narrow way."""
    beside = "4 MB" if bulks == 1 else f"{bulks} times 4 MB"
    for scheduler in schedulers if way.gateways else ("no gateway",):
        its = way.with_options("--scheduler", scheduler) if way.gateways else way
        with LabWorld(lab, its) as world:
            *bulky, (server, client) = joined(world, bulks + 1)
            for one, sender in bulky:
                sender.begin("bulk", to=one.name, length=4 << 20, seconds=seconds + 1.5)
            client.do("request", to=server.name, length=1000, seconds=1.0, pause=0.02)
            told = client.do("request", to=server.name, length=1000, seconds=seconds, pause=0.02)
            sent = [sender.end() for _, sender in bulky]
            took = sorted(told["seconds"])
            for name, at in (("median", 0.5), ("p90", 0.9)):
                yield {
                    "what": f"1 kB beside {beside}, {scheduler}, {name}",
                    "scheduler": scheduler,
                    "seconds": took[int(len(took) * at)],
                    "rtts": took[int(len(took) * at)] / lab.rtt,
                    "mbit_s": sum(one["messages"] * (4 << 20) * 8e-6 / one["seconds"]
                                  for one in sent),
                }  # fmt: skip
            for pair in (*bulky, (server, client)):
                part(*pair)
