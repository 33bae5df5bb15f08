"""Pairs of programs whose sites are far from each other: each function is one experiment.

Each gets a lab and the route of the messages, and yields rows. It measures the same for any route.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from statistics import median

from sfm_kernel.lessons.measure.rows import Row
from sfm_kernel.lessons.sites.counts import COUNTED, total
from sfm_kernel.lessons.sites.emulated import Emulated
from sfm_kernel.lessons.sites.lab import Lab
from sfm_kernel.lessons.sites.routes import DIRECT, Route
from sfm_kernel.lessons.sites.world import LabWorld, ProgramHandle

MESSAGE = 160_000
"""The size in bytes of most messages of BT and SP between sites, in the paper's Table 2."""
PAUSE = 1.4
"""Seconds for which a pair is silent: longer than several of TCP's timeouts."""
SHORT = (1_000, 1_000_000)
"""Bytes of round trips over a short path."""


def joined(world: LabWorld, pairs: int) -> list[tuple[ProgramHandle, ProgramHandle]]:
    """Pairs of a server at the first site and a client at the second, with settled routes."""
    here, there, *_ = world.lab.sites
    made = []
    for number in range(pairs):
        server = world.program(f"a{number}", here, number % world.hosts(here) + 1)
        client = world.program(f"b{number}", there, number % world.hosts(there) + 1)
        made.append((server, client))
    world.join([program for pair in made for program in pair])
    for server, client in made:
        server.begin("serve")
        client.do("ask", to=server.name, length=1, count=1)
        client.do("settle", to=server.name, kind=world.route.kind)
    return made


def stopped(server: ProgramHandle, client: ProgramHandle) -> Row:
    """Let a client stop its server; return the server's result."""
    client.do("stop", to=server.name)
    return server.end()


def stopped_with_counts(
    world: LabWorld, pairs: Sequence[tuple[ProgramHandle, ProgramHandle]]
) -> dict[str, int]:
    """Stop all servers; return the kernels' counts of both ends of the connections between them."""
    servers, clients = zip(*pairs, strict=True)
    # Before any client sends "stop", which is a message after a silence.
    counts = world.counts(clients)
    for pair in pairs:
        stopped(*pair)
    return counts if world.route.gateways else total([counts, world.counts(servers)])


def start(lab: Lab | Emulated, route: Route = DIRECT) -> Iterator[Row]:
    """The time to the first answer, between a program that waits and one that joins.

    Gateways, if there are any, have met. The program that joins begins to connect, and sends at
    once; another one sends when its connection is there.
    """
    times = _meeting(lab, route, pause=0.0)
    if not route.gateways:
        connected = _meeting(lab, route, pause=20 * lab.rtt)
        times["there once connected"] = connected["first message there"]
    for quantity, seconds in times.items():
        yield {"what": quantity, "seconds": seconds, "rtts": seconds / lab.rtt}


def _meeting(lab: Lab | Emulated, route: Route, pause: float) -> dict[str, float]:
    """Seconds of each part, with a pause between joining and the first message."""
    here, there, *_ = lab.sites
    with LabWorld(lab, route) as world:
        server, client = world.program("a", here), world.program("b", there)
        server.do("join")
        world.settle(server)
        server.begin("serve")
        times = {"join": client.do("join")["join_s"]}
        if route.gateways:
            client.do("settle", to="a", kind=route.kind)
        time.sleep(pause)
        met = client.do("meet", to="a")
        client.do("stop", to="a")
        times["first message there"] = server.end()["first_at"] - met["sent_at"]
        times["first round trip"] = met["round_trips_s"][0]
        times["later round trips"] = median(met["round_trips_s"][1:])
    return times


def after_silence(
    lab: Lab | Emulated,
    route: Route = DIRECT,
    silences: Sequence[float] = (0.0, PAUSE),
    count: int = 5,
) -> Iterator[Row]:
    """160 kB there and an answer, after each silence, of one pair that has sent much before."""
    with LabWorld(lab, route) as world:
        ((server, client),) = joined(world, 1)
        asked = [silence for silence in silences for _ in range(count)]
        times = client.do("ask_silently", to=server.name, length=MESSAGE, silences=asked)["seconds"]
        for number, silence in enumerate(silences):
            seconds = median(times[number * count : (number + 1) * count])
            yield {
                "what": f"160 kB after {silence:g} s of silence",
                "silence_s": silence,
                "seconds": seconds,
                "rtts": seconds / lab.rtt,
            }
        stopped(server, client)


def sizes(
    lab: Lab | Emulated,
    route: Route = DIRECT,
    lengths: Sequence[int] = (1 << 20,),
    amount: int = 48 << 20,
) -> Iterator[Row]:
    """``amount`` bytes in messages of each length, over a connection that is warm."""
    with LabWorld(lab, route) as world:
        ((server, client),) = joined(world, 1)
        client.do("stream", to=server.name, length=1 << 20, count=16)
        rows = []
        for length in lengths:
            count = max(1, amount // length)
            seconds = client.do("stream", to=server.name, length=length, count=count)["seconds"]
            rows.append(
                {
                    "what": f"{count} messages of {length / 1e6:g} MB",
                    "seconds": seconds,
                    "mbit_s": length * count * 8e-6 / seconds,
                }
            )
        counts = stopped_with_counts(world, [(server, client)])
        yield from (row | counts for row in rows)


def small(
    lab: Lab | Emulated, route: Route = DIRECT, length: int = 1000, count: int = 200
) -> Iterator[Row]:
    """Round trips with ``length`` bytes there: if packets get lost, some take long."""
    with LabWorld(lab, route) as world:
        ((server, client),) = joined(world, 1)
        asked = client.do("ask", to=server.name, length=length, count=count, silence=0, warm=0)
        times = sorted(asked["seconds"])
        counts = stopped_with_counts(world, [(server, client)])
        for name, share in (("median", 0.5), ("p90", 0.9), ("p99", 0.99), ("longest", 1.0)):
            seconds = times[min(int(count * share), count - 1)]
            yield {
                "what": f"{length / 1e3:g} kB there and back, {name}",
                "seconds": seconds,
                "rtts": seconds / lab.rtt,
                **counts,
            }


def silent_pairs(
    lab: Lab | Emulated, route: Route = DIRECT, pairs: int = 8, count: int = 5
) -> Iterator[Row]:
    """160 kB from each pair every ``PAUSE`` seconds, the pairs one after the other."""
    with LabWorld(lab, route) as world:
        all_pairs = joined(world, pairs)
        for server, client in all_pairs:  # windows are open at first
            client.do("ask", to=server.name, length=MESSAGE, count=1, warm=4)
            stopped(server, client)  # a program that serves cannot report its counts
        before = world.counts([program for pair in all_pairs for program in pair])
        for server, _ in all_pairs:
            server.begin("serve")
        timers = [
            threading.Timer(
                number * PAUSE / pairs, client.begin, ["ask"],
                {"to": server.name, "length": MESSAGE, "count": count, "silence": PAUSE},
            )
            for number, (server, client) in enumerate(all_pairs)
        ]  # fmt: skip
        for timer in timers:
            timer.start()
        for timer in timers:
            timer.join()
        seconds = [trip for _, client in all_pairs for trip in client.end()["seconds"][1:]]
        after = stopped_with_counts(world, all_pairs)
        yield {
            "what": f"160 kB after {PAUSE:g} s of silence, {pairs} pairs",
            "pairs": pairs,
            "seconds": median(seconds),
            "rtts": median(seconds) / lab.rtt,
            "longest": max(seconds),
            **{name: after[name] - before[name] for name in COUNTED},
            "connections": after["connections"],
        }


def short(
    lab: Lab | Emulated, route: Route = DIRECT, count: int = 300, amount: int = 64 << 20
) -> Iterator[Row]:
    """Round trips, and the rate of large messages, over a short path: the cost of gateways."""
    with LabWorld(lab, route) as world:
        ((server, client),) = joined(world, 1)
        for length in SHORT:
            number = count if length < 100_000 else count // 10
            asked = client.do("ask", to=server.name, length=length, count=number, silence=0.0)
            yield {
                "what": f"{length / 1e3:g} kB there and back",
                "seconds": median(asked["seconds"]),
            }
        rates = []
        for _ in range(3):
            sent = client.do("stream", to=server.name, length=4 << 20, count=amount >> 22)
            rates.append(amount * 8e-6 / sent["seconds"])
        yield {"what": "messages of 4 MB", "seconds": None, "mbit_s": median(rates)}
        stopped(server, client)
