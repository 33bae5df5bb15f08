"""Group: processes of a world that make collective calls together."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sfm_kernel._native import CollectiveHooks, Collectives, Known, Operation
from sfm_kernel.collectives import (
    binomial,
    doubling,
    flags,
    linear,
    rabenseifner,
    ring,
    sparse,
    two_level,
)
from sfm_kernel.collectives.call import Call
from sfm_kernel.collectives.choice import check, choose
from sfm_kernel.collectives.made import Made, describe
from sfm_kernel.collectives.meeting import meet, resolve
from sfm_kernel.collectives.operations import (
    NATIVE,
    Op,
    by,
    check_out,
    for_arrays,
    is_array,
    is_elementwise,
    is_plain,
    name_of,
    native_codes,
    put,
)
from sfm_kernel.collectives.team import KnownFailure, Team
from sfm_kernel.directory import Name
from sfm_kernel.endpoint import Endpoint, caller

MODULES: dict[str, Any] = {
    "flags": flags,
    "linear": linear,
    "binomial": binomial,
    "recursive doubling": doubling,
    "ring": ring,
    "rabenseifner": rabenseifner,
    "sparse": sparse,
    "two-level": two_level,
}


class Group(Collectives):
    """Processes that make collective calls together.

    Every member makes the group, with the same list of members; the constructor returns when all
    members have called it. All members then make the same calls in the same order.

    A call returns on a member as soon as that member has its result; it need not wait for the
    others. Values are any objects that can be pickled, or NumPy arrays, which are sent as their
    memory. The caller owns the values that a call returns. A group's messages are its own: no
    ``recv`` of the program takes them. Stop (KeyboardInterrupt) ends a call on all members.

    Args:
        sfm: this process's endpoint.
        members: names or ranks of the members; a member's rank in the group is its index in this
            list. None: all processes that have a rank, by rank.
        name: groups with the same members and different names are independent. Observers show the
            name.
        on_wait: the property ``on_wait``; it is also called while the group is being made.
        called: maps the text of a call to the text that observers show.
        title: the group's title for observers.
    Raises:
        UnknownName: a member is not in the world.
        ValueError: a member is listed twice, or this process is not a member.
        PeerLost: a member has died.
        DeadlockDetected: an observer has proven that not all members will make the group.

    Each call may raise
        PeerLost: a member has died; raised on all others.
        CollectiveMismatch: the members' calls differ, or their roots, operations, shapes or types;
            raised on all members. The text names each member's call.
        CollectiveError: another member could not go on; the text says which, where, and why.
    A member that is not in the failed call raises the error in its next call. When all members have
    raised it, the group can be used again. A new ``Group`` can be made at any time.

    ``barrier`` and ``allreduce`` come from the native base class
    (``native/python/src/collectives/calls.rs``). The argument ``algorithm`` of a call is one of
    ``ALGORITHMS[call]``, the same on all members; None: the call chooses it (see ``choice``).
    """

    def __init__(
        self,
        sfm: Endpoint,
        members: Sequence[Name] | None = None,
        *,
        name: str = "",
        on_wait: Callable[[], None] | None = None,
        called: Callable[[str], str] | None = None,
        title: str = "",
    ) -> None:
        processes = resolve(sfm, members)
        title = title or (repr(name) if name else f"the group that was made in {caller()[1]}")
        called = called or (lambda text: f"{text} of {name!r}" if name else text)
        token = meet(sfm, processes, name, on_wait, called, title)
        team = self._team = Team(sfm, processes, token)
        team.on_wait, team.called, team.title = on_wait, called, title
        self.name, self.sites = name, len(team.sites)  # the number of the members' sites
        barrier = ("barrier", by("", "flags"))
        known = Known(Operation.KEEP, Operation.KEEP, team.mark(describe(*barrier)), barrier)
        self._wire(team.ledger, team.tick_at_tree, known, _HOOKS)

    @property
    def rank(self) -> int:
        """This member's rank in the group: 0 … size - 1."""
        return self._team.rank

    @property
    def size(self) -> int:
        """The number of members."""
        return self._team.size

    @property
    def members(self) -> list[Name]:
        """The members' names, by rank in the group."""
        return list(self._team.names)

    @property
    def number(self) -> int:
        """The number of this member's current or last call. All members count alike."""
        return self._team.number

    @property
    def is_local(self) -> bool:
        """Whether all members share memory."""
        return self._team.is_local

    @property
    def on_wait(self) -> Callable[[], None] | None:
        """A function that is called about every 100 ms while this member waits in a call. An error
        that it raises ends the call."""
        return self._team.on_wait

    @on_wait.setter
    def on_wait(self, function: Callable[[], None] | None) -> None:
        self._team.on_wait = function

    def __repr__(self) -> str:
        called = f" {self.name!r}" if self.name else ""
        return f"<Group{called} of {self._team.names}, rank {self.rank}>"

    def bcast(self, value: Any = None, root: int = 0, *, algorithm: str | None = None) -> Any:
        """Send the root's value to all members; every member returns it. Other values are ignored.

        Example:
            >>> def program(sfm):
            ...     return sfm_kernel.Group(sfm).bcast("yes" if sfm.rank == 0 else None)
            >>> sfm_kernel.run(program, n=2)
            ['yes', 'yes']
        """
        with self._refusing("bcast"):
            root = self._root(root)
        chosen = self._algorithm("bcast", algorithm)
        return self._run(chosen, ("bcast", f"root={root}"), (value, root))

    def reduce(
        self,
        value: Any,
        op: Op = operator.add,
        root: int = 0,
        *,
        out: Any = None,
        algorithm: str | None = None,
    ) -> Any:
        """Combine the values of all members; the root returns the result, the others None.

        Args:
            value: an object, or an array of the same shape and type on all members.
            op: an associative function of two values. Values are combined in the order of ranks.
                For arrays a NumPy ufunc; ``operator.add``, ``operator.mul``, ``min`` and ``max``
                then mean ``numpy.add``, ``multiply``, ``minimum`` and ``maximum``.
            root: the rank of the member that gets the result.
            out: (root only) an array for the result; it may be ``value`` itself.
        Example: of 1, 2 and 3, the root gets 6.
        """
        return self._reduce("reduce", value, op, out, algorithm, root)

    def scan(self, value: Any, op: Op = operator.add, *, algorithm: str | None = None) -> Any:
        """Combine the values of ranks 0 to this member's own (an inclusive prefix), as ``reduce``.

        Example: of 1, 2 and 3, rank 0 gets 1, rank 1 gets 3, and rank 2 gets 6.
        """
        return self._reduce("scan", value, op, None, algorithm, None)

    def gather(
        self, value: Any, root: int = 0, *, algorithm: str | None = None
    ) -> list[Any] | None:
        """Collect the values of all members; the root returns a list by rank, the others None."""
        with self._refusing("gather"):
            root = self._root(root)
        chosen = self._algorithm("gather", algorithm)
        values: list[Any] | None = self._run(chosen, ("gather", f"root={root}"), (value, root))
        return values

    def scatter(
        self, values: Sequence[Any] | None = None, root: int = 0, *, algorithm: str | None = None
    ) -> Any:
        """Distribute the root's values; each member returns the value for its rank.

        Args:
            values: (the member of rank ``root`` only) one value for each rank.
        Example: of ``["a", "b", "c"]`` at the root, rank 1 gets "b".
        """
        with self._refusing("scatter"):
            root = self._root(root)
        chosen = self._algorithm("scatter", algorithm)
        if self.rank == root:
            values = self._one_for_each(values, "scatter")
        return self._run(chosen, ("scatter", f"root={root}"), (values, root))

    def allgather(self, value: Any, *, algorithm: str | None = None) -> list[Any]:
        """Collect the values of all members; every member returns a list by rank."""
        chosen = self._algorithm("allgather", algorithm)
        values: list[Any] = self._run(chosen, ("allgather", ""), (value,))
        return values

    def alltoall(self, values: Sequence[Any], *, algorithm: str | None = None) -> list[Any]:
        """Send one of ``values`` to each rank; returns the values from all members, by rank.

        Example: of ``[1, 2]`` on rank 0 and ``[3, 4]`` on rank 1, rank 0 gets ``[1, 3]``.
        """
        chosen = self._algorithm("alltoall", algorithm)
        given = self._one_for_each(values, "alltoall")
        received: list[Any] = self._run(chosen, ("alltoall", ""), (given,))
        return received

    def exchange(self, values: Sequence[tuple[int, Any]], sources: Sequence[int]) -> list[Any]:
        """Send values to some members, and receive from some, as neighbours in a grid do.

        Args:
            values: pairs of the receiver's rank and the value.
            sources: the senders' ranks, one for each value that this member receives and returns.
                Values from one sender arrive in the order in which it gave them.
        """
        received: list[Any] = self._run("sparse", ("exchange", ""), (values, sources))
        return received

    # ---- algorithms ----

    def _algorithm(
        self, call: str, algorithm: str | None, nbytes: int | None = None, op: Op | None = None
    ) -> str:
        team = self._team
        if algorithm is None:
            return choose(call, team.is_local, len(team.sites), team.size, nbytes, op)
        cuttable = nbytes is not None and op is not None and is_elementwise(op)
        with self._refusing(call):
            return check(call, algorithm, team.is_local, cuttable)

    @contextmanager
    def _refusing(self, call: str) -> Iterator[None]:
        """Report an argument that is refused in this block to the others: theirs may be valid."""
        try:
            yield
        except (ValueError, TypeError) as failure:
            self._team.ledger.begin((call, "…"), 0)
            self._team.fail(failure)
            raise

    def _reduce(
        self, call: str, value: Any, op: Op, out: Any, algorithm: str | None, root: int | None
    ) -> Any:
        array = is_array(value) and not value.dtype.hasobject
        with self._refusing(call):
            if not callable(op):
                raise TypeError(f"op is a function of two values, such as operator.add, not {op!r}")
            root = None if root is None else self._root(root)
            rest = f"op={name_of(op)}" + ("" if root is None else f", root={root}")
            op = for_arrays(op) if array else op
            if out is not None and (root is None or root == self.rank):
                check_out(out, value, array)
        nbytes = value.nbytes if array else None
        chosen = self._algorithm(call, algorithm, nbytes, op)
        made: Made = (call, rest, value.dtype, value.shape) if array else (call, rest)
        arguments: tuple[Any, ...] = (value,) if root is None else (value, root)
        if chosen == "flags" and out is not None and call != "scan":
            return self._run(chosen, made, (*arguments, out), op)
        result = self._run(chosen, made, arguments, op)
        if result is value and array:
            result = value.copy()  # a group of one
        return result if out is None or result is None else put(out, result)

    def _run(
        self, algorithm: str, made: Made, arguments: tuple[Any, ...], op: Op | None = None
    ) -> Any:
        """Make the call with this algorithm. An error is reported to all other members."""
        team = self._team
        made = (made[0], by(made[1], algorithm), *made[2:])
        text = describe(*made)
        team.ledger.enter()
        try:
            # The tree compares shapes and types of small arrays, as it does for the native
            # allreduce, which other members may use for the same call.
            meets = (algorithm, made[0], len(made)) == ("flags", "allreduce", 4)
            if meets and arguments[0].nbytes <= flags.ROOM and is_plain(arguments[0]):
                mark = team.mark(describe(*made[:2]))
            else:
                mark = team.mark(text)
            team.ledger.begin(made, mark)
            if algorithm != "flags":
                team.read_notes()  # with flags, the shared memory shows failures
            work = getattr(MODULES[algorithm], made[0])
            return work(Call(team, text, op, len(made) > 2), *arguments)
        except KnownFailure as known:
            raise known.failure from None
        except BaseException as failure:
            team.fail(failure)
            raise
        finally:
            team.ledger.leave()

    # ---- called by the native barrier and allreduce ----

    def _barrier(self, algorithm: str | None) -> None:
        self._run(self._algorithm("barrier", algorithm), ("barrier", ""), ())

    def _allreduce(self, value: Any, op: Op, out: Any, algorithm: str | None) -> Any:
        total = self._reduce("allreduce", value, op, out, algorithm, None)
        if type(total) is float and type(value).__module__ == "numpy":
            return type(value)(total)  # the tree knows numbers, and not NumPy's types of them
        return total

    def _learn(self, op: Any) -> Known | None:
        """The codes and the mark of an operation for the native allreduce; None if it is none."""
        if not callable(op):
            return None
        made = ("allreduce", by(f"op={name_of(op)}", "flags"))
        mark = self._team.mark(describe(*made))
        return Known(NATIVE.get(op, 0), native_codes().get(for_arrays(op), 0), mark, made)

    def _settle(
        self, code: int, result: Any, value: Any, op: Op | None, made: Made, out: Any
    ) -> Any:
        """Complete a round at the tree that did not end with a plain result."""
        array = len(made) > 2
        if array and op is not None:
            op = for_arrays(op)
        try:
            call = Call(self._team, describe(*made), op, array)
            total = flags.settle(call, code, result, value)
            return total if out is None else put(out, total)
        except KnownFailure as known:
            raise known.failure from None
        except BaseException as failure:
            self._team.fail(failure)
            raise

    def _failed(self, failure: BaseException) -> None:
        """Raise the failure that ended a round at the tree."""
        if isinstance(failure, KnownFailure):
            raise failure.failure from None
        self._team.fail(failure)
        raise failure

    # ---- checks ----

    def _root(self, root: Any) -> int:
        try:
            rank = operator.index(root)
        except TypeError:
            rank = -1
        if not 0 <= rank < self.size:
            raise ValueError(
                f"root is a rank in the group, 0 to {self.size - 1}, not {root!r}; "
                f"its members are {self._team.names}"
            )
        return rank

    def _one_for_each(self, values: Any, call: str) -> list[Any]:
        try:
            items = list(values)
        except TypeError:
            items = []
        with self._refusing(call):
            if len(items) != self.size:
                raise ValueError(
                    f"{call} needs {self.size} values, one for each member, not {len(items)}"
                )
        return items


_HOOKS = CollectiveHooks(
    barrier=Group._barrier,
    allreduce=Group._allreduce,
    learn=Group._learn,
    settle=Group._settle,
    failed=Group._failed,
)
