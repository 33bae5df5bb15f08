from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable

from mpi4py import MPI

from tests.mpi.random_program.collectives import Collectives
from tests.mpi.random_program.communicators import Communicators, Windows
from tests.mpi.random_program.messages import Messages
from tests.mpi.random_program.step import WORLD, Part


class Program(Collectives, Messages, Windows, Communicators):
    """Steps of all kinds, some of which a process delays."""

    def run(self, steps: int) -> None:
        kinds: list[tuple[float, Callable[[Part], None]]] = [
            (6, self.barrier), (14, self.bcast), (14, self.reduce), (14, self.allreduce),
            (5, self.gather), (5, self.scatter), (5, self.allgather), (4, self.alltoall),
            (5, self.scan), (4, self.reduce_scatter), (6, self.user_reduce), (6, self.located),
            (8, self.messages), (4, self.shift), (2, self.persistent), (4, self.later),
            (2, self.cancel), (3, self.window), (8, self.make), (5, self.free), (4, self.between),
            (8, self.burst), (3, self.begun),
        ]  # fmt: skip
        weights = [weight for weight, _ in kinds]
        for self.step in range(steps):
            part = self.dice.choice(self.parts)
            kind = self.dice.choices(kinds, weights)[0][1]
            if self.dice.random() < 0.1 and self.dice.randrange(WORLD.size) == WORLD.rank:
                time.sleep(self.own.random() * 0.004)
            self.settle(self.step)
            if kind in (self.make, self.free):
                kind(part)
                continue
            if part.far and kind not in (self.messages, self.later):
                kind = self.between
            elif not part.far and kind == self.between:
                kind = self.bcast
            # Everybody throws the dice of this step, also those who have no part in it.
            before = self.dice.getrandbits(62)
            common, self.dice = self.dice, random.Random(before)
            if part.is_mine:
                kind(part)
            self.dice = common
        self.settle(1 << 60)
        WORLD.Barrier()
        assert not WORLD.Iprobe()
        for part in self.parts[1:]:
            if part.is_mine and part.comm != MPI.COMM_SELF:
                part.comm.Free()


if __name__ == "__main__":
    Program(int(sys.argv[1])).run(int(sys.argv[2]))
    if WORLD.rank == 0:
        print("done", flush=True)
