"""Levels: which members of a group are near each other. Process, machine, site.

Members of a machine share memory; the first of each speaks for it. Machines of a site send each
other messages; the first member of each site speaks for that, to the other sites. A level at which
there is only one is left out: in one site the machines are the outermost level.

Sites stand in the world's table, so that all members know them alike, and nobody asks across the
way between them. Who shares memory is known on the spot only: the members of a site tell each
other once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sfm_kernel.collectives import binomial, direct, doubling, flags, linear
from sfm_kernel.collectives.call import Call
from sfm_kernel.collectives.team import Team

FEW = 8
"""Up to so many representatives one of them talks with all others itself, and, between sites, each
of them does: one crossing instead of log2 of them."""

Places = list[int]


class Plan(NamedTuple):
    """One level, in which this member takes part.

    Attributes:
        name: what tells its messages from those of other levels.
        groups: for whom its members speak, each for the first of its group and all others in it.
        one, all: the algorithms with a root, and those by which all learn the same.
    """

    name: str
    groups: list[Places]
    one: Any
    all: Any


class Shape(NamedTuple):
    """What one member knows of the levels, until its group begins a new epoch.

    Attributes:
        inner: the levels below the outermost, from the inside, as far as the member speaks there.
        outer: the outermost, if the member speaks there.
        groups: for whom its members speak: all sites, or all machines of the only site.
        in_order: whether these groups have neighbours in the order of the places.
        in_order_here: whether the machines of the member's own site do.
    """

    inner: list[Plan]
    outer: Plan | None
    groups: list[Places]
    in_order: bool
    in_order_here: bool

    def home(self, place: int) -> int:
        """The group of the outermost level to which this member belongs."""
        return next(nth for nth, one in enumerate(self.groups) if place in one)


class Level:
    """A level in one call; see ``Plan``.

    Attributes:
        call: the call among its members.
    """

    def __init__(self, call: Call, plan: Plan) -> None:
        self.call = _inner(call, plan)
        self.groups, self.one, self.all = plan[1:]


class Levels:
    """The levels in one call, of one member, which thereby begins it at each; see ``Shape``."""

    def __init__(self, call: Call) -> None:
        shape: Shape | None = call.team.shape
        if shape is None:
            shape = call.team.shape = _shape(call)
        self.shape = shape
        self.inner = [Level(call, one) for one in shape.inner]
        self.outer = None if shape.outer is None else Level(call, shape.outer)


def joined(groups: Sequence[Places], parts: Iterable[Sequence[Any]]) -> list[Any]:
    """What the groups have brought, each in the order of its places, in the order of all places."""
    values = {
        place: value
        for group, part in zip(groups, parts, strict=True)
        for place, value in zip(group, part, strict=True)
    }
    return [values[place] for place in sorted(values)]


def split(groups: Sequence[Places], values: Sequence[Any]) -> list[list[Any]]:
    """The parts of which ``joined`` makes these values."""
    places = sorted(place for group in groups for place in group)
    of = dict(zip(places, values, strict=True))
    return [[of[place] for place in group] for group in groups]


def _shape(call: Call) -> Shape:
    sites = call.team.sites
    here = next(site for site in sites if call.rank in site)
    machines = _machines(call, here, alone=len(sites) == 1)
    machine = next(one for one in machines if call.rank in one)
    inner = [Plan("inside", [[place] for place in machine], flags, flags)]
    groups, several = machines, doubling
    if len(sites) > 1:
        inner.append(Plan("machines", machines, binomial, binomial))
        groups, several = sites, direct if len(sites) <= FEW else doubling
    outer = Plan("between", groups, linear if len(groups) <= FEW else binomial, several)
    return Shape(
        [one for one in inner if _speaks(call.rank, one)],
        outer if _speaks(call.rank, outer) else None,
        groups,
        _in_order(groups),
        len(sites) == 1 or _in_order(machines),
    )


def _speaks(place: int, plan: Plan) -> bool:
    """Whether the member takes part; nobody does where there is only one."""
    return len(plan.groups) > 1 and any(place == group[0] for group in plan.groups)


def _in_order(groups: Iterable[Places]) -> bool:
    """Whether one group after the other is the order of the places."""
    places = [place for group in groups for place in group]
    return places == sorted(places)


def _machines(call: Call, here: Places, alone: bool) -> list[Places]:
    """The places of the members of each machine of this site; machines by their first member.

    What members that share memory have in common is their world's folder: the same file, on the
    same running system. They tell each other once.
    """
    team = call.team
    there = os.stat(team.sfm.folder)
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        booted = file.read().strip()
    others = [team.members[place] for place in here if place != call.rank]
    lonely = -1 if any(map(team.sfm.shares_memory_with, others)) else call.rank
    own = booted, there.st_dev, there.st_ino, lonely
    among = call if alone else _inner(call, Plan("site", [[one] for one in here], None, None))
    machines: dict[Any, Places] = {}
    for place, mark in zip(here, doubling.allgather(among, own), strict=True):
        machines.setdefault(mark, []).append(place)
    return list(machines.values())


def _inner(call: Call, plan: Plan) -> Call:
    """The call among the members of a level."""
    team = call.team
    if plan.name not in team.inner:
        members = [team.members[group[0]] for group in plan.groups]
        token = f"{team.token} {team.epoch} {plan.name}"
        team.inner[plan.name] = Team(team.sfm, members, token, outer=team)
    inner = team.inner[plan.name]
    inner.ledger.begin((call.what, ""), team.mark(call.what))
    return Call(inner, call.what, call.op, call.array)
