"""What programs at different sites see when the way between them fails, or one of their gateways.

Messages are numbered: a row says how many were lost, came twice or out of order.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from sfm_kernel.errors import SFMError
from sfm_kernel.lessons.measure.rows import Row
from sfm_kernel.lessons.sites.emulated import Emulated
from sfm_kernel.lessons.sites.lab import Lab
from sfm_kernel.lessons.sites.pairs import joined, part
from sfm_kernel.lessons.sites.ways import DIRECT, Way
from sfm_kernel.lessons.sites.world import LabWorld

BEFORE = 2.0
"""Seconds of traffic before something fails."""
KILLED = 0.6
"""Seconds within which a process that was killed is told from one that is silent."""


def cut(lab: Lab, way: Way = DIRECT, seconds: float = 5.0, patience: float = 10.0) -> Iterator[Row]:
    """A pair that asks and answers all the time, and nothing passes for so long."""
    with LabWorld(lab, way) as world:
        ((server, client),) = joined(world, 1)
        client.begin("beat", to=server.name, seconds=BEFORE + seconds + patience)
        time.sleep(BEFORE)
        began = time.monotonic()
        lab.cut(seconds)
        over = time.monotonic()
        told = client.end()
        later = [heard for _, heard in told["beats"] if heard is not None and heard > began + 0.5]
        row: Row = {
            "what": f"cut of {seconds:g} s",
            # From the moment at which messages could pass again to the first answer.
            "seconds": later[0] - over if later else None,
            "asked": len(told["beats"]),
            "unheard": sum(heard is None for _, heard in told["beats"]),
            "ended": told["ended"] or ("went on" if later else "no error, nothing came any more"),
        }
        if told["ended"]:
            server.kill()  # it may never hear of its client again
        else:
            row |= {
                name: part_of for name, part_of in part(server, client).items() if name in LOSSES
            }
        yield row


LOSSES = ("heard", "lost", "doubled", "late")


def reset(
    lab: Lab | Emulated, way: Way = DIRECT, resets: int = 3, length: int = 64 << 10, pairs: int = 1
) -> Iterator[Row]:
    """Connections are reset again and again while as much is under way as there can be."""
    yield from _flooded(lab, way, "resets with full queues", resets, length, pairs)


def killed(
    lab: Lab | Emulated, way: Way = DIRECT, length: int = 16 << 10, pairs: int = 4
) -> Iterator[Row]:
    """A gateway is killed while pairs send: another one of its site takes over, or none is left."""
    if way.gateways:
        left = "another there" if way.gateways > 1 else "the only one"
        yield from _flooded(lab, way, f"gateway killed, {left}", 0, length, pairs)


def _flooded(
    lab: Lab | Emulated,
    way: Way,
    what: str,
    resets: int,
    length: int,
    pairs: int,
    patience: float = 60.0,
) -> Iterator[Row]:
    with LabWorld(lab, way) as world:
        made = joined(world, pairs)
        seconds = BEFORE + 2.0 * max(resets, 1)
        for server, client in made:
            client.begin("flood", to=server.name, length=length, seconds=seconds, patience=patience)
        time.sleep(BEFORE)
        failed = []
        for _ in range(resets):
            failed.append(time.monotonic())
            assert isinstance(lab, Lab)  # who plays a way cannot reset what goes through it
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
            told = part(server, client)
            for name in LOSSES:
                row[name] = row.get(name, 0) + told[name]
            row["kind"] = client.do("kind", to=server.name)["kind"]
            silences += told["silences"]
        # The longest silence of any receiver that something which failed can have caused.
        lasting = [
            end - max(begin, at)
            for begin, end in silences
            for at in failed
            if begin < at + KILLED and end > at
        ]
        yield row | {"seconds": max(lasting, default=0.0)}
