"""Cartesian grids, graphs, distributed graphs, and what neighbours say to each other."""

from __future__ import annotations

from itertools import product

import numpy as np
from cases import WAYS, Cases, blank, call, crowds, named, numbers, raised, rank, ranks
from mpi4py import MPI

cases = Cases()


def dimensions() -> None:
    for nodes in (1, 2, 6, 7, 12, 24, 36, 64, 100):
        for wanted in (1, 2, 3, 4, [0, 0], [0, 2], [0, 0, 3], [nodes], [1, 0]):
            found = raised(MPI.Compute_dims, nodes, wanted)
            if found == "none":
                found = MPI.Compute_dims(nodes, wanted)
            cases.add(f"Compute_dims {nodes}", found)
    cases.error("Compute_dims", MPI.Compute_dims, 6, [-1, 0])
    cases.error("Compute_dims", MPI.Compute_dims, 0, [0])


def grids(name: str, comm: MPI.Intracomm) -> None:
    for count in (1, 2, 3):
        dims = MPI.Compute_dims(comm.size, count)
        for periodic in (False, True, [axis % 2 == 0 for axis in range(count)]):
            case = f"Cart {count} {periodic}{name}"
            grid = comm.Create_cart(dims, periodic)
            cases.add(case, grid, grid.Get_dim(), grid.dim, grid.ndim, grid.Get_topo())
            cases.add(case, grid.dims, grid.periods, grid.coords, grid.topo, grid.is_topo)
            cases.add(case, named(grid.Get_topology(), "CART", "GRAPH", "DIST_GRAPH", "UNDEFINED"))
            for coords in map(grid.Get_coords, range(grid.size)):
                cases.add(case, coords, grid.Get_cart_rank(coords))
            for axis, step in product(range(count), (-1, 0, 1, 2)):
                cases.add(case, ranks(grid.Shift(axis, step)))
            cases.add(case, grid.degrees, grid.indegree, grid.outdegree)
            cases.add(case, ranks(grid.inedges), ranks(grid.outedges))
            cases.add(case, rank(comm.Cart_map(dims, periodic)))
            if periodic is True:
                cases.add(case, grid.Get_cart_rank([-1] * count), grid.Get_cart_rank([5] * count))
            for kept in product((False, True), repeat=count):
                sub = grid.Sub(kept)
                cases.add(case, sub, sub.dims, sub.coords if sub.ndim else "none")
                sub.Free()
            copy = grid.Dup()
            cases.add(case, copy, copy.dims)
            copy.Free()
            neighbours(case, grid)
            grid.Free()
    small = comm.Create_cart([1])
    cases.add(f"Cart of one{name}", small, small == MPI.COMM_NULL)
    if small != MPI.COMM_NULL:
        small.Free()
    empty = comm.Create_cart([])
    cases.add(f"Cart without dimensions{name}", empty)
    cases.error(f"Cart too large{name}", comm.Create_cart, [comm.size + 1])


def graphs(name: str, comm: MPI.Intracomm) -> None:
    n = comm.size
    chain = [[peer for peer in (me - 1, me + 1) if 0 <= peer < n] for me in range(n)]
    star = [[peer for peer in range(n) if peer] if me == 0 else [0] for me in range(n)]
    doubled = [[(me + 1) % n, (me + 1) % n] for me in range(n)]
    none: list[list[int]] = [[] for _ in range(n)]
    for shape, edges in {"chain": chain, "star": star, "doubled": doubled, "none": none}.items():
        case = f"Graph {shape}{name}"
        index = np.cumsum([len(targets) for targets in edges]).tolist()
        flat = [target for targets in edges for target in targets]
        graph = comm.Create_graph(index, flat)
        cases.add(case, graph, rank(comm.Graph_map(index, flat)))
        if graph != MPI.COMM_NULL:  # an index that begins with 0 has one entry more than nodes
            about_graph(case, graph)
            if shape != "doubled":
                neighbours(case, graph)
            graph.Free()
        sources = [source for source in range(n) for to in edges[source] if to == comm.rank]
        for weights in (None, True):
            given = {
                "sourceweights": [10 + source for source in sources],
                "destweights": [20 + target for target in edges[comm.rank]],
            }
            directed = comm.Create_dist_graph_adjacent(
                sources, edges[comm.rank], **(given if weights else {})
            )
            case = f"Dist_graph_adjacent {shape} {weights}{name}"
            about(case, directed)
            neighbours(case, directed)
            copy = directed.Dup()
            about(case, copy)
            copy.Free()
            directed.Free()
    # Every rank names the edges of the next one.
    me = (comm.rank + 1) % n
    for weights in (None, [5 + me]):
        graph = comm.Create_dist_graph([me], [1], [(me + 2) % n], weights)
        case = f"Dist_graph {weights is not None}{name}"
        about(case, graph)
        neighbours(case, graph)
        graph.Free()
    empty = comm.Create_dist_graph([], [], [])
    about(f"Dist_graph empty{name}", empty)
    empty.Free()


def about_graph(case: str, graph: MPI.Graphcomm) -> None:
    cases.add(case, graph.Get_dims(), graph.dims, graph.Get_topo(), graph.topo)
    cases.add(case, graph.nnodes, graph.nedges, graph.index, graph.edges)
    cases.add(case, graph.nneighbors, graph.neighbors, graph.degrees, graph.inoutedges)
    cases.add(case, graph.indegree, graph.outdegree)
    for node in range(graph.size):
        cases.add(case, graph.Get_neighbors_count(node), graph.Get_neighbors(node))


def about(case: str, graph: MPI.Distgraphcomm) -> None:
    cases.add(case, graph, graph.Get_dist_neighbors_count(), graph.Get_dist_neighbors())
    cases.add(case, graph.degrees, graph.inedges, graph.outedges, graph.inoutedges)


def neighbours(case: str, comm: MPI.Topocomm) -> None:
    sources, targets = comm.indegree, comm.outdegree
    data = numbers("i", 3, 10 * comm.rank)
    each = numbers("i", 3 * targets, comm.rank)
    for way in WAYS if comm.size == MPI.COMM_WORLD.size else WAYS[:1]:
        memory = blank("i", 3 * sources)
        call(comm, way, "Neighbor_allgather", data, memory)
        cases.add(f"neighbours {case}", memory)
        memory = blank("i", 4 * sources)
        places = [4 * nth for nth in range(sources)]
        call(comm, way, "Neighbor_allgatherv", data, [memory, ([3] * sources, places)])
        cases.add(f"neighbours {case}", memory)
        memory = blank("i", 3 * sources)
        call(comm, way, "Neighbor_alltoall", each, memory)
        cases.add(f"neighbours {case}", memory)
        memory = blank("i", 3 * sources)
        layout = [2] * targets, [3 * nth for nth in range(targets)]
        into = [2] * sources, [3 * nth for nth in range(sources)]
        call(comm, way, "Neighbor_alltoallv", [each, layout], [memory, into])
        cases.add(f"neighbours {case}", memory)
        memory = blank("i", 3 * sources)
        sent = [each, [1] * targets, [12 * nth for nth in range(targets)], [MPI.INT] * targets]
        got = [memory, [1] * sources, [12 * nth for nth in range(sources)], [MPI.INT] * sources]
        call(comm, way, "Neighbor_alltoallw", sent, got)
        cases.add(f"neighbours {case}", memory)
    cases.add(f"neighbours {case}", comm.neighbor_allgather((comm.rank, "object")))
    given = [(comm.rank, nth) for nth in range(targets)]
    cases.add(f"neighbours {case}", comm.neighbor_alltoall(given))


def wrong(comm: MPI.Intracomm) -> None:
    grid = comm.Create_cart([comm.size], [False])
    cases.error("coordinates outside", grid.Get_cart_rank, [comm.size])
    cases.error("rank outside", grid.Get_coords, comm.size)
    cases.error("too many coordinates", grid.Get_cart_rank, [0, 0])
    cases.error("axis outside", grid.Shift, 3, 1)
    cases.error("Sub", grid.Sub, [True, True])
    cases.error("periods", comm.Create_cart, [1], [True, False])
    cases.error("graph", comm.Create_graph, [1], [comm.size + 3])
    cases.error("is no topology", lambda: MPI.Cartcomm(comm).dims)
    cases.error("is no topology", lambda: comm.Create_graph([0], []).dims)
    cases.add("topology", comm.Get_topology() == MPI.UNDEFINED, comm.is_topo)
    cases.add("cast", MPI.Cartcomm(grid), MPI.Intracomm(grid), MPI.Comm(grid))
    cases.error("cast", MPI.Graphcomm, grid)
    cases.error("cast", MPI.Cartcomm, comm)
    grid.Free()


dimensions()
for name, comm in crowds():
    grids(name, comm)
    graphs(name, comm)
wrong(MPI.COMM_WORLD)
cases.done()
