"""A process that makes calls of functions for an owner, see ``caller``."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice, repeat
from typing import Any

from sfm_kernel.endpoint import Endpoint
from sfm_kernel.message import Message
from sfm_kernel.serving.functions import Namespace, Which
from sfm_kernel.serving.owner import Service
from sfm_kernel.serving.process import users_code
from sfm_kernel.serving.values import Failure, pack, pack_results, unpack
from sfm_kernel.transport.base import Name

FLUSH = 0.02
"""Seconds for which results wait for others before they are sent together. The last of them may be
followed by a long call, for which they wait, too."""

Part = tuple[int, Sequence[int]]
"""Which ``Calls``, by its number, and which of them: a range, where that is one."""

Group = tuple[Which, Sequence[Sequence[Any]], Sequence[Mapping[str, Any]] | None]
"""Calls of one function as they travel: arguments of each, and named ones if any has some."""


class Run:
    """Calls of one function that wait one behind the other."""

    def __init__(self, part: Part, group: Group) -> None:
        self.of, self.ats = part
        self.which, self.args, self.kwargs = group
        self.done = 0

    def __len__(self) -> int:
        return len(self.ats) - self.done

    def cut(self, count: int) -> Run:
        """Take the last ones out."""
        ats, args, kwargs = (
            self.ats[-count:],
            self.args[-count:],
            self.kwargs and self.kwargs[-count:],
        )
        self.ats, self.args = self.ats[:-count], self.args[:-count]
        return Run((self.of, ats), (self.which, args, kwargs))


class Callee(Service):
    """Makes calls in the order in which they came."""

    def __init__(self, sfm: Endpoint, owner: Name, key: str) -> None:
        super().__init__(sfm, owner, key)
        self.names = Namespace(sfm=sfm, rank=sfm.rank, send=sfm.send, recv=sfm.recv)
        self.names.inject((), {"inject": self.names.inject})
        self.queue: deque[Run] = deque()
        self.answer(ready=True)

    def take(self, message: Message) -> None:
        """Calls to be made, or not to be made any more."""
        if "cancel" in message:
            self.queue = deque(one for one in self.queue if one.of != message.cancel)
            return
        parts = message.parts
        try:
            self.names.learn(message.code)
            self.queue.extend(map(Run, parts, unpack(message)))
        except Exception as error:  # noqa: BLE001 - whatever unpickling runs
            failure = Failure(error)
            failed = [([None] * len(ats), dict.fromkeys(ats, failure)) for _, ats in parts]
            self.answer(parts=parts, seconds=0.0, **pack(failed))

    def work(self) -> bool:
        """Make calls for a moment, and send what they gave."""
        if not self.queue:
            return False
        parts: list[Part] = []
        results: list[tuple[list[Any], dict[int, Failure]]] = []
        began = now = time.perf_counter()
        while self.queue and now < began + FLUSH:
            run = self.queue[0]
            start, found = run.done, self._make(run, began + FLUSH)
            run.done += len(found[0])
            if not run:
                self.queue.popleft()
            parts.append((run.of, run.ats[start : run.done]))
            results.append(found)
            now = time.perf_counter()
        self.answer(parts=parts, seconds=now - began, **pack_results(parts, results))
        return True

    def _make(self, run: Run, until: float) -> tuple[list[Any], dict[int, Failure]]:
        """What calls of a run gave; at least one is made. Of one that failed it is None."""
        values: list[Any] = []
        failures: dict[int, Failure] = {}
        clock = time.perf_counter
        try:
            with users_code():
                function, start = self.names.function(run.which), run.done
                named = repeat({}) if run.kwargs is None else islice(run.kwargs, start, None)
                for args, kwargs in zip(islice(run.args, start, None), named, strict=False):
                    try:
                        values.append(function(*args, **kwargs))
                    except BaseException as error:  # noqa: BLE001 - Stop, too, ends this call alone
                        failures[run.ats[start + len(values)]] = Failure(error)
                        values.append(None)
                    if clock() >= until:
                        break
        except BaseException as error:  # noqa: BLE001 - no such function; or Stop, between two calls
            if len(values) < len(run):
                failures[run.ats[run.done + len(values)]] = Failure(error)
                values.append(None)
        return values, failures

    def cut(self, count: int) -> dict[str, Any]:
        """Take the last calls out of the queue: attributes of a message for another process."""
        runs: list[Run] = []
        while count > 0:
            run = self.queue[-1]
            if len(run) <= count:
                self.queue.pop()
                run = run.cut(len(run))
            else:
                run = run.cut(count)
            runs.insert(0, run)
            count -= len(run)
        code = self.names.code(run.which for run in runs)
        groups: list[Group] = [(run.which, run.args, run.kwargs) for run in runs]
        return {"parts": [(run.of, run.ats) for run in runs], "code": code, **pack(groups)}
