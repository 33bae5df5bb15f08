"""Failures of the path between sites, or of a gateway, as programs at these sites see them.

Messages are numbered: a row has the numbers of messages that were lost, doubled or out of order.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median

from sfm_kernel.errors import SFMError
from sfm_kernel.lessons.measure.rows import Row
from sfm_kernel.lessons.sites.emulated import Emulated
from sfm_kernel.lessons.sites.lab import Lab
from sfm_kernel.lessons.sites.pairs import joined, stopped
from sfm_kernel.lessons.sites.routes import DIRECT, Route
from sfm_kernel.lessons.sites.world import LabWorld

BEFORE = 1.0
"""Seconds of traffic before something fails."""
KILLED = 0.6
"""Seconds in which the others notice that a process was killed, and is not only silent."""


def cut(
    lab: Lab, route: Route = DIRECT, seconds: float = 5.0, patience: float = 10.0
) -> Iterator[Row]:
    """A pair asks and answers all the time, and nothing passes for ``seconds``."""
    with LabWorld(lab, route) as world:
        ((server, client),) = joined(world, 1)
        limits = {"seconds": BEFORE + seconds + patience, "late": seconds / 2}
        client.begin("beat", to=server.name, **limits)
        time.sleep(BEFORE)
        began = time.monotonic()
        lab.cut(seconds)
        over = time.monotonic()
        result = client.end()
        later = [heard for _, heard in result["beats"] if heard is not None and heard > began + 0.5]
        row: Row = {
            "what": f"cut of {seconds:g} s",
            # From the moment at which messages could pass again to the first answer.
            "seconds": later[0] - over if later else None,
            "asked": len(result["beats"]),
            "unheard": sum(heard is None for _, heard in result["beats"]),
            "ended": result["ended"] or ("went on" if later else "no error, nothing came any more"),
        }
        if result["ended"]:
            server.kill()  # it may never hear from its client again
        else:
            received = stopped(server, client)
            row |= {name: received[name] for name in LOSSES}
        yield row


LOSSES = ("heard", "lost", "doubled", "late")


def reset(
    lab: Lab | Emulated,
    route: Route = DIRECT,
    resets: int = 3,
    length: int = 64 << 10,
    pairs: int = 1,
) -> Iterator[Row]:
    """Connections are reset again and again while all queues are full."""
    yield from _flooded(lab, route, "resets with full queues", resets, length, pairs)


def killed(
    lab: Lab | Emulated, route: Route = DIRECT, length: int = 16 << 10, pairs: int = 4
) -> Iterator[Row]:
    """A gateway is killed while pairs send: another of its site takes over, or there is none."""
    if route.gateways:
        others = "another there" if route.gateways > 1 else "the only one"
        yield from _flooded(lab, route, f"gateway killed, {others}", 0, length, pairs)


def died(lab: Lab | Emulated, route: Route = DIRECT, count: int = 5) -> Iterator[Row]:
    """A program is killed, and another one waits for its message: how long until PeerLost."""
    with LabWorld(lab, route) as world:
        times = []
        for server, client in joined(world, count):
            client.begin("lose", src=server.name)
            time.sleep(BEFORE)
            began = time.monotonic()
            server.kill()
            times.append(client.end()["at"] - began)
        yield {
            "what": "PeerLost after a kill",
            "seconds": median(times),
            "longest": max(times),
            "rtts": median(times) / lab.rtt,
        }


def _flooded(
    lab: Lab | Emulated,
    route: Route,
    what: str,
    resets: int,
    length: int,
    pairs: int,
    patience: float = 60.0,
) -> Iterator[Row]:
    with LabWorld(lab, route) as world:
        made = joined(world, pairs)
        seconds = BEFORE + 2.0 * max(resets, 1)
        for server, client in made:
            client.begin("flood", to=server.name, length=length, seconds=seconds, patience=patience)
        time.sleep(BEFORE)
        failed = []
        for _ in range(resets):
            failed.append(time.monotonic())
            assert isinstance(lab, Lab)  # an emulated lab cannot reset connections
            lab.reset_connections()
            time.sleep(2.0)
        if not resets:
            failed.append(time.monotonic())
            next(iter(world.gateways.values()))[0].kill()
        row: Row = {"what": what, "sent": 0, "ended": "went on"}
        silences = []
        for server, client in made:
            try:
                row["sent"] += client.end()["sent"]
            except SFMError as error:
                row["ended"] = str(error)
                server.kill()
                continue
            received = stopped(server, client)
            for name in LOSSES:
                row[name] = row.get(name, 0) + received[name]
            row["kind"] = client.do("kind", to=server.name)["kind"]
            silences += received["silences"]
        # The longest silence of any receiver that a failure can have caused.
        lasting = [
            end - max(begin, failure)
            for begin, end in silences
            for failure in failed
            if begin < failure + KILLED and end > failure
        ]
        yield row | {"seconds": max(lasting, default=0.0)}
