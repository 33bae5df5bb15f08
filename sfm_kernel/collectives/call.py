"""One collective call under way: its messages, its rounds in the memory that the members share, and
the check that all members make it."""

from __future__ import annotations

import pickle
from typing import Any, NoReturn

from sfm_kernel._native import CombiningTree, Operation, Outcome
from sfm_kernel.collectives.made import Placed, in_line
from sfm_kernel.collectives.operations import Op, is_array, is_elementwise
from sfm_kernel.collectives.team import Team
from sfm_kernel.errors import CollectiveError, CollectiveMismatch, PeerLost, UnknownName

DESCRIBE = (1 << 64) - 1
"""The mark of the round in which members exchange their calls, after these did not match."""


class Call:
    """A collective call, as an algorithm uses it.

    Members are identified by their ranks 0 … size - 1 in the group.

    Attributes:
        text: the call as all members must make it, such as "bcast(root=0)".
        placed: the same, with the program's line.
        rank, size: this member's rank, and the number of members.
        op: the operation of a reduction.
        array: whether the values are arrays; all members then have the same shape.
    """

    def __init__(self, team: Team, text: str, op: Op | None, array: bool) -> None:
        self.team, self.text, self.op, self.array = team, text, op, array
        self.rank, self.size = team.rank, team.size
        self._context, self._names, self._number = team.context, team.names, team.number
        self._chain, self._line = team.ledger.chain, in_line(team.ledger.location)
        self.placed = f"{text}{self._line}"

    def send(self, rank: int, value: Any = None) -> None:
        """Send a value to a member. The caller may change the value afterwards."""
        name = self._names[rank]
        try:
            self._context.send(
                dest=name,
                call=self._number,
                chain=self._chain,
                what=self.text,
                line=self._line,
                value=value,
            )
        except UnknownName:  # the member was in the world when the group was made
            raise PeerLost(name, f"and {self.text} cannot go on without it") from None

    def recv(self, rank: int) -> Any:
        """Receive the member's next value of this call. The caller may change an array.

        Raises:
            CollectiveMismatch: the member is in another call.
            PeerLost, CollectiveError: the member, or another one, could not go on.
        """
        name = self._names[rank]
        self.team.awaited = rank
        message = self._context.recv(src=name, call=self._number)
        if message.chain != self._chain:
            own_name = self._names[self.rank]
            if message.what != self.text:
                theirs = f"{message.what}{message.line}"
                raise self.team.mismatch({own_name: self.placed, name: theirs})
            self.team.note()  # an earlier call differs: the reader of the note finds out which
            before = ["".join(call) for call in list(self.team.calls.values())[-4:-1]]
            own_calls = f"{', '.join(before)} and then {self.placed}" if before else self.placed
            other_calls = f"other calls, and then {self.text}{message.line}"
            raise self.team.mismatch({own_name: own_calls, name: other_calls})
        return message.value

    def combine(self, left: Any, right: Any, into: Any = None) -> Any:
        """Apply the operation to the values of lower ranks (left) and higher ranks (right).

        Args:
            into: an array to which a ufunc writes its result, such as one that was received; it
                may be an operand.
        """
        assert self.op is not None
        if is_array(into) and is_elementwise(self.op):
            return self.op(left, right, out=into)  # type: ignore[call-arg]
        return self.op(left, right)

    def meet(
        self, op: int, value: Any, packed: bytes | None = None, out: Any = None, phase: int = 0
    ) -> tuple[int, Any]:
        """Take part in one round at the tree; returns its outcome, and its result if it has one.

        ``phase`` distinguishes the rounds of a call. Raises the failure of another member.
        """
        tree, tick = self.team.tree, self.team.tick_at_tree
        code, result = tree.meet(self._chain, phase, op, value, packed, out, self.text, tick)
        if code == Outcome.STRANGE:
            packed = pickle.dumps(value, 5)
            code, result = tree.meet(self._chain, phase, op, None, packed, out, self.text, tick)
        self.raise_if_failed(code, result)
        return code, result

    def raise_if_failed(self, code: int, result: Any) -> None:
        """Raise the failure with which a round at the tree has ended, if it has failed."""
        if code == Outcome.FAILURE:
            raise self.team.known(CollectiveError(pickle.loads(result)))
        if code == Outcome.MISMATCH:
            self._raise_mismatch()
        if code == Outcome.BROKEN:
            self.team.raise_failure_of(result)

    def _raise_mismatch(self) -> NoReturn:
        """All members have arrived, with different calls: each sends its calls, the last first."""
        team, tree = self.team, self.team.tree
        made: dict[int, Placed] = {}
        for number, (text, line) in reversed(team.calls.items()):
            made[number] = text[:200], line[:200]
            packed = pickle.dumps(made, 5)
            if len(packed) > CombiningTree.room - 300:
                break
        code, result = tree.meet(
            DESCRIBE, 0, Operation.KEEP, None, packed, None, self.text, team.tick_at_tree
        )
        if code == Outcome.BROKEN:
            team.raise_failure_of(result)
        calls = [pickle.loads(cell) for cell in tree.cells(True)]
        if team.outer is None:  # all members raise: none needs a report
            team.begin_epoch(team.epoch + 1)
        try:
            team.compare(dict(zip(team.names, calls, strict=True)))
        except CollectiveMismatch as failure:
            raise team.known(failure) from None
        raise team.known(CollectiveError("the members of a group have made different calls"))
