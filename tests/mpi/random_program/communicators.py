"""Communicators that are made and freed, between two groups, and windows on them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI

from tests.mpi.random_program.step import WORLD, Part, Steps


class Communicators(Steps):
    """All ranks know who belongs to what was made."""

    def make(self, part: Part) -> None:
        """All throw the same dice, and know who belongs to what was made."""
        way, key = self.dice.randrange(5), self.dice.choice([-1, 1])
        colors = [self.dice.randrange(3) for _ in range(WORLD.size)]
        if len(self.parts) > 7:
            return
        if part.far:
            if way > 2:
                return
            high = min(part.members) < min(part.far)
            comm = part.comm.Merge(not high) if part.is_mine else None
            members = sorted([part.members, part.far], key=min)
            self.parts.append(Part(comm, members[0] + members[1]))
        elif way == 0 or part.alone:
            comm = part.comm.Dup() if part.is_mine else None
            self.parts.append(Part(comm, part.members))
            self.parts[-1].alone = part.alone
        elif way in (1, 2):
            order = part.members[::key]
            mine = colors[WORLD.rank]
            comm = None
            if part.is_mine:
                comm = part.comm.Split(mine if mine else MPI.UNDEFINED, key * part.comm.rank)
            for color in (1, 2):
                members = [rank for rank in order if colors[rank] == color]
                if members:
                    self.parts.append(Part(comm if color == mine else None, members))
        elif way == 3 and len(part.members) > 1:
            cut = 1 + self.dice.randrange(len(part.members) - 1)
            low, high = part.members[:cut], part.members[cut:]
            near = low if WORLD.rank in low else high
            comm = None
            if part.is_mine:
                local = part.comm.Split(int(WORLD.rank in high), part.comm.rank)
                leader = cut if WORLD.rank in low else 0
                comm = local.Create_intercomm(0, part.comm, leader, 3)
                local.Free()
            far = high if near is low else low
            # For those outside it is that of the lower side.
            self.parts.append(Part(comm, near, far))
        elif WORLD.rank >= 0:
            self.parts.append(Part(MPI.COMM_SELF, [WORLD.rank]))
            self.parts[-1].alone = True

    def free(self, part: Part) -> None:
        if len(self.parts) < 3 or part is self.parts[0]:
            return
        self.parts.remove(part)
        if part.is_mine and part.comm != MPI.COMM_SELF:
            part.comm.Free()

    def between(self, part: Part) -> None:
        """Collectives of an intercommunicator."""
        count, way = self.begin(), self.dice.randrange(4)
        comm, near, far = part.comm, part.members, part.far
        low, high = (near, far) if min(near) < min(far) else (far, near)
        if way == 0:
            comm.Barrier()
        elif way == 1:
            op, combine = self.operation()
            into = np.zeros(count, self.dtype)
            comm.Allreduce(self.data(WORLD.rank, count), into, op)
            self.check(into, combine([self.data(rank, count) for rank in far]), "far Allreduce")
        elif way == 2:
            from_low, nth = self.dice.random() < 0.5, self.dice.randrange(720)
            group = low if from_low else high
            root = nth % len(group)
            right = self.data(group[root], count)
            if near is group or near == group:
                is_root = comm.rank == root
                comm.Bcast(right.copy(), MPI.ROOT if is_root else MPI.PROC_NULL)
            else:
                into = np.zeros(count, self.dtype)
                comm.Bcast(into, root)
                self.check(into, right, "far Bcast")
        else:
            into = np.zeros((len(far), count), self.dtype)
            comm.Allgather(self.data(WORLD.rank, count), into)
            right = np.array([self.data(rank, count) for rank in far])
            self.check(into.ravel(), right.ravel(), "far Allgather")


class Windows(Steps):
    """Operations in all kinds of epochs."""

    def window(self, part: Part) -> None:
        comm, me, size = part.comm, part.comm.rank, len(part.members)
        chunk = self.dice.choice([1, 8, 100, 5000])
        room = chunk * size + 2
        if self.dice.random() < 0.5:
            memory = np.zeros(room, "i8")
            win = MPI.Win.Create(memory, 8, comm=comm)
        else:
            win = MPI.Win.Allocate(room * 8, 8, comm=comm)
            memory = np.frombuffer(win.tomemory(), "i8")
            memory[:] = 0
        comm.Barrier()
        self.dtype = np.dtype("i8")
        counter, total = chunk * size, chunk * size + 1
        calls, added = self.dice.randrange(1, 6), 0
        for round_ in range(self.dice.randrange(1, 4)):
            way, target = self.dice.randrange(4), (me + 1 + round_) % size
            mine = self.data(WORLD.rank, chunk, round_)
            seen: list[int] = []
            work = partial(self.access, win, target, mine, [me * chunk, chunk, MPI.INT64_T], total)

            if way == 0:
                win.Fence()
                work(calls)
                win.Fence()
            elif way == 1:
                win.Lock(target, self.dice.choice([MPI.LOCK_SHARED, MPI.LOCK_EXCLUSIVE]))
                work(calls)
                win.Unlock(target)
            elif way == 2:
                win.Lock_all()
                work(calls)
                for _ in range(calls):
                    old = np.zeros(1, "i8")
                    win.Fetch_and_op(np.ones(1, "i8"), old, 0, counter, MPI.SUM)
                    win.Flush(0)
                    seen.append(int(old[0]))
                back = np.zeros(chunk, "i8")
                win.Flush(target)
                win.Get(back, target, [me * chunk, chunk, MPI.INT64_T])
                win.Flush_all()
                self.check(back, mine, "Get of what was put")
                win.Unlock_all()
            else:
                group = comm.Get_group()
                origins = group.Incl([(me - 1 - round_) % size])
                targets = group.Incl([target])
                win.Post(origins)
                win.Start(targets)
                work(calls)
                win.Complete()
                win.Wait()
                for one in (group, origins, targets):
                    one.Free()
            comm.Barrier()
            added += calls
            win.Lock(me)
            writer = (me - 1 - round_) % size
            self.check(
                memory[writer * chunk : (writer + 1) * chunk],
                self.data(part.members[writer], chunk, round_),
                f"window way {way}",
            )
            assert memory[total] == added, (memory[total], added, way)
            win.Unlock(me)
            if way == 2:
                everything = sorted(n for numbers in comm.allgather(seen) for n in numbers)
                begin = everything[0]
                assert everything == list(range(begin, begin + calls * size)), everything
            comm.Barrier()
        win.Free()

    def access(
        self, win: Any, target: int, put: np.ndarray, at: list[Any], total: int, calls: int
    ) -> None:
        """Put, and add to the total of the target so often."""
        win.Put(put, target, at)
        for _ in range(calls):
            win.Accumulate(np.ones(1, "i8"), target, [total, 1, MPI.INT64_T])
