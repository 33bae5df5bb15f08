"""Calls of functions on processes that serve: who holds which, what came of it, what the dead held.

The mechanism; who is given what is decided by whoever inherits from ``Calls``. A call that was held
by a process that has died is made by another one, alone. If that dies as well, it is given up.
"""

from __future__ import annotations

import itertools
import reprlib
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sfm_kernel.endpoint import Endpoint
from sfm_kernel.errors import PeerLost, TaskFailed, TaskPoisoned, WorkersLost
from sfm_kernel.message import Message
from sfm_kernel.serving.functions import Functions, Namespace, Which, name_of
from sfm_kernel.serving.owner import Attachment, Service
from sfm_kernel.serving.process import users_code
from sfm_kernel.serving.values import Failure, bad_argument, pack, pack_results, unpack
from sfm_kernel.transport.base import Name

FLUSH = 0.002
"""Seconds for which results wait for others before they are sent together."""


class Callee(Service):
    """Makes calls in the order in which they came: of (id, function, args, kwargs)."""

    def __init__(self, sfm: Endpoint, owner: Name, key: str) -> None:
        super().__init__(sfm, owner, key)
        self.names = Namespace(sfm=sfm, rank=sfm.rank, send=sfm.send, recv=sfm.recv)
        self.names.inject((), {"inject": self.names.inject})
        self.queue: deque[tuple[int, Which, Sequence[Any], dict[str, Any]]] = deque()
        self.answer(ready=True)

    def take(self, message: Message) -> None:
        """Calls to be made, or not to be made any more."""
        if "cancel" in message:
            dropped = set(message.cancel)
            self.queue = deque(one for one in self.queue if one[0] not in dropped)
            return
        try:
            self.names.learn(message.code)
            self.queue.extend(unpack(message))
        except Exception as error:  # noqa: BLE001 - whatever unpickling runs
            failed = dict.fromkeys(message.ids, Failure(error))
            self.answer(ids=message.ids, seconds=0.0, **pack(({}, failed)))

    def work(self) -> bool:
        """Make calls for a moment, and send what they gave."""
        if not self.queue:
            return False
        values: dict[int, Any] = {}
        failures: dict[int, Failure] = {}
        began = now = time.perf_counter()
        while self.queue and now < began + FLUSH:
            number, which, args, kwargs = self.queue.popleft()
            try:
                with users_code():
                    values[number] = self.names.function(which)(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - Stop, too, ends this call alone
                failures[number] = Failure(error)
            now = time.perf_counter()
        ids = [*values, *failures]
        self.answer(ids=ids, seconds=now - began, **pack_results(values, failures))
        return True


class Call(NamedTuple):
    """A function, and what it is called with."""

    which: Which
    args: Sequence[Any]
    kwargs: dict[str, Any]
    name: str

    def __str__(self) -> str:
        shown = [*map(reprlib.repr, self.args)]
        shown += [f"{name}={reprlib.repr(value)}" for name, value in self.kwargs.items()]
        return f"{self.name}({', '.join(shown)})"


class Calls(Iterator[Any]):
    """Some calls. Iteration gives what they return, in order or as it comes.

    Where a call has failed it raises TaskFailed, and goes on behind it if asked again.

    Attributes:
        results, failures: what there is so far, by the number of the call.
    """

    def __init__(
        self, caller: Caller, calls: Iterable[Call], unordered: bool = False, bar: Any = None
    ) -> None:
        self.results: dict[int, Any] = {}
        self.failures: dict[int, TaskFailed] = {}
        self.calls = list(calls)
        self.pending = deque(range(len(self.calls)))
        self._caller, self._unordered, self._bar = caller, unordered, bar
        self._at, self._came = 0, deque[int]()
        caller.turn(self, wait=False)

    moves = True
    """Whether another process makes the call of one that has died."""
    shares = False
    """Whether the processes are told of each other."""

    def choose(self, name: Name, holds: int) -> Sequence[int]:
        """Which of ``pending`` a process is given now, which ``holds`` so many. To override."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.calls)

    def __next__(self) -> Any:
        if self._at >= len(self.calls):
            raise StopIteration
        at, self._at = self._at, self._at + 1
        if self._unordered:
            self._drive(lambda: self._came)
            at = self._came.popleft()
        elif at not in self.results:
            self._drive(lambda: at in self.results or at in self.failures)
        if at in self.failures:
            raise self.failures[at]
        return self.results[at]

    def finish(self) -> dict[int, Any]:
        """Wait for all; the results of those that have not failed, by the number of the call."""
        self._drive(lambda: len(self.results) + len(self.failures) >= len(self.calls))
        return self.results

    def cancel(self) -> None:
        """Make no more of them, and iterate no further; on engines end those that are made now."""
        self._at = len(self.calls)
        self._caller.cancel(self)

    def _drive(self, done: Callable[[], object]) -> None:
        try:
            while not done():
                self._caller.turn(self)
        except KeyboardInterrupt:
            self.cancel()
            raise

    def end(self, at: int, value: Any, failure: TaskFailed | None, seconds: float) -> None:
        """A call has ended; ``seconds``: how long such calls have taken now, on average."""
        if failure is None:
            self.results[at] = value
        else:
            self.failures[at], failure.tasks = failure, self
        if self._unordered:
            self._came.append(at)
        if self._bar is not None:
            self._bar.update()


class _Hand:
    """A process that makes calls, as their owner sees it."""

    def __init__(self) -> None:
        self.ready = False
        self.held: dict[int, None] = {}  # given, and not answered
        self.robbed: set[int] = set()  # what another one has taken from it
        self.known: set[Which] = set()
        self.report: Counter[str] = Counter()


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
        self._open: dict[int, tuple[Calls, int]] = {}  # whose results are awaited
        self._suspects: dict[int, list[Name]] = {}  # calls, and who has died with them
        self._always: list[Calls] = []  # given whoever is waited for
        self._check()

    @property
    def workers(self) -> list[Name]:
        """The names of those that live."""
        return list(self._hands)

    def report(self) -> dict[Name, dict[str, float]]:
        """Of each: how many calls it has made, in how many seconds, and how many it has stolen."""
        keys = ("calls", "seconds", "stolen")
        return {name: {key: one.report[key] for key in keys} for name, one in self._hands.items()}

    def call_of(self, function: Callable[..., Any] | str, *args: Any, **kwargs: Any) -> Call:
        """A call of it. Raises EncodeError if the function cannot be sent."""
        return Call(self.functions.number(function), args, kwargs, name_of(function))

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

    def cancel(self, calls: Calls) -> None:
        """Make none of them any more; on engines those that are made now are ended."""
        calls.pending.clear()
        for number in [one for one, (whose, _) in self._open.items() if whose is calls]:
            self._close(number)
        busy = []
        for name, hand in self._hands.items():
            if dropped := [one for one in hand.held if one not in self._open]:
                hand.held = {one: None for one in hand.held if one in self._open}
                busy.append(name)
                self._tell(name, cancel=dropped)
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
                f"no worker lives, and {len(self._open)} calls that were given have no result. "
                f"Start engines (`%sfm restart`, `%sfm start 4`) and connect again"
            )

    def _give(self, calls: Calls) -> None:
        self._always = [one for one in self._always if one.pending]
        for name, hand in list(self._hands.items()):
            if not hand.ready:
                continue
            if self._suspects:  # each alone on its process
                held = {one for other in self._hands.values() for one in other.held}
                free = [one for one in self._suspects if one not in held]
                if free and not hand.held:
                    self._send(name, hand, free[:1])
                continue
            for one in (*self._always, calls):
                while chosen := one.choose(name, len(hand.held)):
                    numbers = list(itertools.islice(self._numbers, len(chosen)))
                    self._open |= {n: (one, at) for n, at in zip(numbers, chosen, strict=True)}
                    if not self._send(name, hand, numbers, self.workers if one.shares else ()):
                        break

    def _send(
        self, name: Name, hand: _Hand, numbers: list[int], peers: Sequence[Name] = ()
    ) -> bool:
        """Whether it lives, as far as is known."""
        made = [self._open[one] for one in numbers]
        calls = [whose.calls[at] for whose, at in made]
        try:
            packed = pack([(n, c[0], c[1], c[2]) for n, c in zip(numbers, calls, strict=True)])
            code = self.functions.code((one.which for one in calls), hand.known)
            if not self._tell(name, ids=numbers, code=code, peers=peers, **packed):
                self._suspects |= {one: [] for one in numbers}  # nobody has had them
                return False
            hand.known |= code.keys()
            hand.held |= dict.fromkeys(numbers)
        except Exception as error:  # noqa: BLE001 - whatever a user's object raises
            if len(numbers) > 1:
                sent = [self._send(name, hand, [one], peers) for one in numbers]
                return all(sent)
            (call,) = calls
            why = bad_argument(call.args, call.kwargs) or f"{type(error).__name__}: {error}"
            self._end(numbers[0], None, TaskFailed(str(call), None, why))
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
        found = [name for name, one in self._hands.items() if one.held or not one.ready]
        return found or self.workers

    def _see(self, message: Message) -> None:
        hand = self._hands.get(message.src)
        if hand is None:  # it has died, and what it held was given to others; or a wake
            return
        if "ready" in message:
            hand.ready = True
        elif "moved" in message:
            self._move(hand, message.moved, message.thief)
        else:
            values, failures = self._opened(message)
            count = len(values) + len(failures)
            seconds = message.seconds / max(1, count)
            hand.report += Counter(calls=count, seconds=message.seconds)
            for number, value in values.items():
                hand.held.pop(number, None)
                self._end(number, value, None, seconds)
            for number, failure in failures.items():
                hand.held.pop(number, None)
                self._end(number, None, self._failed(number, message.src, failure), seconds)

    def _opened(self, message: Message) -> tuple[dict[int, Any], dict[int, Failure]]:
        try:
            values, failures = unpack(message)
        except Exception as error:  # noqa: BLE001 - whatever unpickling runs
            return {}, dict.fromkeys(message.ids, Failure(error))
        return values, failures

    def _failed(self, number: int, name: Name, failure: Failure) -> TaskFailed | None:
        if number not in self._open:
            return None
        whose, at = self._open[number]
        error = TaskFailed(str(whose.calls[at]), name, failure.text, failure.traceback(name))
        error.__cause__ = failure.error
        return error

    def _end(
        self, number: int, value: Any, failure: TaskFailed | None, seconds: float = 0.0
    ) -> None:
        found = self._close(number)
        if found is not None:  # else it was made twice, or nobody asks for it any more
            found[0].end(found[1], value, failure, seconds)

    def _close(self, number: int) -> tuple[Calls, int] | None:
        self._suspects.pop(number, None)
        return self._open.pop(number, None)

    def _move(self, hand: _Hand, numbers: Sequence[int], thief: Name) -> None:
        """Another one has them now; or will, unless either dies."""
        robber = self._hands.get(thief)
        for one in numbers:
            hand.held.pop(one, None)
            if one in self._open and robber is not None:
                robber.held[one] = None
                robber.report["stolen"] += 1
                hand.robbed.add(one)
            elif one in self._open:
                self._suspects.setdefault(one, [])

    def _lose(self, name: Name) -> None:
        """It has died. What it held is made by others, each alone, since it may have killed it."""
        hand = self._hands.pop(name)
        for number in [one for one in hand.held if one in self._open]:
            whose, at = self._open[number]
            killed = self._suspects.setdefault(number, [])
            killed.append(name)
            if len(killed) > 1:
                self._end(number, None, TaskPoisoned(str(whose.calls[at]), killed))
                for others in self._suspects.values():  # it was not they
                    others[:] = [one for one in others if one not in killed]
            elif not whose.moves:
                what = "it died, and the call was for nobody else"
                self._end(number, None, TaskFailed(str(whose.calls[at]), name, what))
        for number in hand.robbed & self._open.keys():  # perhaps they have not arrived there
            self._suspects.setdefault(number, [])
            for other in self._hands.values():
                other.held.pop(number, None)
        if not self._hands:
            self._check()
