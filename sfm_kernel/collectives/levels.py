"""Levels: which members of a group are near each other, by process, machine and site.

Members on one machine share memory; the first of them represents it. Machines of a site send each
other messages; the first member of each site represents it to the other sites. A level with only
one element is left out: within one site the machines are the outermost level.

The world's directory has the sites, so that all members know them without messages between sites.
Only the processes concerned know that they share memory: the members of a site exchange this once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sfm_kernel.collectives import binomial, direct, doubling, flags, linear
from sfm_kernel.collectives.call import Call
from sfm_kernel.collectives.team import Team

FEW = 8
"""Number of representatives up to which the root talks with all others directly and, between sites,
each with all others: one crossing instead of log2 of them."""

Ranks = list[int]


class Plan(NamedTuple):
    """One level in which this member takes part.

    Attributes:
        name: identifies the level's messages.
        groups: the ranks that each member of the level represents; the first is the member itself.
        rooted: the algorithms for calls with a root.
        rootless: the algorithms for calls in which all members get the result.
    """

    name: str
    groups: list[Ranks]
    rooted: Any
    rootless: Any


class Shape(NamedTuple):
    """The levels as one member knows them, within one epoch of its group.

    Attributes:
        inner: the levels below the outermost in which the member takes part, innermost first.
        outer: the outermost level, if the member takes part in it.
        groups: the ranks of each site, or of each machine of the only site.
        in_order: whether each of these groups has consecutive ranks.
        site_in_order: whether the machines of the member's site do.
    """

    inner: list[Plan]
    outer: Plan | None
    groups: list[Ranks]
    in_order: bool
    site_in_order: bool

    def home(self, rank: int) -> int:
        """The number of the outermost group to which this member belongs."""
        return next(number for number, group in enumerate(self.groups) if rank in group)


class Level(NamedTuple):
    """A level during one call (see ``Plan``); ``call`` is the call among its members."""

    call: Call
    groups: list[Ranks]
    rooted: Any
    rootless: Any


class Levels:
    """The levels of one member during one call (see ``Shape``). Making it begins the call at each
    level."""

    def __init__(self, call: Call) -> None:
        shape: Shape | None = call.team.shape
        if shape is None:
            shape = call.team.shape = _shape(call)
        self.shape = shape
        self.inner = [Level(_inner(call, plan), *plan[1:]) for plan in shape.inner]
        outer = shape.outer
        self.outer = None if outer is None else Level(_inner(call, outer), *outer[1:])


def joined(groups: Sequence[Ranks], lists: Iterable[Sequence[Any]]) -> list[Any]:
    """The values of all groups in the order of ranks, from one list for each group."""
    values = {
        rank: value
        for group, some in zip(groups, lists, strict=True)
        for rank, value in zip(group, some, strict=True)
    }
    return [values[rank] for rank in sorted(values)]


def split(groups: Sequence[Ranks], values: Sequence[Any]) -> list[list[Any]]:
    """The inverse of ``joined``: one list of values for each group."""
    ranks = sorted(rank for group in groups for rank in group)
    by_rank = dict(zip(ranks, values, strict=True))
    return [[by_rank[rank] for rank in group] for group in groups]


def _shape(call: Call) -> Shape:
    sites = call.team.sites
    own_site = next(site for site in sites if call.rank in site)
    machines = _machines(call, own_site, alone=len(sites) == 1)
    own_machine = next(machine for machine in machines if call.rank in machine)
    inner = [Plan("inside", [[rank] for rank in own_machine], flags, flags)]
    groups, rootless = machines, doubling
    if len(sites) > 1:
        inner.append(Plan("machines", machines, binomial, binomial))
        groups, rootless = sites, direct if len(sites) <= FEW else doubling
    outer = Plan("between", groups, linear if len(groups) <= FEW else binomial, rootless)
    return Shape(
        [plan for plan in inner if _takes_part(call.rank, plan)],
        outer if _takes_part(call.rank, outer) else None,
        groups,
        _in_order(groups),
        len(sites) == 1 or _in_order(machines),
    )


def _takes_part(rank: int, plan: Plan) -> bool:
    """Whether the member takes part in the level. A level with one group has no members."""
    return len(plan.groups) > 1 and any(rank == group[0] for group in plan.groups)


def _in_order(groups: Iterable[Ranks]) -> bool:
    """Whether the groups, one after the other, are in the order of ranks."""
    ranks = [rank for group in groups for rank in group]
    return ranks == sorted(ranks)


def _machines(call: Call, site: Ranks, alone: bool) -> list[Ranks]:
    """The ranks of the members on each machine of a site; machines by their first member.

    Members that share memory have the same world folder: the same file, on the same running system.
    The members of the site exchange its identity once.
    """
    team = call.team
    folder = os.stat(team.sfm.folder)
    booted = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    others = [team.members[rank] for rank in site if rank != call.rank]
    lonely = -1 if any(map(team.sfm.shares_memory_with, others)) else call.rank
    own_mark = booted, folder.st_dev, folder.st_ino, lonely
    within = call if alone else _inner(call, Plan("site", [[rank] for rank in site], None, None))
    machines: dict[Any, Ranks] = {}
    for rank, mark in zip(site, doubling.allgather(within, own_mark), strict=True):
        machines.setdefault(mark, []).append(rank)
    return list(machines.values())


def _inner(call: Call, plan: Plan) -> Call:
    """The call among the members of a level."""
    team = call.team
    if plan.name not in team.inner:
        members = [team.members[group[0]] for group in plan.groups]
        token = f"{team.token} {team.epoch} {plan.name}"
        team.inner[plan.name] = Team(team.sfm, members, token, outer=team)
    inner = team.inner[plan.name]
    inner.ledger.begin((call.text, ""), team.mark(call.text))
    return Call(inner, call.text, call.op, call.array)
