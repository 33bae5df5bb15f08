"""One collective call under way: its messages, and the check that all members make it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfm_kernel.collectives.operations import Op, combine, is_array
from sfm_kernel.errors import CollectiveMismatch, PeerLost, UnknownName

if TYPE_CHECKING:
    from sfm_kernel.collectives.team import Team


class Call:
    """A collective call, as an algorithm uses it.

    Members are identified by their ranks 0 … size - 1 in the group.

    Attributes:
        what: the call as all members must make it, such as "bcast(root=0)".
        rank, size: this member's rank, and the number of members.
        op: the operation of a reduction.
        array: whether the values are arrays; all members then have the same shape.
    """

    __slots__ = (
        "_chain",
        "_context",
        "_names",
        "_number",
        "array",
        "op",
        "rank",
        "size",
        "team",
        "what",
    )

    def __init__(self, team: Team, what: str, op: Op | None, array: bool) -> None:
        self.team, self.what, self.op, self.array = team, what, op, array
        self.rank, self.size = team.rank, team.size
        self._context, self._names, self._number = team.context, team.names, team.number
        self._chain = team.ledger.chain

    def send(self, rank: int, value: Any = None) -> None:
        """Send a value to a member. The caller may change the value afterwards."""
        name = self._names[rank]
        try:
            self._context.send(
                dest=name, call=self._number, chain=self._chain, what=self.what, value=value
            )
        except UnknownName:  # the member was in the world when the group was made
            raise PeerLost(name, f"and {self.what} cannot go on without it") from None

    def recv(self, rank: int) -> Any:
        """Receive the member's next value of this call. The caller may change an array.

        Raises:
            CollectiveMismatch: the member is in another call.
            PeerLost, CollectiveError: the member, or another one, could not go on.
        """
        name = self._names[rank]
        message = self._context.recv(src=name, call=self._number)
        if message.chain != self._chain:
            own_name = self._names[self.rank]
            if message.what != self.what:
                raise CollectiveMismatch({own_name: self.what, name: message.what})
            self.team.note()  # an earlier call differs: the reader of the note finds out which
            before = list(self.team.calls.values())[-4:-1]
            own_calls = f"{', '.join(before)} and then {self.what}" if before else self.what
            other_calls = f"other calls, and then {self.what}"
            raise CollectiveMismatch({own_name: own_calls, name: other_calls})
        return message.value

    def exchange(self, rank: int, value: Any = None) -> Any:
        """Send a value to a member, and receive one from it."""
        self.send(rank, value)
        return self.recv(rank)

    def combine(self, left: Any, right: Any, into: Any = None) -> Any:
        """Apply the operation to the values of lower ranks (left) and higher ranks (right).

        Args:
            into: an array that may be overwritten, such as one that was received.
        """
        assert self.op is not None
        return combine(self.op, left, right, into if is_array(into) else None)
