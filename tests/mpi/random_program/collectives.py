"""Blocking and non-blocking collectives."""

from __future__ import annotations

import random
import time
from typing import Any

import numpy as np
from mpi4py import MPI

from tests.mpi.random_program.step import COUNTS, WORLD, Part, Steps


def _composed(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Compose functions x -> ax + b, of which the first is applied first."""
    result = np.empty_like(second)
    result[0::2] = first[0::2] * second[0::2]
    result[1::2] = second[0::2] * first[1::2] + second[1::2]
    return result


def _compose(given: Any, into: Any, _: Any) -> None:
    first, second = np.frombuffer(given, "u4"), np.frombuffer(into, "u4")
    second[:] = _composed(first, second)


def _greatest(given: Any, into: Any, _: Any) -> None:
    first, second = np.frombuffer(given, "u4"), np.frombuffer(into, "u4")
    second[:] = np.maximum(first, second)


PAIR = MPI.UINT32_T.Create_contiguous(2).Commit()
COMPOSE, GREATEST = MPI.Op.Create(_compose, commute=False), MPI.Op.Create(_greatest, commute=True)


class Collectives(Steps):
    """Each returns what it must, also where the program has made the operation."""

    def barrier(self, part: Part) -> None:
        part.comm.Barrier()

    def bcast(self, part: Part) -> None:
        count, root = self.begin(), self.dice.randrange(len(part.members))
        right = self.data(part.members[root], count)
        mine = right.copy() if part.comm.rank == root else np.zeros(count, self.dtype)
        if self.dice.random() < 0.25 and self.own.random() < 0.7:
            wide, buffer = self.spread(mine)
            part.comm.Bcast(buffer, root)
            buffer[2].Free()
            self.check(wide[::2], right, "Bcast of a vector")
            assert (wide[1::2] == 77).all()
            return
        part.comm.Bcast(mine, root)
        self.check(mine, right, f"Bcast({count} {self.dtype}, {root}) {part.members}")

    def spread(self, data: np.ndarray) -> tuple[np.ndarray, Any]:
        """The same elements with a gap after each, and their datatype; and the buffer for it."""
        wide = np.full(2 * data.size, 77, data.dtype)
        wide[::2] = data
        basic = MPI._typedict[data.dtype.char]
        if self.own.random() < 0.5 and data.size:
            made = basic.Create_vector(data.size, 1, 2).Commit()
            return wide, [wide, 1, made]
        made = basic.Create_resized(0, 2 * data.itemsize).Commit()
        return wide, [wide, data.size, made]

    def reduce(self, part: Part) -> None:
        count, root = self.begin(), self.dice.randrange(len(part.members))
        op, combine = self.operation()
        right = combine([self.data(rank, count) for rank in part.members])
        mine, into = self.data(WORLD.rank, count), np.zeros(count, self.dtype)
        if part.comm.rank != root:
            part.comm.Reduce(mine, None, op, root)
            mine[:] = 0  # it is the caller's again
            return
        if self.dice.random() < 0.3:
            into = mine
            part.comm.Reduce(MPI.IN_PLACE, into, op, root)
        else:
            part.comm.Reduce(mine, into, op, root)
        self.check(into, right, f"Reduce({count} {self.dtype}, {root}) {part.members}")

    def allreduce(self, part: Part) -> None:
        count = self.begin()
        op, combine = self.operation()
        right = combine([self.data(rank, count) for rank in part.members])
        mine, into = self.data(WORLD.rank, count), np.zeros(count, self.dtype)
        if self.own.random() < 0.3:
            into = mine
            part.comm.Allreduce(MPI.IN_PLACE, into, op)
        else:
            part.comm.Allreduce(mine, into, op)
        self.check(into, right, f"Allreduce({count} {self.dtype}) {part.members}")

    def gather(self, part: Part) -> None:
        count, root = self.begin(), self.dice.randrange(len(part.members))
        mine = self.data(WORLD.rank, count)
        into = np.zeros((len(part.members), count), self.dtype)
        part.comm.Gather(mine, into if part.comm.rank == root else None, root)
        mine[:] = 0
        if part.comm.rank == root:
            right = np.array([self.data(rank, count) for rank in part.members])
            self.check(into.ravel(), right.ravel(), "Gather")

    def scatter(self, part: Part) -> None:
        count, root = self.begin(), self.dice.randrange(len(part.members))
        sizes = [count + nth % 3 for nth in range(len(part.members))]
        source = self.data(part.members[root], sum(sizes))
        into = np.zeros(sizes[part.comm.rank], self.dtype)
        out = [source.copy(), sizes] if part.comm.rank == root else None
        part.comm.Scatterv(out, into, root)
        start = sum(sizes[: part.comm.rank])
        self.check(into, source[start : start + into.size], "Scatterv")

    def allgather(self, part: Part) -> None:
        count = self.begin()
        right = np.array([self.data(rank, count) for rank in part.members])
        into = np.zeros_like(right)
        if self.dice.random() < 0.3:
            into[part.comm.rank] = self.data(WORLD.rank, count)
            part.comm.Allgather(MPI.IN_PLACE, into)
        else:
            part.comm.Allgather(self.data(WORLD.rank, count), into)
        self.check(into.ravel(), right.ravel(), "Allgather")

    def alltoall(self, part: Part) -> None:
        count = min(self.begin(), 6000)
        me, ranks = part.comm.rank, range(len(part.members))
        out = np.array([self.data(WORLD.rank, count, nth) for nth in ranks])
        right = np.array([self.data(rank, count, me) for rank in part.members])
        into = np.zeros_like(right)
        part.comm.Alltoall(out, into)
        self.check(into.ravel(), right.ravel(), "Alltoall")

    def scan(self, part: Part) -> None:
        count = self.begin()
        op, combine = self.operation()
        me, is_ex = part.comm.rank, self.dice.random() < 0.4
        into = np.zeros(count, self.dtype)
        call = part.comm.Exscan if is_ex else part.comm.Scan
        call(self.data(WORLD.rank, count), into, op)
        before = part.members[: me if is_ex else me + 1]
        if before:
            self.check(into, combine([self.data(rank, count) for rank in before]), "Scan")

    def reduce_scatter(self, part: Part) -> None:
        count, size = min(self.begin(), 6000), len(part.members)
        op, combine = self.operation()
        right = combine([self.data(rank, count * size) for rank in part.members])
        into = np.zeros(count, self.dtype)
        part.comm.Reduce_scatter_block(self.data(WORLD.rank, count * size), into, op)
        me = part.comm.rank
        self.check(into, right[me * count : (me + 1) * count], "Reduce_scatter_block")

    def user_reduce(self, part: Part) -> None:
        """Operations of the program: one that commutes, and one that does not."""
        count, which, root = self.begin(), self.dice.randrange(2), self.dice.randrange(9)
        self.dtype = np.dtype("u4")
        all_of_them = [self.data(rank, 2 * count) + 1 for rank in part.members]
        combine = (_composed, np.maximum)[which]
        right = all_of_them[0]
        for other in all_of_them[1:]:
            right = combine(right, other).astype("u4")
        mine, into = all_of_them[part.comm.rank].astype("u4"), np.zeros(2 * count, "u4")
        kind, op = self.dice.randrange(3), (COMPOSE, GREATEST)[which]
        out, to = [mine, count, PAIR], [into, count, PAIR]
        root %= len(part.members)
        if kind == 0:
            part.comm.Reduce(out, to if part.comm.rank == root else None, op, root)
            if part.comm.rank != root:
                return
        elif kind == 1:
            part.comm.Allreduce(out, to, op)
        else:
            part.comm.Scan(out, to, op)
            right = all_of_them[0]
            for other in all_of_them[1 : part.comm.rank + 1]:
                right = combine(right, other).astype("u4")
        self.check(into, right, f"user's {which} {kind}")

    def located(self, part: Part) -> None:
        """MIN_LOC and MAX_LOC; some of the pairs have a gap."""
        types = [MPI.INT_INT, MPI.DOUBLE_INT, MPI.SHORT_INT, MPI.LONG_INT]
        datatype, first = self.dice.choice(list(zip(types, ["i4", "f8", "i2", "i8"], strict=True)))
        pair = np.dtype([("value", first), ("at", "i4")], align=True)
        self.dtype = np.dtype("i4")
        count, is_max = min(self.dice.choice(COUNTS), 6000), self.dice.random() < 0.5
        root = self.dice.randrange(len(part.members))
        values = np.array([self.data(rank, count, 3) % 5 for rank in part.members])
        best = (np.argmax if is_max else np.argmin)(values, axis=0)
        mine, into = np.zeros(count, pair), np.zeros(count, pair)
        mine["value"], mine["at"] = values[part.comm.rank], part.comm.rank
        out, to = [mine, count, datatype], [into, count, datatype]
        op = MPI.MAXLOC if is_max else MPI.MINLOC
        if self.dice.random() < 0.5:
            part.comm.Allreduce(out, to, op)
        else:
            part.comm.Reduce(out, to if part.comm.rank == root else None, op, root)
            if part.comm.rank != root:
                return
        self.check(into["at"], best.astype("i4"), f"{first} located")
        if count:
            self.check(into["value"], values[best, np.arange(count)], f"{first} located")

    def burst(self, part: Part) -> None:
        """Many small calls in a row, one of which a process delays."""
        calls = [self.bcast, self.reduce, self.allreduce, self.barrier]
        late = self.dice.randrange(40)
        for nth in range(self.dice.randrange(5, 40)):
            if nth == late and self.dice.randrange(WORLD.size) == WORLD.rank:
                time.sleep(0.002)
            inner = self.dice.getrandbits(62)
            common, self.dice = self.dice, random.Random(inner)
            self.dice.choice(calls)(part)
            self.dice = common

    def begun(self, part: Part) -> None:
        """Non-blocking collectives, with blocking ones meanwhile."""
        count, root = self.begin(), self.dice.randrange(len(part.members))
        op, combine = self.operation()
        rights = [combine([self.data(rank, count) for rank in part.members])]
        into, given = np.zeros(count, self.dtype), np.zeros(count, self.dtype)
        source = self.data(part.members[root], count, 9)
        if part.comm.rank == root:
            given[:] = source
        requests = [
            part.comm.Iallreduce(self.data(WORLD.rank, count), into, op),
            part.comm.Ibcast(given, root),
            part.comm.Ibarrier(),
        ]
        dtype = self.dtype
        for _ in range(self.dice.randrange(3)):
            self.bcast(part)
        self.dtype = dtype
        MPI.Request.Waitall(requests)
        self.check(into, rights[0], "Iallreduce")
        self.check(given, source, "Ibcast")
