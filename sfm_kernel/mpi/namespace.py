"""Namespaces: the ranks of processes."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sfm_kernel.directory import Name
from sfm_kernel.errors import SFMError, UnknownName

if TYPE_CHECKING:
    from sfm_kernel.endpoint import Endpoint


@dataclass(frozen=True)
class Namespace:
    """Ranks 0, 1, … for a group of processes. Messages of different namespaces are never mixed up.

    Every process makes the namespace, with the same name and the same members in the same order.
    The argument ``comm`` of ``mpi_send_buf`` and ``mpi_recv_buf`` may be any object with ``name``,
    ``rank_to_name`` and ``name_to_rank``.

    Args:
        name: the name of the namespace, which its messages carry.
        members: the processes' names, as in ``Message.src``; the first has rank 0.
    """

    name: str
    members: tuple[Name, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"the name of a namespace is a text, not {self.name!r}")
        object.__setattr__(self, "members", tuple(self.members))
        if not self.members or len(set(self.members)) < len(self.members):
            raise ValueError(f"a namespace has one member or more, each once, not {self.members!r}")

    @classmethod
    def world(cls, sfm: Endpoint, name: str = "world") -> Namespace:
        """All processes of the world that have a rank now, by rank.

        Raises:
            SFMError: a rank is free, so that the ranks would not be those of the world.
        """
        ranked = {member.rank: member.name for member in sfm.members() if member.rank is not None}
        if set(ranked) != set(range(len(ranked))) or not ranked:
            raise SFMError(
                f"world {sfm.world!r} has the ranks {sorted(ranked)}, and not all from 0 on: wait "
                f"for the others (`sfm.wait_for`), or make a Namespace of some of them"
            )
        return cls(name, tuple(ranked[rank] for rank in range(len(ranked))))

    def rank_to_name(self, rank: int) -> Name:
        """The name of the process with this rank: the paper's ``rankToUuid``.

        Raises:
            ValueError: there is no such rank.
        """
        index = _index(rank)
        if not 0 <= index < len(self.members):
            raise ValueError(
                f"rank {rank} is not in {self.name!r}, whose ranks are 0 to {len(self.members) - 1}"
            )
        return self.members[index]

    def name_to_rank(self, name: Name) -> int:
        """The rank of the process with this name.

        Raises:
            UnknownName: the process is not a member.
        """
        try:
            return self.members.index(name)
        except ValueError:
            raise UnknownName(name, self.members, self.name) from None


def _index(rank: Any) -> int:
    try:
        return operator.index(rank)
    except TypeError:
        raise TypeError(f"a rank is a whole number, not {rank!r}") from None
