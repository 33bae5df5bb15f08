"""Random programs that are correct: each comes to its end, whatever the timing.

A program is a list of steps in one global order; each process executes its steps in that order. A
message is received later in the order than it is sent, and a send that may have to wait for room
comes after the receipt of everything that was sent to the same process before. The first pending
step can therefore always be executed.

Receives that take any of several messages (by source, by tag) share them only among themselves.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import sfm_kernel
from sfm_kernel import Endpoint, Group, RecvTimeout, WouldBlock
from sfm_kernel.endpoint import BUFFERING

Step = tuple[Any, ...]
"""The rank, the kind of step, and its arguments."""

Message = tuple[str, int, int, int]
"""The manner of its receipt, the ranks of its sender and receiver, and its number."""

HOW = ("exactly", "by predicate", "by source", "by tag", "patiently", "by looking")
"""The manners in which a message is received."""


@dataclass
class Script:
    """A program for ``size`` processes, while it is written; with callbacks if it ``asks``.

    ``todo``: messages that are sent and not received.
    """

    seed: int
    size: int
    asks: bool
    steps: list[Step] = field(default_factory=list)
    todo: list[Message] = field(default_factory=list)
    count: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(f"{self.seed} {self.size}")
        pairs = list(itertools.permutations(range(self.size), 2))
        # Pairs whose sends may wait for room. No callback and no other thread sends between them.
        self.tight = set(self.chance.sample(pairs, len(pairs) // 2))

    def write(self, length: int) -> Script:
        """Add ``length`` random steps, then receive all messages."""
        kinds: dict[Callable[[], None], int] = {
            self.send: 8,
            self.send_with_little_room: 3,
            self.send_without_room: 3,
            self.receive: 6,
            self.compute: 3,
            self.meet: 1,
            self.ask: 2 if self.asks else 0,
            self.send_from_thread: 1,
        }
        for _ in range(length):
            (kind,) = self.chance.choices(list(kinds), list(kinds.values()))
            kind()
        while self.todo:
            self.receive()
        return self

    def pair(self) -> tuple[int, int]:
        src, dest = self.chance.sample(range(self.size), 2)
        return src, dest

    def message(self, how: str | None = None) -> Message:
        self.count += 1
        src, dest = self.pair()
        return how or self.chance.choice(HOW), src, dest, self.count

    def send(self) -> None:
        self._send(self.message(), BUFFERING)

    def send_with_little_room(self) -> None:
        """Add a send that blocks until all earlier messages to the receiver are received."""
        message = self.message()
        self._send(message, 1 if self.is_first(message) else BUFFERING)

    def send_without_room(self) -> None:
        """Add a send that blocks until its receive, which is therefore the next step."""
        message = self.message("exactly")
        self._send(message, 0 if self.is_first(message) else BUFFERING)
        self.todo.remove(message)
        self.steps.append((message[2], "receive", message))

    def is_first(self, message: Message) -> bool:
        """Whether all earlier messages of the pair have certainly been received."""
        pair = message[1:3]
        return pair in self.tight and not any(
            waiting[1:3] == pair or (waiting[0] == "by tag" and waiting[2] == message[2])
            for waiting in self.todo
        )

    def _send(self, message: Message, buffering: int) -> None:
        nbytes = self.chance.choice([0, 10, 100_000])
        self.steps.append((message[1], "send", message, nbytes, buffering))
        self.todo.append(message)

    def send_from_thread(self) -> None:
        message = self.message()
        if message[1:3] in self.tight:
            return
        self.steps.append((message[1], "send later", message, self.chance.uniform(0, 0.6)))
        self.todo.append(message)

    def receive(self) -> None:
        if self.todo:
            message = self.todo.pop(self.chance.randrange(len(self.todo)))
            self.steps.append((message[2], "receive", message))

    def compute(self) -> None:
        duration = self.chance.choice([0.001, 0.05, 0.4, 0.7])
        how = self.chance.choice(["sleep", "spin"])
        self.steps.append((self.chance.randrange(self.size), how, duration))

    def meet(self) -> None:
        call = self.chance.choice(["barrier", "linear barrier", "allreduce", "bcast", "array"])
        self.steps += [(rank, "meet", call) for rank in range(self.size)]

    def ask(self) -> None:
        """Add a question that a callback answers, sometimes after a pause."""
        src, dest = self.pair()
        if (dest, src) in self.tight:
            return
        self.count += 1
        self.steps.append((src, "ask", dest, self.count, self.chance.choice([0, 0, 0, 0.5])))


def play(sfm: Endpoint, steps: list[Step]) -> int:
    """Execute this process's steps; return their number."""
    with contextlib.ExitStack() as callbacks:
        if any(kind == "ask" for _, kind, *_ in steps):
            answer = sfm.regcb(lambda m: _answer(sfm, m), what="question")
            callbacks.enter_context(answer)
        group = Group(sfm)
        group.barrier()  # all have registered their callbacks
        steps_here = [step for step in steps if step[0] == sfm.rank]
        for _, kind, *how in steps_here:
            _STEPS[kind](sfm, group, *how)
        group.barrier()  # no callback is removed while others may ask
    return len(steps_here)


def _answer(sfm: Endpoint, question: sfm_kernel.Message) -> None:
    time.sleep(question.after)
    sfm.send(dest=question.src, what="answer", n=question.n)


def _attributes(message: Message, nbytes: int = 0) -> dict[str, Any]:
    how, _, dest, number = message
    return {"dest": dest, "what": how, "n": number, "data": bytes(nbytes)}


def _send(sfm: Endpoint, _: Group, message: Message, nbytes: int, buffering: int) -> None:
    sfm.with_buffering(buffering).send(**_attributes(message, nbytes))


def _send_later(sfm: Endpoint, _: Group, message: Message, after: float) -> None:
    threading.Timer(after, lambda: sfm.send(**_attributes(message))).start()


def _receive(sfm: Endpoint, _: Group, message: Message) -> None:
    how, src, _dest, number = message
    if how == "exactly":
        sfm.recv(src=src, what=how, n=number)
    elif how == "by predicate":
        sfm.recv(what=how, n=lambda n: n == number)
    elif how == "by source":
        sfm.recv(src=src, what=how)
    elif how == "by tag":
        sfm.recv(what=how)
    elif how == "patiently":
        _again(lambda: sfm.recv(0.4, what=how, n=number), RecvTimeout)
    else:
        _again(lambda: sfm.recv_nb(what=how, n=number), WouldBlock)


def _again(receive: Callable[[], object], unless: type[Exception]) -> None:
    while True:
        try:
            receive()
            return
        except unless:
            time.sleep(0.001)


def _ask(sfm: Endpoint, _: Group, dest: int, number: int, after: float) -> None:
    sfm.send(dest=dest, what="question", n=number, after=after)
    sfm.recv(src=dest, what="answer", n=number)


def _meet(_: Endpoint, group: Group, call: str) -> None:
    if call == "allreduce":
        group.allreduce(group.rank)
    elif call == "bcast":
        group.bcast("x" * 1000, root=group.size - 1)
    elif call == "array":
        group.allreduce(np.ones(5000))
    else:
        group.barrier(algorithm="linear" if call.startswith("linear") else None)


def _spin(_: Endpoint, __: Group, duration: float) -> None:
    end = time.monotonic() + duration
    while time.monotonic() < end:
        pass


_STEPS: dict[str, Callable[..., None]] = {
    "send": _send,
    "send later": _send_later,
    "receive": _receive,
    "ask": _ask,
    "meet": _meet,
    "sleep": lambda _, __, duration: time.sleep(duration),
    "spin": _spin,
}
