"""Grids and graphs: who is whose neighbour, and what neighbours give each other."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel import Endpoint
from sfm_kernel.mpi.base.constants import PROC_NULL
from sfm_kernel.mpi.comm.topology import Graph, Grid

# ---- without processes ----


@pytest.mark.parametrize("dims", [(), (1,), (5,), (2, 3), (1, 2, 1), (3, 1, 2)])
def test_coordinates_and_ranks(dims: tuple[int, ...]) -> None:
    grid = Grid(dims, (False,) * len(dims))
    points = list(itertools.product(*(range(extent) for extent in dims)))
    assert [tuple(grid.coords(rank)) for rank in range(grid.size)] == points
    assert [grid.rank(point) for point in points] == list(range(grid.size))


def test_edges_of_a_grid() -> None:
    grid = Grid((2, 3), (True, False))
    assert grid.rank([-1, 0]) == grid.rank([3, 0]) == 3
    assert grid.rank([0, -1]) == grid.rank([0, 3]) == PROC_NULL
    assert grid.sources(0) == grid.destinations(0) == [3, 3, PROC_NULL, 1]
    assert grid.moved(0, 0, -5) == 3
    assert grid.moved(4, 1, 2) == PROC_NULL


def test_parts_of_a_grid() -> None:
    grid = Grid((2, 3, 4), (True, False, True))
    assert grid.part([True, False, True]) == Grid((2, 4), (True, True))
    assert grid.part([False] * 3) == Grid((), ())


def test_neighbours_in_a_graph() -> None:
    graph = Graph((2, 2, 3), (1, 2, 0))
    assert [graph.sources(rank) for rank in range(3)] == [[1, 2], [], [0]]


@pytest.mark.parametrize("extents", [(1,), (2,), (3,), (1, 1), (2, 1), (2, 2), (3, 2)])
@pytest.mark.parametrize("closed", [True, False])
def test_what_goes_forward_comes_from_backward(extents: tuple[int, ...], closed: bool) -> None:
    """The order of sending, and that of receiving, bring each block to its place."""
    grid = Grid(extents, (closed,) * len(extents))
    between: dict[tuple[int, int], list[int]] = {}
    for rank in range(grid.size):
        for nth in grid.sending_order(rank):
            between.setdefault((rank, grid.destinations(rank)[nth]), []).append(nth)
    for rank in range(grid.size):
        for nth, source in enumerate(grid.sources(rank)):
            if source != PROC_NULL:
                assert between[source, rank].pop(0) == nth ^ 1


# ---- with processes ----


def fails_with(code: int, call: Any, *given: Any) -> bool:
    from sfm_kernel.mpi import MPI

    try:
        call(*given)
    except MPI.Exception as error:
        return error.Get_error_class() == code
    return False


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_grids(n: int) -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        world = MPI.COMM_WORLD
        rank, size = world.rank, world.size
        ring = world.Create_cart([size], periods=True, reorder=True)
        assert type(ring) is MPI.Cartcomm
        assert ring.topology == MPI.CART
        assert ring.topo == ([size], [1], [rank])
        assert ring.Shift(0, 1) == ((rank - 1) % size, (rank + 1) % size)
        assert ring.neighbor_alltoall(["back", "forth"]) == ["forth", "back"]
        before, after = (rank - 1) % size, (rank + 1) % size
        assert ring.neighbor_allgather(rank) == [before, after]
        assert world.Cart_map([size]) == rank

        line = ring.Create_cart([size])
        values = line.neighbor_alltoall([(rank, "back"), (rank, "forth")])
        assert values == [
            (rank - 1, "forth") if rank else None,
            (rank + 1, "back") if rank < size - 1 else None,
        ]
        into = np.full(2, -1)
        line.Neighbor_allgather(np.array([rank]), into)
        assert list(into) == [rank - 1, rank + 1 if rank < size - 1 else -1]

        point = world.Create_cart([])
        assert bool(point) == (rank == 0)
        if point:
            assert point.topo == ([], [], [])
            assert point.Get_cart_rank([]) == 0
            assert point.neighbor_allgather(1) == []
        again = ring.Dup()
        assert type(again) is MPI.Cartcomm
        assert again.topo == ring.topo
        assert type(ring.Split()) is MPI.Intracomm

    sfm_kernel.run(program, n)


def test_parts_of_grids_of_processes() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        world = MPI.COMM_WORLD
        grid = world.Create_cart([2, 2], [True, False])
        assert (world.rank == 4) == (grid == MPI.COMM_NULL)
        if grid == MPI.COMM_NULL:
            assert world.Cart_map([2, 2]) == MPI.UNDEFINED
            return
        row, column = grid.coords
        assert grid.degrees == (4, 4)
        assert grid.inedges[:2] == [grid.Get_cart_rank([row - 1, column])] * 2
        rows, columns = grid.Sub([False, True]), grid.Sub([True, False])
        assert rows.topo == ([2], [0], [column])
        assert columns.topo == ([2], [1], [row])
        assert rows.allgather(grid.rank) == [2 * row, 2 * row + 1]
        assert columns.allgather(grid.rank) == [column, column + 2]
        alone = grid.Sub([False, False])
        assert (alone.size, alone.dims) == (1, [])

    sfm_kernel.run(program, 5)


def test_graphs() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        world = MPI.COMM_WORLD
        rank = world.rank
        star = world.Create_graph([2, 3, 4], [1, 2, 0, 0])
        assert type(star) is MPI.Graphcomm
        assert star.dims == (3, 4)
        assert star.topo == ([2, 3, 4], [1, 2, 0, 0])
        assert star.neighbors == star.inedges == ([1, 2] if rank == 0 else [0])
        assert star.Get_neighbors_count(0) == 2
        assert star.neighbor_allgather(rank) == star.neighbors
        counted = world.Create_graph([0, 2, 3, 4], [1, 2, 0, 0])
        assert counted.topo == star.topo
        pair = world.Create_graph([1, 2], [1, 0])
        assert (pair == MPI.COMM_NULL) == (rank == 2) == (world.Graph_map([1, 2], [1, 0]) < 0)

    sfm_kernel.run(program, 3)


def test_distributed_graphs() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        world = MPI.COMM_WORLD
        rank, size = world.rank, world.size
        before, after = (rank - 1) % size, (rank + 1) % size
        ring = world.Create_dist_graph_adjacent([before], [after], [before], [rank])
        assert type(ring) is MPI.Distgraphcomm
        assert ring.Get_dist_neighbors() == ([before], [after], ([before], [rank]))
        assert ring.neighbor_alltoall([rank]) == [before]

        # One process describes it all: several edges between the same two, and to oneself.
        edges = ([0, 2], [3, 1], [1, 1, 0, 0], [5, 6, 7, 8]) if rank == 1 else ([], [], [], [])
        made = world.Create_dist_graph(*edges)
        found = made.Get_dist_neighbors()
        assert (
            found
            == [
                ([0, 2], [1, 1, 0], ([7, 8], [5, 6, 7])),
                ([0, 0], [], ([5, 6], [])),
                ([], [0], ([], [8])),
            ][rank]
        )
        given = [(rank, nth) for nth in range(made.outdegree)]
        assert made.neighbor_alltoall(given) == [[(0, 2), (2, 0)], [(0, 0), (0, 1)], []][rank]
        assert made.Dup().Get_dist_neighbors() == found

        plain = world.Create_dist_graph([rank], [1], [after], MPI.UNWEIGHTED)
        assert plain.Get_dist_neighbors() == ([before], [after], None)
        none = world.Create_dist_graph_adjacent(None, [], None, MPI.WEIGHTS_EMPTY)
        assert none.Get_dist_neighbors_count() == (0, 0, True)

        for times in 1, 2:  # arrays, of which not each has a truth value; that of one rank 0 is no
            to_first = np.zeros(times, np.int64)
            from_all = np.repeat(np.arange(0 if rank else size), times)
            made = world.Create_dist_graph_adjacent(from_all, to_first, from_all, to_first)
            ends = from_all.tolist(), [0] * times
            assert made.Get_dist_neighbors() == (*ends, ends)
            assert made.neighbor_alltoall([rank] * times) == ends[0]

    sfm_kernel.run(program, 3)


@pytest.mark.parametrize("way", ["blocking", "started", "prepared"])
def test_buffers_of_neighbours(way: str) -> None:
    def program(sfm: Endpoint, way: str) -> None:
        from sfm_kernel.mpi import MPI

        def do(name: str, *given: Any) -> None:
            if way == "blocking":
                getattr(ring, name)(*given)
            elif way == "started":
                getattr(ring, "In" + name[1:])(*given).Wait()
            else:
                request = getattr(ring, name + "_init")(*given)
                for _ in range(2):
                    request.Start()
                    request.Wait()
                request.Free()

        world = MPI.COMM_WORLD
        rank, size = world.rank, world.size
        before, after = (rank - 1) % size, (rank + 1) % size
        ring = world.Create_cart([size], periods=[True])
        own = np.arange(3) + 10 * rank
        into = np.zeros((2, 3), int)
        do("Neighbor_allgather", own, into)
        assert into.tolist() == [(np.arange(3) + 10 * one).tolist() for one in (before, after)]

        # From backward comes what was sent forward.
        back, forth = [rank, 0], [rank, 1]
        into = np.zeros((2, 2), int)
        do("Neighbor_alltoall", np.array([back, forth]), into)
        assert into.tolist() == [[before, 1], [after, 0]]

        # One element back, two forth; the receiver leaves a gap between them.
        given = np.array([rank, 100 + rank, 200 + rank])
        gaps = np.full(4, -1)
        do("Neighbor_alltoallv", (given, [1, 2]), (gaps, ([2, 1], [0, 3])))
        assert gaps.tolist() == [100 + before, 200 + before, -1, after]

        gaps[:] = -1
        do("Neighbor_allgatherv", own[:1], (gaps, ([1, 1], [3, 0])))
        assert gaps.tolist() == [10 * after, -1, -1, 10 * before]

        reals = np.array([rank / 2])
        words = np.zeros(2, np.int32)
        received = np.zeros(1)
        do(
            "Neighbor_alltoallw",
            (
                np.frombuffer(np.array([7, 8], np.int32).tobytes() + reals.tobytes(), np.uint8),
                ([2, 1], [0, 8]),
                [MPI.INT, MPI.DOUBLE],
            ),
            (memory := np.zeros(16, np.uint8), ([1, 2], [8, 0]), [MPI.DOUBLE, MPI.INT]),
        )
        words[:], received[:] = memory[:8].view(np.int32), memory[8:].view(float)
        assert (words.tolist(), received.tolist()) == ([7, 8], [before / 2])

    sfm_kernel.run(program, 3, way)


def test_what_is_wrong_with_a_grid_or_graph() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        world = MPI.COMM_WORLD
        assert fails_with(MPI.ERR_ARG, world.Create_cart, [3])
        assert fails_with(MPI.ERR_DIMS, world.Create_cart, [0])
        assert fails_with(MPI.ERR_DIMS, world.Cart_map, [3])
        assert fails_with(MPI.ERR_ARG, world.Create_graph, [1, 1, 1], [0])
        assert fails_with(MPI.ERR_ARG, world.Create_graph, [2, 1], [0, 0])
        assert fails_with(MPI.ERR_ARG, world.Create_graph, [1, 2], [0, 2])
        assert fails_with(MPI.ERR_ARG, world.Create_graph, [2, 2], [0])
        assert fails_with(MPI.ERR_RANK, world.Create_dist_graph, [2], [0], [])
        assert fails_with(MPI.ERR_ARG, world.Create_dist_graph, [0], [-1], [])
        assert fails_with(MPI.ERR_RANK, world.Create_dist_graph_adjacent, [-1], [])
        assert fails_with(MPI.ERR_TOPOLOGY, world.Create_dist_graph_adjacent, [0], [0], [1], None)
        weight = MPI.UNWEIGHTED if world.rank else [4]  # noticed by both of them
        assert fails_with(MPI.ERR_TOPOLOGY, world.Create_dist_graph, [0], [1], [1], weight)
        for call, *given in (
            (world.Create_cart, [2], [True, False]),
            (world.Create_dist_graph_adjacent, [0], [0], MPI.WEIGHTS_EMPTY, MPI.WEIGHTS_EMPTY),
            (world.Create_dist_graph, [0], [1, 1], [0]),
            (world.Create_cart([2]).neighbor_alltoall, [1]),
            (world.Create_cart([2]).Get_cart_rank, [0, 0]),
        ):
            try:
                call(*given)
            except ValueError:
                continue
            raise AssertionError(f"{call} has taken {given}")
        grid = world.Create_cart([2])
        assert fails_with(MPI.ERR_ARG, grid.Get_cart_rank, [2])
        assert fails_with(MPI.ERR_RANK, grid.Get_coords, 2)
        assert fails_with(MPI.ERR_ARG, grid.Shift, 1, 1)
        assert fails_with(MPI.ERR_COMM, MPI.Cartcomm().neighbor_allgather, 1)
        for kind in (MPI.Graphcomm, MPI.Distgraphcomm, MPI.Intercomm):
            try:
                kind(grid)
            except TypeError:
                continue
            raise AssertionError(f"a grid has become a {kind}")
        # After all this the communicator is as it was.
        assert world.allgather(world.rank) == [0, 1]

    sfm_kernel.run(program, 2)


def test_too_much_for_a_neighbour() -> None:
    def program(sfm: Endpoint) -> bool:
        from sfm_kernel.mpi import MPI

        world = MPI.COMM_WORLD
        ring = world.Create_cart([world.size], periods=True)
        given, into = np.zeros(2, int), np.zeros((2, 1), int)
        return fails_with(MPI.ERR_TRUNCATE, ring.Neighbor_allgather, given, (into, 1))

    assert sfm_kernel.run(program, 2) == [True, True]


def test_neighbours_go_on_after_an_error() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        world = MPI.COMM_WORLD
        ring = world.Create_cart([world.size], periods=True)
        wrong = ring.Barrier if ring.rank == 0 else lambda: ring.neighbor_allgather(1)
        assert fails_with(MPI.ERR_OTHER, wrong)
        assert ring.neighbor_allgather(ring.rank) == [(ring.rank - 1) % 3, (ring.rank + 1) % 3]

    sfm_kernel.run(program, 3)


def test_large_blocks_between_two() -> None:
    """A ring of two: each has two blocks for the other, more than is buffered."""

    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        sfm.buffering = 1 << 16
        ring = MPI.COMM_WORLD.Create_cart([2], periods=True)
        given = np.repeat(np.arange(2) + 2 * ring.rank, 1 << 20).astype(np.int8)
        into = np.empty_like(given)
        ring.Neighbor_alltoall(given, into)
        expected = np.repeat([3, 2] if ring.rank == 0 else [1, 0], 1 << 20)
        assert (into == expected).all()

    sfm_kernel.run(program, 2)
