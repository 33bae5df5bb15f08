"""A process that makes calls of functions for an owner (see ``caller``)."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice, repeat
from typing import Any

from sfm_kernel.directory import Name
from sfm_kernel.endpoint import Endpoint
from sfm_kernel.message import Message
from sfm_kernel.serving.functions import Namespace, Which
from sfm_kernel.serving.owner import Service
from sfm_kernel.serving.process import users_code
from sfm_kernel.serving.values import Failure, pack, pack_results, unpack

FLUSH = 0.02
"""Seconds for which results are collected before they are sent together. A call that begins within
this time is also waited for, however long it takes."""

CallIds = tuple[int, Sequence[int]]
"""The number of a ``Calls``, and the indices of some of its calls: a range if possible."""

CallData = tuple[Which, Sequence[Sequence[Any]], Sequence[Mapping[str, Any]] | None]
"""Calls of one function as they are sent: the arguments of each call, and the keyword arguments of
each if any call has some."""


class Run:
    """Queued calls of one function.

    Attributes:
        number: of the ``Calls`` that they belong to.
        done: how many have been made.
    """

    def __init__(self, ids: CallIds, data: CallData) -> None:
        self.number, self.indices = ids
        self.which, self.args, self.kwargs = data
        self.done = 0

    def __len__(self) -> int:
        return len(self.indices) - self.done

    def cut(self, count: int) -> Run:
        """Remove the last ``count`` calls, and return them."""
        ids = self.number, self.indices[-count:]
        data = self.which, self.args[-count:], self.kwargs and self.kwargs[-count:]
        self.indices, self.args = self.indices[:-count], self.args[:-count]
        return Run(ids, data)


class Callee(Service):
    """Makes calls in the order in which they came."""

    def __init__(self, sfm: Endpoint, owner: Name, key: str) -> None:
        super().__init__(sfm, owner, key)
        self.names = Namespace(sfm=sfm, rank=sfm.rank, send=sfm.send, recv=sfm.recv)
        self.names.inject((), {"inject": self.names.inject})
        self.queue: deque[Run] = deque()
        self.answer(ready=True)

    def take(self, message: Message) -> None:
        """Queue calls, or remove cancelled calls from the queue."""
        if "cancel" in message:
            self.queue = deque(run for run in self.queue if run.number != message.cancel)
            return
        parts = message.parts
        try:
            self.names.learn(message.code)
            self.queue.extend(map(Run, parts, unpack(message)))
        except Exception as error:  # noqa: BLE001 - whatever unpickling runs
            failure = Failure(error)
            failed = [
                ([None] * len(indices), dict.fromkeys(indices, failure)) for _, indices in parts
            ]
            self.answer(parts=parts, seconds=0.0, **pack(failed))

    def work(self) -> bool:
        """Make calls for about ``FLUSH`` seconds, and send their results."""
        if not self.queue:
            return False
        parts: list[CallIds] = []
        results: list[tuple[list[Any], dict[int, Failure]]] = []
        began = now = time.perf_counter()
        while self.queue and now < began + FLUSH:
            run = self.queue[0]
            start, made = run.done, self._make(run, began + FLUSH)
            run.done += len(made[0])
            if not run:
                self.queue.popleft()
            parts.append((run.number, run.indices[start : run.done]))
            results.append(made)
            now = time.perf_counter()
        self.answer(parts=parts, seconds=now - began, **pack_results(parts, results))
        return True

    def _make(self, run: Run, until: float) -> tuple[list[Any], dict[int, Failure]]:
        """Make calls of a run until a time, but at least one. Returns their values (None for a call
        that failed) and the failures by index."""
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
                        failures[run.indices[start + len(values)]] = Failure(error)
                        values.append(None)
                    if clock() >= until:
                        break
        except BaseException as error:  # noqa: BLE001 - no such function; or Stop, between two calls
            if len(values) < len(run):
                failures[run.indices[run.done + len(values)]] = Failure(error)
                values.append(None)
        return values, failures

    def cut(self, count: int) -> dict[str, Any]:
        """Remove the last ``count`` calls from the queue. Returns the attributes of a message that
        gives them to another process."""
        runs: list[Run] = []
        while count > 0:
            last = self.queue[-1]
            runs.insert(0, last.cut(min(count, len(last))))
            if not last:
                self.queue.pop()
            count -= len(runs[0])
        code = self.names.code(run.which for run in runs)
        data: list[CallData] = [(run.which, run.args, run.kwargs) for run in runs]
        return {"parts": [(run.number, run.indices) for run in runs], "code": code, **pack(data)}
