"""Group: some processes of a world, and the calls that they make together."""

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
from sfm_kernel.collectives.team import Made, Team, Told, describe
from sfm_kernel.endpoint import Endpoint, caller
from sfm_kernel.transport.base import Name

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
    """Processes that compute together.

    Each of them makes the group, with the same members; it is made when all have come.

    All members make the same calls in the same order; each call returns on a member when that one
    has what the call is for, and need not wait for the others. Values are any objects that can be
    pickled, or NumPy arrays, which travel as their memory; what is returned belongs to the caller.
    Messages of a group are seen by nobody else, and are not a user's messages: no ``recv`` takes
    them. Stop (KeyboardInterrupt) ends a call, on all members.

    Args:
        sfm: this process's endpoint.
        members: names or ranks, in the order of their places; all ranked processes, by rank, if
            None.
        name: groups of the same members and different names do not hear each other. Observers
            call it so.
        on_wait: what ``on_wait`` will be; called while the others are waited for, too.
        called: gives what observers are told instead of a call's text.
        title: what they are told that the group is.
    Raises:
        UnknownName: nobody has this name.
        ValueError: a member is listed twice, or this process is none.
        PeerLost: a member has died.
        DeadlockDetected: not all members will come to make it; an observer has proven that.

    Every call may raise
        PeerLost: a member has died; on all others.
        CollectiveMismatch: members make different calls, or give what does not fit together (other
            roots, operations, shapes or types); on all of them. Its text says who calls what.
        CollectiveError: another member could not go on; the text says which, where, and why.
    Who is not in the call yet, or has left it already, hears of the failure at its next call. When
    all have heard of it, the group may be used again; a new ``Group`` in any case.

    ``barrier`` and ``allreduce`` come from the native base class
    (``native/python/src/collectives/calls.rs``). ``algorithm`` is one of ``ALGORITHMS[call]``, the
    same on all members; chosen if None (``choice``).
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
        found = resolve(sfm, members)
        title = title or (repr(name) if name else f"the group that was made in {caller()[1]}")
        called = called or (lambda text: f"{text} of {name!r}" if name else text)
        team = self._team = Team(sfm, found, meet(sfm, found, name, on_wait, called, title))
        team.on_wait, team.called, team.title = on_wait, called, title
        self.name, self.sites = name, len(team.sites)  # at how many sites the members are
        barrier = ("barrier", by("", "flags"))
        known = Known(Operation.KEEP, Operation.KEEP, team.mark(describe(*barrier)), barrier)
        self._wire(team.ledger, team.tick_at_tree, known, _HOOKS)

    @property
    def rank(self) -> int:
        """The own place in the group: 0 … size - 1."""
        return self._team.place

    @property
    def size(self) -> int:
        """How many members there are."""
        return self._team.size

    @property
    def members(self) -> list[Name]:
        """The members' names, by place."""
        return list(self._team.names)

    @property
    def number(self) -> int:
        """The number of the call that this member is in, or was in last; all count alike."""
        return self._team.number

    @property
    def is_local(self) -> bool:
        """Whether all members share memory."""
        return self._team.is_local

    @property
    def on_wait(self) -> Callable[[], None] | None:
        """Called about every 100 ms while this member waits in a call; what it raises ends it."""
        return self._team.on_wait

    @on_wait.setter
    def on_wait(self, function: Callable[[], None] | None) -> None:
        self._team.on_wait = function

    def __repr__(self) -> str:
        called = f" {self.name!r}" if self.name else ""
        return f"<Group{called} of {self._team.names}, place {self.rank}>"

    def bcast(self, value: Any = None, root: int = 0, *, algorithm: str | None = None) -> Any:
        """The root's value, on every member; what others give does not count.

        Example:
            >>> def told(sfm):
            ...     return sfm_kernel.Group(sfm).bcast("yes" if sfm.rank == 0 else None)
            >>> sfm_kernel.run(told, n=2)
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
        """All values combined, on the root; None elsewhere.

        Args:
            value: an object; or an array, which all members give in one shape and type.
            op: a function of two values, associative: combined in the order of the members. For
                arrays NumPy's ufuncs; ``operator.add``, ``mul``, ``min`` and ``max`` stand for
                theirs.
            root: the place of who gets the result.
            out: an array for the result on the root, which may be ``value`` itself.
        Example: of 1, 2 and 3, the root gets 6.
        """
        return self._reduce("reduce", value, op, out, algorithm, root)

    def scan(self, value: Any, op: Op = operator.add, *, algorithm: str | None = None) -> Any:
        """The values of places 0 to the own one combined (an inclusive prefix); as ``reduce``.

        Example: of 1, 2 and 3, place 0 gets 1, place 1 gets 3, and place 2 gets 6.
        """
        return self._reduce("scan", value, op, None, algorithm, None)

    def gather(
        self, value: Any, root: int = 0, *, algorithm: str | None = None
    ) -> list[Any] | None:
        """All values, by place, on the root; None elsewhere.

        Example: of "a", "b" and "c", the root gets ``["a", "b", "c"]``.
        """
        with self._refusing("gather"):
            root = self._root(root)
        chosen = self._algorithm("gather", algorithm)
        values: list[Any] | None = self._run(chosen, ("gather", f"root={root}"), (value, root))
        return values

    def scatter(
        self, values: Sequence[Any] | None = None, root: int = 0, *, algorithm: str | None = None
    ) -> Any:
        """The own one of the root's values, of which it gives one for each place; others give None.

        Example: of ``["a", "b", "c"]`` at the root, place 1 gets "b".
        """
        with self._refusing("scatter"):
            root = self._root(root)
        chosen = self._algorithm("scatter", algorithm)
        if self.rank == root:
            values = self._one_for_each(values, "scatter")
        return self._run(chosen, ("scatter", f"root={root}"), (values, root))

    def allgather(self, value: Any, *, algorithm: str | None = None) -> list[Any]:
        """All values, by place, on every member: what ``gather`` gives the root."""
        chosen = self._algorithm("allgather", algorithm)
        values: list[Any] = self._run(chosen, ("allgather", ""), (value,))
        return values

    def alltoall(self, values: Sequence[Any], *, algorithm: str | None = None) -> list[Any]:
        """Of every member the value that it gave for this place; ``values`` has one for each.

        Example: of ``[1, 2]`` at place 0 and ``[3, 4]`` at place 1, place 0 gets ``[1, 3]``.
        """
        chosen = self._algorithm("alltoall", algorithm)
        given = self._one_for_each(values, "alltoall")
        received: list[Any] = self._run(chosen, ("alltoall", ""), (given,))
        return received

    def exchange(self, values: Sequence[tuple[int, Any]], sources: Sequence[int]) -> list[Any]:
        """Give values to some members, and take some from others: what neighbours do.

        Args:
            values: to which places which values.
            sources: from which places this member is given values: one for each, and as often as
                it is given one. From one member they come in the order in which it gave them.
        Returns:
            What was given, for each of ``sources``.
        """
        received: list[Any] = self._run("sparse", ("exchange", ""), (values, sources))
        return received

    # ---- how ----

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
        """What is refused here is told to the others: they may have given what is right."""
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
        """Make the call with this algorithm. What it raises is told to all others."""
        team = self._team
        made = (made[0], by(made[1], algorithm), *made[2:])
        what = describe(*made)
        team.ledger.enter()
        try:
            # Shapes and types of small arrays are compared at the tree, as the native allreduce,
            # in which other members may be, does it.
            meets = (algorithm, made[0], len(made)) == ("flags", "allreduce", 4)
            if meets and arguments[0].nbytes <= flags.ROOM and is_plain(arguments[0]):
                mark = team.mark(describe(*made[:2]))
            else:
                mark = team.mark(what)
            team.ledger.begin(made, mark)
            if algorithm != "flags":
                team.look()  # memory tells by itself
            work = getattr(MODULES[algorithm], made[0])
            return work(Call(team, what, op, len(made) > 2), *arguments)
        except Told as told:
            raise told.failure from None
        except BaseException as failure:
            team.fail(failure)
            raise
        finally:
            team.ledger.leave()

    # ---- what the native barrier and allreduce leave to Python ----

    def _barrier(self, algorithm: str | None) -> None:
        self._run(self._algorithm("barrier", algorithm), ("barrier", ""), ())

    def _allreduce(self, value: Any, op: Op, out: Any, algorithm: str | None) -> Any:
        total = self._reduce("allreduce", value, op, out, algorithm, None)
        if type(total) is float and type(value).__module__ == "numpy":
            return type(value)(total)  # the tree knows numbers, and not whose they were
        return total

    def _learn(self, op: Any) -> Known | None:
        """What is known of an operation; None if it is none."""
        if not callable(op):
            return None
        made = ("allreduce", by(f"op={name_of(op)}", "flags"))
        mark = self._team.mark(describe(*made))
        return Known(NATIVE.get(op, 0), native_codes().get(for_arrays(op), 0), mark, made)

    def _settle(
        self, code: int, result: Any, value: Any, op: Op | None, made: Made, out: Any
    ) -> Any:
        """A round at the tree has not simply come to its result."""
        array = len(made) > 2
        if array and op is not None:
            op = for_arrays(op)
        try:
            call = Call(self._team, describe(*made), op, array)
            total = flags.settle(call, code, result, value)
            return total if out is None else put(out, total)
        except Told as told:
            raise told.failure from None
        except BaseException as failure:
            self._team.fail(failure)
            raise

    def _failed(self, failure: BaseException) -> None:
        """A round at the tree was broken off."""
        if isinstance(failure, Told):
            raise failure.failure from None
        self._team.fail(failure)
        raise failure

    # ---- checks ----

    def _root(self, root: Any) -> int:
        try:
            place = operator.index(root)
        except TypeError:
            place = -1
        if not 0 <= place < self.size:
            raise ValueError(
                f"root is a place in the group, 0 to {self.size - 1}, not {root!r}; "
                f"its members are {self._team.names}"
            )
        return place

    def _one_for_each(self, values: Any, call: str) -> list[Any]:
        try:
            given = list(values)
        except TypeError:
            given = []
        with self._refusing(call):
            if len(given) != self.size:
                raise ValueError(
                    f"{call} needs {self.size} values, one for each member, not {len(given)}"
                )
        return given


_HOOKS = CollectiveHooks(
    barrier=Group._barrier,
    allreduce=Group._allreduce,
    learn=Group._learn,
    settle=Group._settle,
    failed=Group._failed,
)
