"""Calls of functions on processes that serve: gives them out, and collects their results.

A subclass of ``Calls`` decides which process gets which call. The call of a process that has died
is given to another process, alone. If that process dies too, the call has failed.
"""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sfm_kernel.directory import Name
from sfm_kernel.endpoint import Endpoint
from sfm_kernel.errors import PeerLost, TaskFailed, TaskPoisoned, WorkersLost
from sfm_kernel.message import Message
from sfm_kernel.serving.callee import Callee, CallIds
from sfm_kernel.serving.calls import Call, Calls
from sfm_kernel.serving.functions import Functions, Which, name_of
from sfm_kernel.serving.owner import Attachment
from sfm_kernel.serving.values import Failure, bad_argument, pack, unpack
from sfm_kernel.transport.closing import Closing

_CallSets = defaultdict[int, set[int]]
"""The indices of some calls, by the number of their ``Calls``."""


class _WorkerState:
    """What the owner knows of a process that makes calls."""

    def __init__(self) -> None:
        self.ready = False
        self.held = _CallSets(set)  # given to it, and not answered
        self.stolen = _CallSets(set)  # given to it, and taken from it by another process
        self.known: set[Which] = set()
        self.report = {"calls": 0, "seconds": 0.0, "stolen": 0}

    def holds(self) -> int:
        """The number of calls that it has not answered."""
        return sum(map(len, self.held.values()))


class Caller(Closing):
    """Processes that make calls for this one; a context manager that releases them.

    Args: as ``Attachment``.
    Raises:
        WorkersLost: there is no process.
        UnknownName, PeerLost: as ``Attachment``.
    """

    def __init__(
        self,
        sfm: Endpoint,
        names: Iterable[Name] | None,
        service: type[Callee],
        title: str,
        partly: bool = False,
    ) -> None:
        self.sfm = sfm
        self.link = Attachment(sfm, names, service, title, partly)
        self.functions = Functions()
        self._states = {name: _WorkerState() for name in self.link.names}
        self._numbers = itertools.count()
        self._open: dict[int, Calls] = {}  # those whose results are awaited
        self._suspects: dict[tuple[int, int], list[Name]] = {}  # processes that died in a call
        self._always: list[Calls] = []  # given out whatever the program waits for
        self.link.set_purpose(functools.partial(self._purpose, title))
        self._check()

    def _purpose(self, title: str) -> str:
        """What this process waits in, for observers: calls may wait for those that never begin."""
        waiting = sum(len(calls.pending) for calls in list(self._open.values()))
        have = "1 call has" if waiting == 1 else f"{waiting} calls have"
        return f"{title} ({have} not begun)" if waiting else title

    @property
    def workers(self) -> list[Name]:
        """The names of the processes that live."""
        return list(self._states)

    def report(self) -> dict[Name, dict[str, float]]:
        """For each process: the "calls" it has made, the "seconds" they took, and how many it has
        "stolen" from other processes."""
        return {name: dict(state.report) for name, state in self._states.items()}

    def function(self, function: Callable[..., Any] | str) -> Call:
        """A call of the function, without arguments. Raises EncodeError if it cannot be sent."""
        return Call(self.functions.number(function), name_of(function))

    def turn(self, calls: Calls, wait: bool = True, quiet: float | None = None) -> None:
        """Give out calls as far as possible; then wait for one answer, and handle it.

        Args:
            quiet: as for ``Attachment.receive``.
        Raises: WorkersLost.
        """
        self._check()
        self._give(calls)
        if wait:
            message = self.link.receive(self._awaited, quiet)
            if message is not None:
                self._handle(message)
            for name in self.link.lost():
                self._lose(name)

    def add(self, calls: Calls) -> int:
        """Register new calls; returns their number."""
        number = next(self._numbers)
        self._open[number] = calls
        return number

    def cancel(self, calls: Calls) -> None:
        """Drop the calls that have not begun; on engines end those that run."""
        calls.pending.clear()
        self._forget(calls.number)
        busy = [name for name, state in self._states.items() if state.held.pop(calls.number, None)]
        for name in busy:
            self._try_send(name, cancel=calls.number)
        self.link.interrupt(busy)

    def close(self) -> None:
        """Release the processes, which first finish what they do. Harmless when repeated."""
        self.link.release()

    # ---- giving ----

    def _check(self) -> None:
        if not self._states:
            raise WorkersLost(
                "no worker lives, and some calls have not been made. Start engines "
                "(`%sfm restart`, `%sfm start 4`) and connect again"
            )

    def _give(self, calls: Calls) -> None:
        self._always = [calls for calls in self._always if calls.pending]
        if self._suspects:
            self._give_alone()
            return
        ready = [(name, state) for name, state in self._states.items() if state.ready]
        for name, state in ready:
            if not state.holds():  # idle processes come first
                self._give_some(name, state, calls)
        for each in (*self._always, calls):
            for name, state in ready:
                while self._give_some(name, state, each):
                    pass

    def _give_alone(self) -> None:
        """Give each idle process one call that may have killed a process; other calls wait."""
        for name, state in [item for item in self._states.items() if item[1].ready]:
            held = [other.held for other in self._states.values()]
            free = (
                (number, index)
                for number, index in self._suspects
                if not any(index in sets[number] for sets in held)
            )
            if not state.holds() and (suspect := next(free, None)) is not None:
                number, index = suspect
                self._send(name, state, self._open[number], [index], alone=True)

    def _give_some(self, name: Name, state: _WorkerState, calls: Calls) -> bool:
        """Give a process the calls chosen for it; whether it may get more."""
        chosen = calls.choose(name, state.holds())
        if not chosen:
            return False
        if chosen[-1] - chosen[0] == len(chosen) - 1:
            chosen = range(chosen[0], chosen[-1] + 1)  # a range is sent as two numbers
        return self._send(name, state, calls, chosen)

    def _send(
        self,
        name: Name,
        state: _WorkerState,
        calls: Calls,
        indices: Sequence[int],
        alone: bool = False,
    ) -> bool:
        """Send calls to a process; False if it has died."""
        peers = self.workers if calls.shares and not alone else ()
        try:
            parts, data = calls.encode(indices)
            code = self.functions.code((which for which, _, _ in data), state.known)
            if not self._try_send(name, parts=parts, code=code, peers=peers, **pack(data)):
                self._suspects |= {(calls.number, index): [] for index in indices}
                return False
            state.known |= code.keys()
            state.held[calls.number].update(indices)
        except Exception as error:  # noqa: BLE001 - whatever a user's object raises
            if len(indices) > 1:
                return all([self._send(name, state, calls, [index], alone) for index in indices])  # noqa: C419
            call = calls.call(indices[0])
            why = bad_argument(call.args, call.kwargs) or f"{type(error).__name__}: {error}"
            self._fail(calls.number, indices[0], TaskFailed(str(call), None, why))
        return True

    def _try_send(self, name: Name, **attributes: Any) -> bool:
        try:
            self.link.send(name, **attributes)
        except PeerLost:
            return False
        return True

    # ---- answers ----

    def _awaited(self) -> Sequence[Name]:
        """The processes that can answer: those that hold calls, or do not serve yet."""
        states = self._states.items()
        return [name for name, state in states if state.holds() or not state.ready] or self.workers

    def _handle(self, message: Message) -> None:
        state = self._states.get(message.src)
        if state is None:  # the process has died, and others have its calls; or this is a wake
            return
        if "ready" in message:
            state.ready = True
        elif "thief" in message:
            self._move(state, message.parts, message.thief)
        else:
            self._results(message.src, state, message)

    def _results(self, name: Name, state: _WorkerState, message: Message) -> None:
        parts: list[CallIds] = message.parts
        try:
            results = unpack(message)
        except Exception as error:  # noqa: BLE001 - whatever unpickling runs
            results = [((), dict.fromkeys(indices, Failure(error))) for _, indices in parts]
        count = sum(len(indices) for _, indices in parts)
        state.report["calls"] += count
        state.report["seconds"] += message.seconds
        for (number, indices), (values, failures) in zip(parts, results, strict=True):
            state.held[number].difference_update(indices)
            calls = self._open.get(number)
            if calls is None:  # they are complete or cancelled
                continue
            if calls.shares:
                # Workers that steal from each other in turn are heard of in any order: some may be
                # taken for those who have these calls.
                for other in self._states.values():
                    other.held[number].difference_update(indices)
            for index, failure in failures.items():
                if calls.is_open(index):
                    trace = failure.traceback(name)
                    failed = TaskFailed(str(calls.call(index)), name, failure.text, trace)
                    failed.__cause__ = failure.error
                    self._fail(number, index, failed)
            if failures:
                pairs = [
                    pair for pair in zip(indices, values, strict=False) if pair[0] not in failures
                ]
                indices, values = [index for index, _ in pairs], [value for _, value in pairs]
            calls.put(indices, values)
            calls.measured(message.seconds / count)
            if self._suspects:
                for index in indices:
                    self._suspects.pop((number, index), None)
            if calls.complete():
                self._forget(number)

    def _forget(self, number: int) -> None:
        self._open.pop(number, None)
        self._suspects = {key: dead for key, dead in self._suspects.items() if key[0] != number}

    def _fail(self, number: int, index: int, failure: TaskFailed) -> None:
        self._suspects.pop((number, index), None)
        calls = self._open[number]
        calls.fail(index, failure)
        if calls.complete():
            self._forget(number)

    def _move(self, state: _WorkerState, parts: Sequence[CallIds], thief: Name) -> None:
        """A thief has these calls, or will have them unless one of the two processes dies."""
        thief_state = self._states.get(thief)
        for number, indices in parts:
            state.held[number].difference_update(indices)
            if thief_state is not None:
                thief_state.report["stolen"] += len(indices)
        for number, index in self._open_calls(parts):
            if thief_state is not None:
                thief_state.held[number].add(index)
                state.stolen[number].add(index)
            else:
                self._suspects[number, index] = []

    def _lose(self, name: Name) -> None:
        """A process has died. Others make its calls, each alone: the call may have killed it."""
        state = self._states.pop(name)
        for number, index in self._open_calls(state.held.items()):
            calls = self._open[number]
            killed = self._suspects.setdefault((number, index), [])
            killed.append(name)
            if len(killed) > 1:
                self._fail(number, index, TaskPoisoned(str(calls.call(index)), killed))
                for dead in self._suspects.values():  # the other calls did not kill these
                    dead[:] = [worker for worker in dead if worker not in killed]
            elif not calls.moves:
                why = "it has ended, and the call was for this worker only"
                self._fail(number, index, TaskFailed(str(calls.call(index)), name, why))
        for number, index in self._open_calls(state.stolen.items()):  # perhaps the thief has none
            self._suspects.setdefault((number, index), [])
            for other in self._states.values():
                other.held[number].discard(index)

    def _open_calls(self, parts: Iterable[tuple[int, Iterable[int]]]) -> list[tuple[int, int]]:
        """The calls among these whose results are awaited."""
        return [
            (number, index)
            for number, indices in parts
            if number in self._open
            for index in sorted(indices)
            if self._open[number].is_open(index)
        ]
