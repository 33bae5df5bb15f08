"""Two levels: memory inside each machine, messages between one representative of each.

The members of a machine reduce through flags; the first of each machine, its representative, talks
with the other representatives; then each machine learns the result through flags again. Over the
network go m - 1 messages up and m - 1 down for m machines, whatever the number of members; the
depth is 2 ceil(log2 m) messages.

The order of the members is kept where each machine has neighbours in that order. Where it is not,
the members of a machine are combined first: an operation must then be commutative.

Source: J. Van Iwaarden, J. Steinman, G. Blank, "A Combined Shared Memory and TCP/IP Implementation
of the SPEEDES Communications Library", sections 3.1 and 3.3 (complete reductions through each local
node 0).
"""

from __future__ import annotations

import os
from typing import Any

from sfm_kernel.collectives import doubling, flags, linear
from sfm_kernel.collectives.call import Call
from sfm_kernel.collectives.team import Team


def barrier(call: Call) -> None:
    local, heads = _levels(call)
    flags.barrier(local)
    if heads is not None:
        doubling.barrier(heads)
    flags.barrier(local)


def bcast(call: Call, value: Any, root: int) -> Any:
    local, heads = _levels(call)
    machines = machines_of(call)
    home = next(nth for nth, machine in enumerate(machines) if root in machine)
    here = call.rank in machines[home]
    if here:
        value = flags.bcast(local, value, machines[home].index(root))
    if heads is not None:
        value = linear.bcast(heads, value, home)
    return value if here else flags.bcast(local, value, 0)


def reduce(call: Call, value: Any, root: int) -> Any:
    total = allreduce(call, value)
    return total if call.rank == root else None


def allreduce(call: Call, value: Any) -> Any:
    local, heads = _levels(call)
    total = flags.allreduce(local, value)
    if heads is not None:
        total = doubling.allreduce(heads, total)
    return flags.bcast(local, total, 0)


def allgather(call: Call, value: Any) -> list[Any]:
    local, heads = _levels(call)
    whole: Any = flags.allgather(local, value)
    machines = machines_of(call)
    if heads is not None:
        whole = doubling.allgather(heads, whole)
    parts = flags.bcast(local, whole, 0)
    values = [None] * call.size
    for machine, part in zip(machines, parts, strict=True):
        for place, one in zip(machine, part, strict=True):
            values[place] = one
    return values


def machines_of(call: Call) -> list[list[int]]:
    """The places of the members of each machine; machines by their first member.

    What members that share memory have in common is their world's folder: the same file, on the
    same running system. They tell each other once.
    """
    team = call.team
    if team.machines is None:
        there = os.stat(team.sfm.folder)
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            booted = file.read().strip()
        others = [one for one in team.members if one.uid != team.sfm.uid]
        alone = -1 if any(map(team.sfm.shares_memory_with, others)) else team.place
        marks = doubling.allgather(call, (booted, there.st_dev, there.st_ino, alone))
        machines: dict[Any, list[int]] = {}
        for place, mark in enumerate(marks):
            machines.setdefault(mark, []).append(place)
        team.machines = list(machines.values())
    return team.machines


def _levels(call: Call) -> tuple[Call, Call | None]:
    """The call among the members of this machine; and, for its first, among representatives."""
    machines = machines_of(call)
    here = next(machine for machine in machines if call.rank in machine)
    heads = [machine[0] for machine in machines]
    local = _inner(call, here, "inside")
    return local, _inner(call, heads, "between") if call.rank in heads else None


def _inner(call: Call, places: list[int], level: str) -> Call:
    team = call.team
    if level not in team.inner:
        members = [team.members[place] for place in places]
        token = f"{team.token} {team.epoch} {level}"
        team.inner[level] = Team(team.sfm, members, token, outer=team)
    inner = team.inner[level]
    inner.ledger.begin((call.what, ""), team.mark(call.what))
    return Call(inner, call.what, call.op, call.array)
