"""Messages in all modes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

from tests.mpi.random_program.step import Part, Steps

BYTES = [0, 1, 8, 100, 2000, 5000, 9000, 50_000, 131_072, 131_073, 300_000, 1_000_000, 2_000_000]


class Messages(Steps):
    """Every message arrives whole, and is told as what it is."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.open: list[tuple[int, list[Any], Callable[[], None]]] = []
        """Messages that are received later: the step, their requests, and a check."""

    def bytes_of(self, number: int, size: int) -> np.ndarray:
        return ((np.arange(size, dtype="u4") + self.step * 3 + number * 11) % 251).astype("u1")

    def plan(self, part: Part) -> list[tuple[int, bool, int, int, int]]:
        """Messages: number, whether from an intercommunicator's first group, ends, size."""
        groups = sorted([part.members, part.far or part.members], key=min)
        messages = []
        for number in range(self.dice.randrange(1, 8)):
            size = self.dice.choice(BYTES[: self.dice.choice([5, len(BYTES)])])
            from_first = self.dice.random() < 0.5
            near, far = groups if from_first else groups[::-1]
            ends = (self.dice.randrange(len(near)), self.dice.randrange(len(far)))
            messages.append((number, from_first, *ends, size))
        return messages

    def messages(self, part: Part) -> None:
        """Blocking calls are made in the order of the messages' numbers, so that nobody waits in a
        circle; who sends so has begun all receives before, and who receives so all sends."""
        comm, me, plan = part.comm, part.comm.rank, self.plan(part)
        is_first = not part.far or min(part.members) < min(part.far)
        sides = [True, False] if not part.far else [is_first]
        out = [(n, s, d, z) for n, first, s, d, z in plan if first in sides and s == me]
        sides = [True, False] if not part.far else [not is_first]
        incoming = [(n, s, d, z) for n, first, s, d, z in plan if first in sides and d == me]
        base = self.step * 10
        buffers = {n: np.zeros(size + self.own.randrange(2), "u1") for n, _, _, size in incoming}

        def source(rank: int) -> int:
            return MPI.ANY_SOURCE if self.own.random() < 0.4 else rank

        requests: list[Any] = []
        sending: list[np.ndarray] = []
        if self.own.random() < 0.5:
            for n, s, _, _ in incoming:
                requests.append(comm.Irecv(buffers[n], source(s), base + n))
            for n, _, d, size in out:
                send = getattr(comm, self.own.choice(["Send", "Ssend"]))
                send(self.bytes_of(n, size), d, base + n)
            MPI.Request.Waitall(requests)
        else:
            for n, _, d, size in out:
                sending.append(self.bytes_of(n, size))
                call = getattr(comm, self.own.choice(["Isend", "Issend"]))
                requests.append(call(sending[-1], d, base + n))
            for n, s, _, size in incoming:
                self.receive(comm, buffers[n], source(s), base + n, s, size)
            for request in requests:
                while self.own.random() < 0.5 and not request.Test():
                    pass
                request.Wait()
        for n, _, _, size in incoming:
            self.check(buffers[n][:size], self.bytes_of(n, size), f"message {n} of {size}")

    def receive(
        self, comm: Any, into: np.ndarray, source: int, tag: int, sender: int, size: int
    ) -> None:
        status, way = MPI.Status(), self.own.randrange(5)
        if way == 0:
            comm.Probe(source, tag, status)
            assert (status.Get_count(MPI.BYTE), status.source) == (size, sender)
        if way == 1:
            message = comm.Mprobe(source, tag, status)
            assert status.Get_count(MPI.BYTE) == size
            message.Recv(into, status)
        elif way == 2:
            while (message := comm.Improbe(source, tag, status)) is None:
                time.sleep(0)
            message.Irecv(into).Wait(status)
        elif way == 3:
            while not comm.Iprobe(source, tag, status):
                time.sleep(0)
            comm.Recv(into, status.source, status.tag, status)
        else:
            comm.Recv(into, source, tag, status)
        assert (status.source, status.tag, status.Get_count(MPI.BYTE)) == (sender, tag, size)

    def shift(self, part: Part) -> None:
        comm, me, size = part.comm, part.comm.rank, len(part.members)
        length, distance = self.dice.choice(BYTES), self.dice.randrange(size)
        left = (me - distance) % size
        out, into = self.bytes_of(me, length), np.zeros(length, "u1")
        if self.dice.random() < 0.3:
            into = out
            comm.Sendrecv_replace(into, (me + distance) % size, 5, left, 5)
        else:
            comm.Sendrecv(out, (me + distance) % size, 5, into, left, 5)
        self.check(into, self.bytes_of(left, length), f"Sendrecv of {length}")

    def persistent(self, part: Part) -> None:
        comm, me, size = part.comm, part.comm.rank, len(part.members)
        length = self.dice.choice(BYTES)
        left, out, into = (me - 1) % size, np.zeros(length, "u1"), np.zeros(length, "u1")
        start = comm.Ssend_init if self.own.random() < 0.4 else comm.Send_init
        both = [comm.Recv_init(into, left, 6), start(out, (me + 1) % size, 6)]
        for nth in range(self.dice.randrange(1, 4)):
            out[:] = self.bytes_of(me + nth, length)
            into[:] = 255
            MPI.Prequest.Startall(both)
            MPI.Request.Waitall(both)
            self.check(into, self.bytes_of(left + nth, length), f"persistent of {length}")
        for request in both:
            request.Free()

    def later(self, part: Part) -> None:
        """Messages that arrive during later steps. Their communicator may be freed meanwhile."""
        if part.far:
            return
        comm, me, size = part.comm, part.comm.rank, len(part.members)
        length, end = self.dice.choice(BYTES), self.step + self.dice.randrange(1, 12)
        right, left = (me + 1) % size, (me - 1) % size
        out, into = self.bytes_of(me, length), np.zeros(length, "u1")
        expected, step = self.bytes_of(left, length), self.step
        tag = 100_000 + step

        def done() -> None:
            self.check(into, expected, f"message of step {step} with {length}")
            out[:] = 0

        requests = [comm.Irecv(into, left, tag), comm.Isend(out, right, tag)]
        self.open.append((end, requests, done))

    def settle(self, step: int) -> None:
        for entry in [entry for entry in self.open if entry[0] <= step]:
            self.open.remove(entry)
            MPI.Request.Waitall(entry[1])
            entry[2]()

    def cancel(self, part: Part) -> None:
        status, into = MPI.Status(), np.zeros(self.own.choice([1, 500_000]), "u1")
        request = part.comm.Irecv(into, MPI.ANY_SOURCE, 999_999)
        if self.own.random() < 0.5:
            request.Test()
        request.Cancel()
        request.Wait(status)
        assert status.Is_cancelled()
