"""Collectives between sites: the messages that cross between them, and the results.

Machines are folders, and the processes are told their sites.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel import Endpoint, Group
from sfm_kernel.collectives import levels, team
from sfm_kernel.collectives.call import Call
from sfm_kernel.observe import snapshot
from tests.contract.conftest import Background
from tests.contract.crowd import outcome
from tests.contract.test_collectives import ARRAYS, OBJECTS, VALUES, affine, concatenated, same
from tests.waiting import wait_until
from tests.zmq.machines import spread, two_machines

pytestmark = pytest.mark.zmq

LAYOUTS = {
    "two sites, one after the other": "a1 a1 b1 b1",
    "two sites, mixed": "a1 b1 a1 b1 a1",
    "two sites, one of two mixed machines": "a1 b1 a2 b1 a1 a2",
    "three sites, mixed, of five machines": "a1 b1 c1 a2 b2 c1 b1",
    "three sites, one after the other": "a1 a2 a2 b1 c1 c1",
}
"""For each rank its machine, whose first letter is its site."""


@pytest.fixture(params=LAYOUTS.values(), ids=LAYOUTS)
def members(
    request: pytest.FixtureRequest, world: str, sfm_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[Endpoint]]:
    with laid_out(request.param, world, sfm_dir, monkeypatch) as ends:
        yield ends


@contextmanager
def laid_out(
    layout: str, world: str, sfm_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[Endpoint]]:
    """The members of a world, by rank, where the layout has them."""
    # A long wait would send notes, which are not counted.
    monkeypatch.setattr(team, "SITES_TICKS", 1 << 30)
    places = [(machine, machine[0]) for machine in layout.split()]
    with spread(places, world, sfm_dir, monkeypatch) as ends:
        assert [ends[0].site_of(rank) for rank in range(len(ends))] == [site for _, site in places]
        yield ends


def at_all(groups: list[Group], program: Callable[[Group], Any]) -> list[Any]:
    running = [Background(lambda group=group: program(group)) for group in groups]
    return [outcome(call) for call in running]


def groups_of(members: list[Endpoint]) -> list[Group]:
    running = [Background(lambda sfm=sfm: Group(sfm)) for sfm in members]
    return [call.result() for call in running]


def sent_between_sites(members: list[Endpoint]) -> Counter[tuple[str, str]]:
    """How many messages of any kind each site has sent to each other one, as observers count."""
    sites = {member.uid[16:]: member.site for member in members}
    seen = {process["uid"]: process for sfm in members for process in snapshot(sfm)["processes"]}
    count: Counter[tuple[str, str]] = Counter()
    for process in seen.values():
        for peer in process["peers"]:
            if sites[peer["uid"]] != process["site"]:
                count[process["site"], sites[peer["uid"]]] += peer["sent"]
    return count


FOR_ALL: dict[str, Callable[[Group], Any]] = {
    "barrier": lambda group: group.barrier(),
    "allreduce": lambda group: group.allreduce(str(group.rank), concatenated),
    "allreduce of arrays": lambda group: group.allreduce(np.ones(30_000)),
    "allreduce of matrices": lambda group: group.allreduce(np.eye(2), operator.matmul),
    "allgather": lambda group: group.allgather(group.rank),
    "scan": lambda group: group.scan(str(group.rank), concatenated),
}


def rooted(root: int) -> dict[str, Callable[[Group], Any]]:
    return {
        "bcast": lambda group: group.bcast(b"x" * 50_000, root),
        "scatter": lambda group: group.scatter(list(range(group.size)), root),
        "reduce": lambda group: group.reduce(str(group.rank), concatenated, root),
        "reduce of arrays": lambda group: group.reduce(np.ones(300), np.add, root),
        "gather": lambda group: group.gather(group.rank, root),
    }


def test_one_message_crosses_each_way_between_two_sites(members: list[Endpoint]) -> None:
    groups = groups_of(members)
    sites = sorted({member.site for member in members})
    before = sent_between_sites(members)
    for name, call in FOR_ALL.items():  # also the first call, in which the machines are found out
        at_all(groups, call)
        now = sent_between_sites(members)
        assert now - before == dict.fromkeys(permutations(sites, 2), 1), name
        before = now
    for root in (0, len(members) - 1, 2):
        home = members[root].site
        away = {(home, site): 1 for site in sites if site != home}
        back = {(site, home): 1 for site in sites if site != home}
        for name, call in rooted(root).items():
            at_all(groups, call)
            now = sent_between_sites(members)
            assert now - before == (away if name in ("bcast", "scatter") else back), (name, root)
            before = now


def test_no_message_waits_for_another_to_cross(
    members: list[Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each site sends its part before it hears of any other: one crossing, and no chain."""
    groups = groups_of(members)
    seen: dict[str, list[str]] = {}
    send, recv = Call.send, Call.recv

    def note(call: Call, place: int, action: str) -> None:
        sfm = call.team.sfm
        if call.team.members[place].site != sfm.site:
            seen.setdefault(sfm.site, []).append(action)

    def noting_send(call: Call, place: int, value: Any = None) -> None:
        note(call, place, "send")
        send(call, place, value)

    def noting_recv(call: Call, place: int) -> Any:
        value = recv(call, place)
        note(call, place, "recv")
        return value

    monkeypatch.setattr(Call, "send", noting_send)
    monkeypatch.setattr(Call, "recv", noting_recv)
    for name, call in FOR_ALL.items():
        seen.clear()
        at_all(groups, call)
        assert seen.keys() == {member.site for member in members}
        for did in seen.values():
            assert ("recv", "send") not in pairwise(did), (name, seen)


def test_results_are_those_of_the_linear_algorithm(members: list[Endpoint]) -> None:
    def compare(group: Group) -> None:
        places, rank = range(group.size), group.rank
        for value, op in OBJECTS:
            linear = group.allreduce(value(rank), op, algorithm="linear")
            for algorithm in (None, "two-level"):
                assert same(group.allreduce(value(rank), op, algorithm=algorithm), linear)
            for root in places:
                got = group.reduce(value(rank), op, root)
                assert same(got, linear if root == rank else None)
        for length, dtype in ARRAYS:
            array = (np.arange(length) * (rank + 1) % 100).astype(dtype)
            for op in (np.add, max, lambda a, b: b, lambda a, b: a):
                kept = array.copy()
                linear = group.allreduce(array, op, algorithm="linear")
                out = np.empty_like(array)
                got = group.allreduce(array, op)
                assert same(got, linear) and got is not array and same(array, kept)
                assert group.allreduce(array, op, out=out) is out and same(out, linear)
                got = group.reduce(array, op, group.size - 1)
                assert same(got, linear if rank == group.size - 1 else None)
        matrix = np.array([[1, rank], [0, 2]])
        linear = group.allreduce(matrix, operator.matmul, algorithm="linear")
        assert same(group.allreduce(matrix, operator.matmul), linear)
        for root in places:
            for value in (*VALUES, np.arange(200_000)):
                assert same(group.bcast(value if root == rank else "ignored", root), value)
            values = [(place, "y" * 3000 * place) for place in places]
            assert group.gather(values[rank], root) == (values if root == rank else None)
            assert group.scatter(values if root == rank else None, root) == values[rank]
        assert group.allgather((rank, "z" * 5000)) == [(place, "z" * 5000) for place in places]
        assert group.alltoall([(rank, place) for place in places]) == [(p, rank) for p in places]
        linear = group.scan((rank, 1), affine, algorithm="linear")
        assert group.scan((rank, 1), affine) == linear
        for length in (5, 100_000):
            linear = group.scan(np.ones(length) * rank, algorithm="linear")
            assert same(group.scan(np.ones(length) * rank), linear)

    assert not any(at_all(groups_of(members), compare))


def test_nobody_leaves_a_barrier_before_all_have_come(members: list[Endpoint]) -> None:
    came: list[int] = []

    def meet(group: Group) -> None:
        for nth in range(20):
            came.append(group.rank)
            group.barrier()
            assert len(came) >= (nth + 1) * group.size
            group.barrier()

    assert not any(at_all(groups_of(members), meet))


def test_many_sites_go_by_trees(world: str, sfm_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "FEW", 2)

    def check(group: Group) -> None:
        linear = group.allreduce(str(group.rank), concatenated, algorithm="linear")
        assert group.allreduce(str(group.rank), concatenated) == linear
        for root in range(group.size):
            assert group.bcast(root if root == group.rank else None, root) == root
            got = group.reduce(str(group.rank), concatenated, root)
            assert got == (linear if root == group.rank else None)
            assert group.scatter(list(linear), root) == str(group.rank)
        group.barrier()

    with laid_out("a1 b1 c1 d1 e1 a1", world, sfm_dir, monkeypatch) as members:
        groups = groups_of(members)
        before = sent_between_sites(members)
        at_all(groups, Group.barrier)
        assert max((sent_between_sites(members) - before).values()) == 1
        assert not any(at_all(groups, check))


def test_sites_of_one_machine_share_its_memory(world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFM_TRANSPORT", "shm")
    with ExitStack() as stack:
        members = [stack.enter_context(sfm_kernel.join(world, site=site)) for site in "abab"]
        groups = groups_of(members)
        assert all(len(group._team.sites) == 2 for group in groups)
        at_all(groups, Group.barrier)
        assert not any(group._team.inner for group in groups)
        for algorithm in (None, "two-level"):
            options = {"op": concatenated, "algorithm": algorithm}
            got = at_all(groups, lambda group, o=options: group.allreduce(str(group.rank), **o))
            assert got == ["0123"] * 4


def test_a_deadlock_between_sites_is_told_in_the_words_of_the_program(
    world: str, sfm_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFM_DIR", str(sfm_dir))  # put back at the end
    begin = "sfm.wait_for(*'ABCD')\ngroup = sfm_kernel.Group(sfm)\ngroup.barrier()\n"
    with two_machines(world, sfm_dir) as machines:
        machines.transport = "shm,zmq"
        for name, machine in zip("ABCD", ("here", "here", "there", "there"), strict=True):
            last = "sfm.recv(src='A')" if name == "D" else "group.barrier()"
            machines.process(name, machine, begin + last, size=4)
        wait_until(lambda: machines.diagnosis()["verdict"] == "deadlock")
        diagnosis = machines.diagnosis()
        assert diagnosis["title"] == "Deadlock: A → C → D → A"
        assert "C is in barrier() and waits for D" in " ".join(diagnosis["sentences"])
        waits = [process["wait"] for process in machines.snapshot()["processes"]]
        assert len({tuple(wait["group"]) for wait in waits if wait["group"]}) == 1
