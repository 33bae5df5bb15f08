"""Bare TCP between two sites, on which all messages between sites depend; messages beside it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from statistics import median
from typing import Any

from sfm_kernel.errors import SFMError
from sfm_kernel.lessons.measure.rows import Row
from sfm_kernel.lessons.sites.lab import Lab
from sfm_kernel.lessons.sites.pairs import MESSAGE, joined, stopped
from sfm_kernel.lessons.sites.routes import DIRECT, Route
from sfm_kernel.lessons.sites.world import LabWorld

PORT = 7098


def ask(lab: Lab, **job: Any) -> dict[str, Any]:
    """Let ``raw`` do a job between the first hosts of the first two sites."""
    here, there, *_ = lab.sites
    raw = [sys.executable, "-m", "sfm_kernel.lessons.sites.raw"]
    address, pipe = lab.address(there), subprocess.PIPE
    with lab.run(there, [*raw, "serve", address, str(PORT)], stdout=pipe, text=True) as server:
        assert server.stdout is not None
        try:
            server.stdout.readline()
            lab.clear()  # delays during the programs' start do not count
            command = [*raw, "ask", address, str(PORT), json.dumps(job)]
            output, _ = lab.run(here, command, stdout=pipe, text=True).communicate()
        finally:
            server.kill()
    if not output:
        raise SFMError("the lab's TCP client has failed: its reason is above")
    answer: dict[str, Any] = json.loads(output)
    return answer


def silence(lab: Lab, silences: tuple[float, ...], count: int = 3) -> Iterator[Row]:
    """160 kB after a silence: the number of round trips, and the window before."""
    answer = ask(lab, job="after_silence", length=MESSAGE, silences=silences, count=count)
    for row in answer["rows"]:
        yield {
            "what": f"160 kB after {row['silence_s']:g} s of silence",
            "silence_s": row["silence_s"],
            "seconds": row["seconds"],
            "rtts": row["seconds"] / lab.rtt,
            "cwnd": row["cwnd_before"],
        }


def bulk(lab: Lab, length: int, count: int = 3) -> Iterator[Row]:
    """``length`` bytes again and again over one connection."""
    answer = ask(lab, job="bulk", length=length, count=count)
    for number, seconds in enumerate(answer["seconds"], start=1):
        yield {
            "what": f"{length / 1e6:g} MB, time {number}",
            "seconds": seconds,
            "mbit_s": length * 8e-6 / seconds,
            "retransmitted": answer["total_retrans"],
        }


WARMING = 4
"""Messages after which a connection is warm. As long as the kernel's send buffer (at most what
``net.ipv4.tcp_wmem`` says) holds less than BBR would like to have under way, BBR takes the path for
one that becomes faster and faster, and loses what its queue has no room for."""


def beside(
    lab: Lab, route: Route = DIRECT, length: int = 16 << 20, count: int = 5
) -> Iterator[Row]:
    """``length`` bytes again and again: messages, and bare TCP before and after them."""

    def bare() -> list[float]:
        seconds: list[float] = ask(lab, job="bulk", length=length, count=WARMING + count)["seconds"]
        return seconds

    times = {"bare TCP": [bare()]}
    with LabWorld(lab, route) as world:
        ((server, client),) = joined(world, 1)
        asked = client.do("ask", to=server.name, length=length, count=WARMING + count)
        times["a message"] = [asked["seconds"]]
        stopped(server, client)
    times["bare TCP"].append(bare())
    for how, runs in times.items():
        for when, part in (("at first", slice(WARMING)), ("warm", slice(WARMING, None))):
            seconds = median(time for run in runs for time in run[part])
            yield {
                "what": f"{length / 1e6:g} MB, {how}, {when}",
                "seconds": seconds,
                "mbit_s": length * 8e-6 / seconds,
            }
