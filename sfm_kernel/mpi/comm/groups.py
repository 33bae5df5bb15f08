"""Group: processes in an order, without any communication."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Self

from sfm_kernel.mpi.base.constants import (
    ERR_ARG,
    ERR_GROUP,
    ERR_RANK,
    IDENT,
    PROC_NULL,
    SIMILAR,
    UNDEFINED,
    UNEQUAL,
)
from sfm_kernel.mpi.base.errors import fail
from sfm_kernel.mpi.base.handle import Handle
from sfm_kernel.mpi.base.scalars import scalar
from sfm_kernel.mpi.base.sessions import SELF, WORLD, Session
from sfm_kernel.mpi.engine.process import process
from sfm_kernel.transport.base import Name


class Members:
    """What the handles of one group share: the names of its processes, by rank."""

    __slots__ = ("__weakref__", "names")

    def __init__(self, names: Iterable[Name]) -> None:
        self.names = tuple(names)


class Group(Handle[Members]):
    """Processes in an order. A process has at most one place, its *rank*, in each group."""

    __slots__ = ()
    _null_error = ERR_GROUP

    @classmethod
    def _of_names(cls, names: Iterable[Name]) -> Self:
        """The group of the processes with these names; of none, it equals GROUP_EMPTY."""
        members = Members(names)
        return cls._of(members if members.names else GROUP_EMPTY._state)

    @property
    def _names(self) -> tuple[Name, ...]:
        return self._live.names

    # ---- who ----

    def Get_size(self) -> int:
        """How many processes it has."""
        return len(self._names)

    @property
    def size(self) -> int:
        """How many processes it has."""
        return self.Get_size()

    def Get_rank(self) -> int:
        """This process's place in it; UNDEFINED if it has none."""
        names, own = self._names, process().sfm.name
        return names.index(own) if own in names else UNDEFINED

    @property
    def rank(self) -> int:
        """This process's place in it; UNDEFINED if it has none."""
        return self.Get_rank()

    def Translate_ranks(
        self, ranks: Sequence[int] | None = None, group: Group | None = None
    ) -> list[int]:
        """Which ranks the processes with these ranks have in another group.

        Args:
            ranks: all, if None. PROC_NULL stays as it is.
            group: that of COMM_WORLD, if None.
        Returns:
            For each of them the rank there, or UNDEFINED.
        Raises:
            Exception: ERR_RANK: a number is no rank of this group.
        """
        names = self._names
        there = process().names if group is None else _names_of(group)
        place = {name: rank for rank, name in enumerate(there)}
        if ranks is None:
            ranks = range(len(names))
        asked = [operator.index(rank) for rank in ranks]
        self._check_ranks(one for one in asked if one != PROC_NULL)
        return [
            PROC_NULL if one == PROC_NULL else place.get(names[one], UNDEFINED) for one in asked
        ]

    def Compare(self, group: Group) -> int:
        """IDENT: the same processes in the same order; SIMILAR: in another order; else UNEQUAL."""
        mine, other = self._names, _names_of(group)
        if mine == other:
            return IDENT
        return SIMILAR if set(mine) == set(other) else UNEQUAL

    # ---- other groups ----

    def Dup(self) -> Self:
        """Another group of the same processes in the same order."""
        return self._of_names(self._names)

    @classmethod
    def Union(cls, group1: Group, group2: Group) -> Self:
        """The processes of the first, then those of the second that are not in the first."""
        first, second = _names_of(group1), _names_of(group2)
        return cls._of_names(dict.fromkeys(first + second))

    @classmethod
    def Intersection(cls, group1: Group, group2: Group) -> Self:
        """The processes of the first that are in the second."""
        first, second = _names_of(group1), set(_names_of(group2))
        return cls._of_names(name for name in first if name in second)

    @classmethod
    def Intersect(cls, group1: Group, group2: Group) -> Self:
        """As ``Intersection``."""
        return cls.Intersection(group1, group2)

    @classmethod
    def Difference(cls, group1: Group, group2: Group) -> Self:
        """The processes of the first that are not in the second."""
        first, second = _names_of(group1), set(_names_of(group2))
        return cls._of_names(name for name in first if name not in second)

    def Incl(self, ranks: Sequence[int]) -> Self:
        """The processes with these ranks, in this order.

        Raises:
            Exception: ERR_RANK: a number is no rank of this group, or comes twice.
        """
        names = self._names
        return self._of_names(names[rank] for rank in self._distinct(ranks))

    def Excl(self, ranks: Sequence[int]) -> Self:
        """The processes without those that have these ranks. Raises as ``Incl``."""
        names, left_out = self._names, set(self._distinct(ranks))
        return self._of_names(name for rank, name in enumerate(names) if rank not in left_out)

    def Range_incl(self, ranks: Sequence[tuple[int, int, int]]) -> Self:
        """The processes whose ranks are in these ranges, in this order.

        Args:
            ranks: of each range the first rank, the last, and the step, which may be negative.
        Raises:
            Exception: ERR_ARG: a range goes beyond the group's ranks, never comes to its end, or
                meets another.
        """
        names = self._names
        return self._of_names(names[rank] for rank in self._in_ranges(ranks))

    def Range_excl(self, ranks: Sequence[tuple[int, int, int]]) -> Self:
        """The processes without those whose ranks are in these ranges; see ``Range_incl``."""
        names, left_out = self._names, set(self._in_ranges(ranks))
        return self._of_names(name for rank, name in enumerate(names) if rank not in left_out)

    @classmethod
    def Create_from_session_pset(cls, session: Session, pset_name: str) -> Self:
        """The processes of a set that a session names: "mpi://WORLD" or "mpi://SELF".

        Raises:
            Exception: ERR_ARG: there is no such set.
        """
        session._live  # noqa: B018 - raises where the session was finalized
        here = process()
        sets = {WORLD.lower(): here.names, SELF.lower(): (here.sfm.name,)}
        found = sets.get(pset_name.lower())
        if found is None:
            fail(ERR_ARG, f"no set of processes is named {pset_name!r}: ask Session.Get_nth_pset")
        return cls._of_names(found)

    # ---- the end ----

    def Free(self) -> None:
        """Make this handle null. Other handles and communicators are unchanged."""
        self._live  # noqa: B018 - raises where the handle is null
        if self is not GROUP_EMPTY:
            self._state = None

    # ---- checks ----

    def _check_ranks(self, ranks: Iterable[int], code: int = ERR_RANK) -> None:
        size = len(self._names)
        for rank in ranks:
            if not 0 <= rank < size:
                has = f"ranks 0 to {size - 1}" if size else "no members"
                fail(code, f"{rank} is no rank of this group, which has {has}")

    def _distinct(self, ranks: Sequence[int], code: int = ERR_RANK) -> list[int]:
        asked = [operator.index(ranks[nth]) for nth in range(len(ranks))]
        self._check_ranks(asked, code)
        if len(set(asked)) < len(asked):
            twice = next(rank for rank in asked if asked.count(rank) > 1)
            fail(code, f"rank {twice} is given more than once: a process has one place in a group")
        return asked

    def _in_ranges(self, ranges: Sequence[tuple[int, int, int]]) -> list[int]:
        found: list[int] = []
        for triple in ranges:
            first, last, step = (scalar(one) for one in triple)
            if step == 0 or (last - first) // step < 0:
                fail(ERR_ARG, f"the range from {first} to {last} in steps of {step} has no end")
            steps = (last - first) // step
            self._check_ranks((first, first + steps * step), ERR_ARG)
            found += (first + nth * step for nth in range(steps + 1))
        return self._distinct(found, ERR_ARG)


def _names_of(group: Group) -> tuple[Name, ...]:
    if not isinstance(group, Group):
        raise TypeError(f"expected a Group, not {group!r}")
    return group._names


GROUP_NULL = Group._constant("GROUP_NULL")
GROUP_EMPTY = Group._constant("GROUP_EMPTY", Members(()))
