"""MPI's collectives between sites: the messages that cross between sites, and errors.

The test chooses the sites of the processes; they talk over TCP.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from sfm_kernel import Endpoint, ProcessFailed, mpi
from sfm_kernel.observe import snapshot
from tests.mpi.sites import LAYOUTS, Run, in_order

pytestmark = pytest.mark.zmq


def for_all(comm: Any) -> dict[str, Callable[[], object]]:
    """Calls in which each process has data for all."""
    rank, size = comm.rank, comm.size
    data, result, each = np.full(3, rank), np.empty(3, int), np.empty((size, 3), int)
    counts = list(range(1, size + 1))
    varied = np.empty(sum(counts), int)
    return {
        "Barrier": comm.Barrier,
        "Allreduce": lambda: comm.Allreduce(data, result),
        "Allreduce in order": lambda: comm.Allreduce(*in_order(comm)),
        "Allgather": lambda: comm.Allgather(data, each),
        "Allgatherv": lambda: comm.Allgatherv(np.full(rank + 1, rank), [varied, counts]),
        "Scan": lambda: comm.Scan(data, result),
        "Exscan": lambda: comm.Exscan(data, result),
        "Reduce_scatter_block": lambda: comm.Reduce_scatter_block(each, result),
        "Ibarrier": lambda: comm.Ibarrier().Wait(),
        "Iallreduce": lambda: comm.Iallreduce(data, result).Wait(),
    }


def rooted(comm: Any, root: int) -> dict[str, Callable[[], object]]:
    """Calls in which all processes have data for one, or one for all."""
    rank, size = comm.rank, comm.size
    data, result, each = np.full(3, rank), np.empty(3, int), np.empty((size, 3), int)
    counts = list(range(1, size + 1))
    block, all_parts = np.full(rank + 1, rank), np.empty(sum(counts), int)
    varied = [all_parts, counts] if rank == root else None
    return {
        "Bcast": lambda: comm.Bcast(data, root),
        "Scatter": lambda: comm.Scatter(each, result, root),
        "Scatterv": lambda: comm.Scatterv(varied, block, root),
        "Reduce": lambda: comm.Reduce(data, result, root=root),
        "Gather": lambda: comm.Gather(data, each, root),
        "Gatherv": lambda: comm.Gatherv(block, varied, root),
    }


def sent(sfm: Endpoint) -> Counter[str]:
    """How many messages this process has sent to each other site, as observers count."""
    sites = {member.uid[16:]: member.site for member in sfm.members()}
    entry = next(process for process in snapshot(sfm)["processes"] if process["name"] == sfm.name)
    count: Counter[str] = Counter()
    for peer in entry["peers"]:
        if (site := sites[peer["uid"]]) != sfm.site:
            count[site] += peer["sent"]
    return count


def crossings(sfm: Endpoint) -> dict[str, Counter[str]]:
    """Counts of messages that this process has sent to other sites, by call."""
    mpi.use(sfm)
    from mpi4py import MPI

    comm, crossed = MPI.COMM_WORLD, {}
    calls = for_all(comm)
    for root in range(comm.size):
        calls |= {f"{name} {root}": call for name, call in rooted(comm, root).items()}
    for name, call in calls.items():
        before = sent(sfm)
        call()
        crossed[name] = sent(sfm) - before
    return crossed


@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_message_crosses_each_way_between_two_sites(layout: str, run_at: Run) -> None:
    crossed = run_at(layout, crossings)
    sites = sorted(set(layout))
    for name in crossed[0]:
        count: Counter[tuple[str, str]] = Counter()
        for here, calls in zip(layout, crossed, strict=True):
            count.update({(here, there): number for there, number in calls[name].items()})
        call, *root = name.split()
        expected = set(permutations(sites, 2))
        if root and root != ["in", "order"]:
            away = call.startswith(("Bcast", "Scatter"))
            expected = {way for way in expected if way[not away] == layout[int(root[0])]}
        assert count == dict.fromkeys(expected, 1), name


def in_turn(sfm: Endpoint) -> None:
    """Each site in turn begins a call, and has sent to all others before any of them begins it."""
    mpi.use(sfm)
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    rank, size, here = comm.rank, comm.size, sfm.site
    data, result, each = np.full(3, rank), np.empty(3, int), np.empty((size, 3), int)
    calls: list[Callable[[], Any]] = [
        comm.Ibarrier,
        lambda: comm.Iallreduce(data, result),
        lambda: comm.Iallreduce(*in_order(comm)),
        lambda: comm.Iallgather(data, each),
        lambda: comm.Iscan(data, result),
        lambda: comm.Iexscan(data, result),
        lambda: comm.Ireduce_scatter_block(each, result),
    ]
    sites = [sfm.site_of(peer) for peer in range(size)]
    for nth, begin in enumerate(calls):
        for site in sorted(set(sites)):
            if here != site:
                sfm.recv(call=nth, site=site)
            before = sent(sfm)
            request = begin()
            if rank == sites.index(site):
                while len(sent(sfm) - before) < len(set(sites)) - 1:
                    request.Test()
                for away in (peer for peer in range(size) if sites[peer] != here):
                    sfm.send(dest=away, call=nth, site=site)
            request.Wait()


@pytest.mark.parametrize("layout", LAYOUTS[2::2])
def test_no_message_waits_for_another_to_cross(layout: str, run_at: Run) -> None:
    run_at(layout, in_turn)


def raised(call: Callable[[], object]) -> str:
    """The error of a call; empty if it has none."""
    from mpi4py import MPI

    try:
        call()
    except MPI.Exception as error:
        return str(error)
    return ""


def wrong(sfm: Endpoint) -> list[str]:
    mpi.use(sfm)
    from mpi4py import MPI

    comm, root = MPI.COMM_WORLD, 0
    last = comm.rank == comm.size - 1
    each, block = np.zeros((comm.size, 2), int), np.zeros(2, int)
    less, more = np.zeros(2 - last, int), np.zeros(2 + last, int)
    return [
        raised(lambda: comm.Scatter(each, less, root)),
        raised(lambda: comm.Scatter(each, more, root)),
        raised(lambda: comm.Gather(more, each, root)),
        raised(lambda: comm.Scatter(each, block, root)),
    ]


@pytest.mark.parametrize("layout", ["abab", "baab"])
def test_a_block_that_does_not_fit_is_an_error_where_it_goes(layout: str, run_at: Run) -> None:
    *others, last = run_at(layout, wrong)
    assert " bytes where " in last[0] and " are expected here" in last[0]
    assert "sends 16 bytes where 24 are" in last[1]
    assert "expected here" in others[0][2]
    assert [errors[:2] + errors[3:] for errors in others] == [["", "", ""]] * 3
    assert others[1][2] == others[2][2] == last[2] == last[3] == ""


def mixed(sfm: Endpoint) -> str:
    mpi.use(sfm)
    from mpi4py import MPI

    comm, value = MPI.COMM_WORLD, np.zeros(1, int)
    if comm.rank == 0:
        return raised(lambda: comm.Gather(value, np.zeros(2, int), root=0))
    comm.Bcast(value, root=1)
    return ""


def test_calls_that_do_not_fit_are_named(run_at: Run) -> None:
    error, _ = run_at("ab", mixed)
    assert "process 1 of MPI_COMM_WORLD calls MPI_Bcast(root=1)" in error
    assert "where this one calls comm.Gather" in error


def barrier_without_the_last(sfm: Endpoint) -> None:
    mpi.use(sfm)
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    comm.Barrier() if comm.rank < comm.size - 1 else comm.recv(source=0)


def test_a_deadlock_between_sites_says_who_waits_for_whom(run_at: Run) -> None:
    with pytest.raises(ProcessFailed) as failed:
        run_at("abab", barrier_without_the_last, detect=True)
    assert "0 → 1 → 3 → 0" in str(failed.value)
    assert "1 is in comm.Barrier() and waits for 3" in str(failed.value)
