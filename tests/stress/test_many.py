"""Many processes, many messages, many joins. ``make long`` does fifty times as much."""

from __future__ import annotations

import gc
import os
import random

import pytest

import sfm_kernel
from sfm_kernel import Endpoint
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(1800)


def test_everybody_talks_to_everybody(kind: str, effort: int) -> None:
    """Random sizes and receivers; each stream is complete, whole and in order."""

    def work(sfm: Endpoint, seed: int, count: int) -> int:
        rng = random.Random(seed * 100 + sfm.rank)
        others = [rank for rank in range(sfm.size) if rank != sfm.rank]
        numbers = dict.fromkeys(others, 0)
        expected = dict.fromkeys(others, 0)

        def check(m: sfm_kernel.Message) -> None:
            assert m.n == expected[m.src]
            assert m.data == bytes([m.n % 251]) * len(m.data)
            expected[m.src] += 1

        for _ in range(count):
            dest = rng.choice(others)
            size = rng.choice([0, 1, 100, 5_000, 70_000, 300_000])
            sfm.send(dest=dest, n=numbers[dest], data=bytes([numbers[dest] % 251]) * size)
            numbers[dest] += 1
            while rng.random() < 0.5 and sfm.peek(data=lambda _: True):
                check(sfm.recv_nb(data=lambda _: True))
        for other in others:
            sfm.send(dest=other, total=numbers[other])
        for other in others:
            total = sfm.recv(60, src=other, total=lambda _: True).total
            while expected[other] < total:
                check(sfm.recv(60, src=other))
        return sum(expected.values())

    for seed in range(effort):
        assert sum(sfm_kernel.run(work, 5, seed, 150, timeout=300)) == 5 * 150


def test_a_slow_receiver_bounds_its_senders(kind: str, effort: int) -> None:
    """Small messages to a receiver that does not look: none is lost, memory stays bounded."""

    def work(sfm: Endpoint, count: int) -> float:
        sfm.buffering = 1 << 20
        if sfm.rank:
            for n in range(count):
                sfm.send(dest=0, n=n)
            return 0.0
        before = resident()
        worst = 0.0
        for n in range(count):
            m = sfm.recv(60, src=1)
            assert m.n == n
            if n % 1000 == 0:
                worst = max(worst, resident() - before)
        return worst

    def resident() -> float:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20

    grown = sfm_kernel.run(work, 2, 20_000 * effort, timeout=900)[0]
    assert grown < 40, f"{grown:.0f} MiB more for 1 MiB of buffering"


def test_round_and_round(kind: str, effort: int) -> None:
    """A ring of more processes than cores."""

    def work(sfm: Endpoint, rounds: int) -> int:
        right, left = (sfm.rank + 1) % sfm.size, (sfm.rank - 1) % sfm.size
        token = 0
        for n in range(rounds):
            if sfm.rank == 0:
                sfm.send(dest=right, n=n, token=token)
                token = sfm.recv(60, src=left, n=n).token
            else:
                m = sfm.recv(60, src=left, n=n)
                sfm.send(dest=right, n=n, token=m.token + 1)
        return token

    assert sfm_kernel.run(work, 6, 200 * effort, timeout=600)[0] == 200 * effort * 5


def open_files() -> int:
    gc.collect()  # an endpoint and its parts refer to each other
    return len(os.listdir("/proc/self/fd"))


def mappings() -> int:
    with open("/proc/self/maps") as file:
        return sum(".seg" in line or ".ring" in line for line in file)


def test_joining_and_leaving_leaks_nothing(kind: str, world: str, effort: int) -> None:
    with sfm_kernel.join(world, "stays") as stays:
        for _ in range(3):
            join_pair(stays)
        files, maps = open_files(), mappings()
        for _ in range(20 * effort):
            join_pair(stays)
        # Connections to processes that have left are given up a moment later.
        wait_until(lambda: open_files() <= files and mappings() <= maps)


def join_pair(stays: Endpoint) -> None:
    """Two endpoints join, talk to each other and to a third, and leave."""
    with sfm_kernel.join(stays.world, "A") as a, sfm_kernel.join(stays.world, "B") as b:
        a.send(dest="B", n=1)
        b.send(dest="A", n=b.recv(20).n)
        assert a.recv(20).n == 1
        a.send(dest="stays", n=2)
        stays.send(dest="B", n=stays.recv(20).n)
        assert b.recv(20).n == 2
