"""One collective call under way: its messages, and what must be equal everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfm_kernel.collectives.operations import Op, combine, is_array
from sfm_kernel.errors import CollectiveMismatch, PeerLost, UnknownName

if TYPE_CHECKING:
    from sfm_kernel.collectives.team import Team


class Call:
    """What an algorithm sees of a call.

    Members are meant by their places 0 … size - 1 in the group.

    Attributes:
        what: the call as all members must have made it, such as "bcast(root=0)".
        rank, size: the own place, and how many there are.
        op: the operation of a reduction.
        array: whether the values are arrays, which all members then have in the same shape.
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
        self.rank, self.size = team.place, team.size
        self._context, self._names, self._number = team.context, team.names, team.number
        self._chain = team.ledger.chain

    def send(self, place: int, value: Any = None) -> None:
        """Send a value to a member. It may be changed at once."""
        name = self._names[place]
        try:
            self._context.send(
                dest=name, call=self._number, chain=self._chain, what=self.what, value=value
            )
        except UnknownName:  # it was there when the group was made
            raise PeerLost(name, f"and {self.what} cannot go on without it") from None

    def recv(self, place: int) -> Any:
        """The next value of this call that the member has sent; an array is the receiver's own.

        Raises:
            CollectiveMismatch: it is in another call.
            PeerLost, CollectiveError: it, or another member, could not go on.
        """
        name = self._names[place]
        message = self._context.recv(src=name, call=self._number)
        if message.chain != self._chain:
            own = self._names[self.rank]
            if message.what != self.what:
                raise CollectiveMismatch({own: self.what, name: message.what})
            self.team.note()  # an earlier call: whoever reads this finds out which
            before = list(self.team.calls.values())[-4:-1]
            mine = f"{', '.join(before)} and then {self.what}" if before else self.what
            raise CollectiveMismatch({own: mine, name: f"other calls, and then {self.what}"})
        return message.value

    def exchange(self, place: int, value: Any = None) -> Any:
        """Send to a member what it sends to us."""
        self.send(place, value)
        return self.recv(place)

    def combine(self, left: Any, right: Any, into: Any = None) -> Any:
        """The operation on what lower places (left) and higher places (right) have.

        ``into``: an array that may be overwritten, such as one that was received.
        """
        assert self.op is not None
        return combine(self.op, left, right, into if is_array(into) else None)
