"""Random programs on MPI's interface: every message arrives whole, once, and in its order."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel import mpi

SIZES = (0, 1, 8, 1000, 100_000, (1 << 18) + 3, 1_100_000)
MODES = ("isend", "issend", "Isend", "Issend", "ibsend")


def plan(seed: int, ranks: int, count: int) -> list[dict[str, Any]]:
    """All messages: their senders, receivers, tags, sizes and modes; the same on all ranks."""
    dice = random.Random(seed)
    return [
        {
            "number": number,
            "src": dice.randrange(ranks),
            "dest": dice.randrange(ranks),
            "tag": dice.randrange(3),
            "size": dice.choice(SIZES),
            "mode": dice.choice(MODES),
        }
        for number in range(count)
    ]


def program(sfm: Any, seed: int, count: int) -> int:
    """Take part in the plan; return the number of messages that came."""
    mpi.use(sfm)
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    MPI.Attach_buffer(bytearray(1 << 24))
    dice = random.Random(seed * 1000 + comm.rank)
    messages = plan(seed, comm.size, count)
    out = [message for message in messages if message["src"] == comm.rank]
    # With one tag from one sender, receives are posted in the order of the sends.
    incoming = [message for message in messages if message["dest"] == comm.rank]
    steps = [("send", message) for message in out]
    for place, message in zip(
        sorted(dice.randrange(len(steps) + 1) for _ in incoming), incoming, strict=True
    ):
        steps.insert(min(place, len(steps)), ("receive", message))
    steps = in_order(steps)

    requests: list[Any] = []
    checks: dict[int, Any] = {}
    for kind, message in steps:
        data = np.full(message["size"], message["number"] % 251, np.uint8)
        is_object = message["mode"] in ("isend", "issend", "ibsend")
        if kind == "send":
            call = getattr(comm, message["mode"])
            small = {"number": message["number"], "data": data[:1000]}
            requests.append(call(small if is_object else data, message["dest"], message["tag"]))
        else:
            into = None if is_object else np.empty(message["size"] + dice.randrange(3), np.uint8)
            start = comm.irecv if is_object else comm.Irecv
            checks[len(requests)] = (message, into)
            requests.append(start(into, message["src"], message["tag"]))
        if dice.random() < 0.2:
            MPI.Request.Get_status_any(requests)

    values: dict[int, Any] = {}
    left = list(range(len(requests)))
    while left:
        way = dice.randrange(4)
        some = dice.sample(left, min(len(left), dice.randrange(1, 8)))
        chosen = [requests[nth] for nth in some]
        if way == 0:
            found = dict(zip(some, MPI.Request.waitall(chosen), strict=True))
        elif way == 1:
            index, value = MPI.Request.waitany(chosen)
            found = {some[index]: value}
        elif way == 2:
            indices, objects = MPI.Request.waitsome(chosen)
            found = {some[i]: value for i, value in zip(indices, objects, strict=True)}
        else:
            flag, value = chosen[0].test()
            found = {some[0]: value} if flag else {}
        values |= found
        left = [nth for nth in left if nth not in values]
    MPI.Detach_buffer()
    for nth, (message, into) in checks.items():
        expected = message["number"] % 251
        if into is None:
            assert values[nth]["number"] == message["number"], (message, values[nth])
            assert (values[nth]["data"] == expected).all()
        else:
            assert (into[: message["size"]] == expected).all(), message
    comm.Barrier()
    assert not comm.Iprobe()
    return len(checks)


def in_order(steps: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    """Sends by number, receives by number, in the places that they have."""
    sends = iter(sorted((step for step in steps if step[0] == "send"), key=_number))
    receives = iter(sorted((step for step in steps if step[0] == "receive"), key=_number))
    return [next(sends) if kind == "send" else next(receives) for kind, _ in steps]


def _number(step: tuple[str, dict[str, Any]]) -> int:
    return int(step[1]["number"])


@pytest.mark.parametrize("ranks", [2, 4])
def test_random_programs(ranks: int, effort: int) -> None:
    for seed in range(3 * effort):
        came = sfm_kernel.run(program, ranks, seed, 60, timeout=120)
        assert sum(came) == 60
