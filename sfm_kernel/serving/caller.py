"""Calls of functions on processes that serve: who holds which, and what becomes of it.

The mechanism; which process is given what is decided by whoever inherits from ``Calls``. A call
that was held by a process that has died is made by another one, alone. If that dies as well, it
is given up.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sfm_kernel.endpoint import Endpoint
from sfm_kernel.errors import PeerLost, TaskFailed, TaskPoisoned, WorkersLost
from sfm_kernel.message import Message
from sfm_kernel.serving.callee import Callee, Part
from sfm_kernel.serving.calls import Call, Calls
from sfm_kernel.serving.functions import Functions, Which, name_of
from sfm_kernel.serving.owner import Attachment
from sfm_kernel.serving.values import Failure, bad_argument, pack, unpack
from sfm_kernel.transport.base import Name

Held = defaultdict[int, set[int]]
"""Of each ``Calls``, by its number, some."""


class _Hand:
    """A process that makes calls, as their owner sees it."""

    def __init__(self) -> None:
        self.ready = False
        self.held = Held(set)  # given, and not answered
        self.robbed = Held(set)  # what another one has taken from it
        self.known: set[Which] = set()
        self.report = {"calls": 0, "seconds": 0.0, "stolen": 0}

    def holds(self) -> int:
        """How many calls it has."""
        return sum(map(len, self.held.values()))


class Caller:
    """Processes that make calls for this one; a context manager that releases them.

    Raises: WorkersLost: there is nobody. UnknownName, PeerLost: one of them is not there.
    """

    def __init__(
        self, sfm: Endpoint, names: Iterable[Name], service: type[Callee], title: str
    ) -> None:
        self.sfm = sfm
        self.link = Attachment(sfm, names, service, title)
        self.functions = Functions()
        self._hands = {name: _Hand() for name in self.link.names}
        self._numbers = itertools.count()
        self._open: dict[int, Calls] = {}  # of which results are awaited
        self._suspects: dict[tuple[int, int], list[Name]] = {}  # calls, and who has died with them
        self._always: list[Calls] = []  # given whoever is waited for
        self._check()

    @property
    def workers(self) -> list[Name]:
        """The names of those that live."""
        return list(self._hands)

    def report(self) -> dict[Name, dict[str, float]]:
        """Of each: how many calls it has made, in how many seconds, and how many it has stolen."""
        return {name: dict(one.report) for name, one in self._hands.items()}

    def function(self, function: Callable[..., Any] | str) -> Call:
        """A call of it without arguments. Raises EncodeError if it cannot be sent."""
        return Call(self.functions.number(function), name_of(function))

    def turn(self, calls: Calls, wait: bool = True, quiet: float | None = None) -> None:
        """Give what can be given of these calls; then wait for an answer, and see to it.

        Args: quiet: as for ``Attachment.receive``.
        Raises: WorkersLost.
        """
        self._check()
        self._give(calls)
        if wait:
            message = self.link.receive(self._awaited, quiet)
            if message is not None:
                self._see(message)
            for name in self.link.lost():
                self._lose(name)

    def add(self, calls: Calls) -> int:
        """The number of calls that are new here."""
        number = next(self._numbers)
        self._open[number] = calls
        return number

    def cancel(self, calls: Calls) -> None:
        """Make none of them any more; on engines those that are made now are ended."""
        calls.pending.clear()
        self._forget(calls.number)
        busy = [name for name, hand in self._hands.items() if hand.held.pop(calls.number, None)]
        for name in busy:
            self._tell(name, cancel=calls.number)
        self.link.interrupt(busy)

    def close(self) -> None:
        """Release the processes; what they do comes to its end. Harmless when repeated."""
        self.link.release()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- giving ----

    def _check(self) -> None:
        if not self._hands:
            raise WorkersLost(
                "no worker lives, and calls are left that nobody has made. Start engines "
                "(`%sfm restart`, `%sfm start 4`) and connect again"
            )

    def _give(self, calls: Calls) -> None:
        self._always = [one for one in self._always if one.pending]
        if self._suspects:
            self._give_alone()
            return
        ready = [(name, hand) for name, hand in self._hands.items() if hand.ready]
        for name, hand in ready:
            if not hand.holds():  # first those who have nothing
                self._give_some(name, hand, calls)
        for one in (*self._always, calls):
            for name, hand in ready:
                while self._give_some(name, hand, one):
                    pass

    def _give_alone(self) -> None:
        """Who has nothing gets one call that may have killed somebody, and the others wait."""
        for name, hand in [one for one in self._hands.items() if one[1].ready]:
            held = [one.held for one in self._hands.values()]
            free = (one for one in self._suspects if not any(one[1] in h[one[0]] for h in held))
            if not hand.holds() and (one := next(free, None)) is not None:
                self._send(name, hand, self._open[one[0]], [one[1]], alone=True)

    def _give_some(self, name: Name, hand: _Hand, calls: Calls) -> bool:
        """Whether there is more to be given."""
        chosen = calls.choose(name, hand.holds())
        if not chosen:
            return False
        if chosen[-1] - chosen[0] == len(chosen) - 1:
            chosen = range(chosen[0], chosen[-1] + 1)  # is sent as two numbers
        return self._send(name, hand, calls, chosen)

    def _send(
        self, name: Name, hand: _Hand, calls: Calls, ats: Sequence[int], alone: bool = False
    ) -> bool:
        """Whether it lives, as far as is known."""
        peers = self.workers if calls.shares and not alone else ()
        try:
            parts, groups = calls.parts(ats)
            code = self.functions.code((which for which, _, _ in groups), hand.known)
            if not self._tell(name, parts=parts, code=code, peers=peers, **pack(groups)):
                self._suspects |= {(calls.number, at): [] for at in ats}  # nobody has had them
                return False
            hand.known |= code.keys()
            hand.held[calls.number].update(ats)
        except Exception as error:  # noqa: BLE001 - whatever a user's object raises
            if len(ats) > 1:
                return all([self._send(name, hand, calls, [at], alone) for at in ats])  # noqa: C419
            call = calls.call(ats[0])
            why = bad_argument(call.args, call.kwargs) or f"{type(error).__name__}: {error}"
            self._fail(calls.number, ats[0], TaskFailed(str(call), None, why))
        return True

    def _tell(self, name: Name, **attributes: Any) -> bool:
        try:
            self.link.send(name, **attributes)
        except PeerLost:
            return False
        return True

    # ---- what comes back ----

    def _awaited(self) -> Sequence[Name]:
        """Who can answer: those who hold calls, or who do not serve yet."""
        found = [name for name, one in self._hands.items() if one.holds() or not one.ready]
        return found or self.workers

    def _see(self, message: Message) -> None:
        hand = self._hands.get(message.src)
        if hand is None:  # it has died, and what it held was given to others; or this is a wake
            return
        if "ready" in message:
            hand.ready = True
        elif "thief" in message:
            self._move(hand, message.parts, message.thief)
        else:
            self._results(message.src, hand, message)

    def _results(self, name: Name, hand: _Hand, message: Message) -> None:
        parts: list[Part] = message.parts
        try:
            results = unpack(message)
        except Exception as error:  # noqa: BLE001 - whatever unpickling runs
            results = [((), dict.fromkeys(ats, Failure(error))) for _, ats in parts]
        count = sum(len(ats) for _, ats in parts)
        hand.report["calls"] += count
        hand.report["seconds"] += message.seconds
        for (number, ats), (values, failures) in zip(parts, results, strict=True):
            hand.held[number].difference_update(ats)
            calls = self._open.get(number)
            if calls is None:  # nobody asks for them any more
                continue
            for at, failure in failures.items():
                if calls.is_open(at):
                    told = failure.text, failure.traceback(name)
                    failed = TaskFailed(str(calls.call(at)), name, *told)
                    failed.__cause__ = failure.error
                    self._fail(number, at, failed)
            if failures:
                pairs = [one for one in zip(ats, values, strict=False) if one[0] not in failures]
                ats, values = [at for at, _ in pairs], [value for _, value in pairs]
            calls.put(ats, values)
            calls.took(message.seconds / count)
            if self._suspects:
                for at in ats:
                    self._suspects.pop((number, at), None)
            if calls.complete():
                self._forget(number)

    def _forget(self, number: int) -> None:
        self._open.pop(number, None)
        self._suspects = {one: who for one, who in self._suspects.items() if one[0] != number}

    def _fail(self, number: int, at: int, failure: TaskFailed) -> None:
        self._suspects.pop((number, at), None)
        calls = self._open[number]
        calls.fail(at, failure)
        if calls.complete():
            self._forget(number)

    def _move(self, hand: _Hand, parts: Sequence[Part], thief: Name) -> None:
        """Another one has them now; or will, unless either dies."""
        robber = self._hands.get(thief)
        for number, ats in parts:
            hand.held[number].difference_update(ats)
            calls = self._open.get(number)
            left = [] if calls is None else [at for at in ats if calls.is_open(at)]
            if robber is not None:
                robber.held[number].update(left)
                robber.report["stolen"] += len(ats)
                hand.robbed[number].update(left)
            else:
                self._suspects |= {(number, at): [] for at in left}

    def _lose(self, name: Name) -> None:
        """It has died. What it held is made by others, each alone, since it may have killed it."""
        hand = self._hands.pop(name)
        for number, at in self._still(hand.held):
            calls = self._open[number]
            killed = self._suspects.setdefault((number, at), [])
            killed.append(name)
            if len(killed) > 1:
                self._fail(number, at, TaskPoisoned(str(calls.call(at)), killed))
                for others in self._suspects.values():  # it was not they
                    others[:] = [one for one in others if one not in killed]
            elif not calls.moves:
                what = "it died, and the call was for nobody else"
                self._fail(number, at, TaskFailed(str(calls.call(at)), name, what))
        for number, at in self._still(hand.robbed):  # perhaps they have not arrived there
            self._suspects.setdefault((number, at), [])
            for other in self._hands.values():
                other.held[number].discard(at)

    def _still(self, held: Held) -> list[tuple[int, int]]:
        """Those of which results are awaited."""
        every = [(number, at) for number, ats in held.items() for at in sorted(ats)]
        return [one for one in every if one[0] in self._open and self._open[one[0]].is_open(one[1])]
