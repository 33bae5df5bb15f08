"""Random correct calls between worlds that spawn and meet each other, with arguments SEED COUNT.

Each world leaves as soon as it has done its part, while the others may still wait for each other.
A spawned process gets the seed, and the sizes of both worlds.
"""

from __future__ import annotations

import random
import sys
import time
from typing import Any

from mpi4py import MPI

CALLS = ["Barrier", "Ibarrier", "bcast", "bcast", "gather", "scatter", "allgather", "reduce"]
CALLS += ["send", "ssend", "Merge"]


def talk(inter: Any, seed: int, first: bool, sizes: tuple[int, int]) -> None:
    """This process's part of some calls, which both worlds draw alike; then it leaves."""
    dice, own = random.Random(seed), random.Random(seed * 99 + 2 * MPI.COMM_WORLD.rank + first)
    for number in range(dice.randrange(1, 6)):
        call, of_first = dice.choice(CALLS), dice.random() < 0.5
        root = dice.randrange(sizes[not of_first])
        other = dice.randrange(sizes[of_first])
        if own.random() < 0.4:
            time.sleep(own.random() * 0.03)
        if here := of_first == first:
            at = MPI.ROOT if inter.rank == root else MPI.PROC_NULL
        else:
            at = root
        is_root = at == MPI.ROOT
        if call == "Barrier":
            inter.Barrier()
        elif call == "Ibarrier":
            inter.Ibarrier().Wait()
        elif call == "bcast":
            value = inter.bcast(number if is_root else None, root=at)
            assert here or value == number
        elif call == "gather":
            values = inter.gather(inter.rank, root=at)
            assert not is_root or values == list(range(inter.remote_size))
        elif call == "scatter":
            value = inter.scatter(list(range(inter.remote_size)) if is_root else None, root=at)
            assert here or value == inter.rank
        elif call == "allgather":
            assert inter.allgather(inter.rank) == list(range(inter.remote_size))
        elif call == "reduce":
            total = inter.reduce(1, root=at)
            assert not is_root or total == inter.remote_size
        elif call == "Merge":
            both = inter.Merge(high=not first)
            assert both.allreduce(1) == sum(sizes)
            both.Free()
        elif is_root:
            getattr(inter, call)(number, dest=other, tag=number)
        elif not here and inter.rank == other:
            assert inter.recv(source=root, tag=number) == number
    if own.random() < 0.3:
        time.sleep(own.random() * 0.05)
    inter.Disconnect() if own.random() < 0.5 else inter.Free()


def spawn(comm: Any, seed: int, count: int) -> None:
    """Spawn a world, and talk with it."""
    words = [__file__, *map(str, (seed, comm.size, count))]
    talk(comm.Spawn(sys.executable, words, maxprocs=count), seed, True, (comm.size, count))


def meet(world: Any, seed: int) -> None:
    """The even and the odd ranks connect, and talk."""
    half, even = world.Split(world.rank % 2, world.rank), world.rank % 2 == 0
    port = world.bcast(MPI.Open_port() if world.rank == 0 else None)
    inter = half.Accept(port) if even else half.Connect(port)
    talk(inter, seed, even, ((world.size + 1) // 2, world.size // 2))
    if world.rank == 0:
        MPI.Close_port(port)
    half.Free()


def main(world: Any, seed: int, count: int) -> None:
    """The first world: spawn others, together and alone, and split in two that meet."""
    for number in range(seed, seed + count):
        dice = random.Random(number)
        kind, size = dice.choice(["all", "each", "one", "meet"]), dice.randrange(1, 4)
        if kind == "all":
            spawn(world, number, size)
        elif kind == "each":
            spawn(MPI.COMM_SELF, number * 10 + world.rank, size)
        elif kind == "meet":
            meet(world, number)
        elif world.rank == dice.randrange(world.size):
            spawn(MPI.COMM_SELF, number, size)
        if dice.random() < 0.5:
            world.Barrier()
    print("over", flush=True)


if (parent := MPI.Comm.Get_parent()) == MPI.COMM_NULL:
    main(MPI.COMM_WORLD, *map(int, sys.argv[1:]))
else:
    seed, parents, count = map(int, sys.argv[1:])
    talk(parent, seed, False, (parents, count))
