"""Making communicators whose members have neighbours."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sfm_kernel.mpi.base.constants import (
    ERR_ARG,
    ERR_DIMS,
    ERR_RANK,
    ERR_TOPOLOGY,
    UNDEFINED,
    UNWEIGHTED,
    WEIGHTS_EMPTY,
)
from sfm_kernel.mpi.base.errors import fail
from sfm_kernel.mpi.base.handle import Handle
from sfm_kernel.mpi.base.info import INFO_NULL, Info
from sfm_kernel.mpi.comm.creation import of_group, same
from sfm_kernel.mpi.comm.driver import Driver, Work, blocking
from sfm_kernel.mpi.comm.topology import DistributedGraph, Graph, Grid
from sfm_kernel.mpi.engine.communicator import CommState

if TYPE_CHECKING:
    from sfm_kernel.mpi.comm.topology_comms import Cartcomm, Distgraphcomm, Graphcomm

Weights = Sequence[int] | int | None


class TopologyCreation(Handle[CommState]):
    """Making communicators whose members have neighbours.

    All members make the call, and it blocks until all have. ``reorder`` allows other ranks than
    those here; they stay the same nevertheless, since processes of one machine are equally near.
    """

    __slots__ = ()

    def Create_cart(
        self,
        dims: Sequence[int],
        periods: Sequence[bool] | bool | None = None,
        reorder: bool = False,
    ) -> Cartcomm:
        """A grid of the first processes.

        Args:
            dims: its extents.
            periods: which dimensions are closed to rings; all, or none.
        Returns:
            The null communicator on those for whom it has no point.
        Raises:
            Exception: ERR_ARG: the grid has more points than there are processes. ERR_DIMS: an
                extent is less than 1.
        """
        from sfm_kernel.mpi.comm.topology_comms import Cartcomm

        grid = _grid(self._live, dims, periods, ERR_ARG)
        made: CommState | None = blocking(self, of_group, self._live.names[: grid.size])
        if made is not None:
            made.topology = grid
        return Cartcomm._of(made)

    def Cart_map(self, dims: Sequence[int], periods: Sequence[bool] | bool | None = None) -> int:
        """This process's rank in such a grid; UNDEFINED if it would have none. Not collective."""
        state = self._live
        grid = _grid(state, dims, periods, ERR_DIMS)
        return state.rank if state.rank < grid.size else UNDEFINED

    def Create_graph(
        self, index: Sequence[int], edges: Sequence[int], reorder: bool = False
    ) -> Graphcomm:
        """A graph of the first processes, which all members give alike.

        Args:
            index: for each node, where in ``edges`` its own end; a 0 may come first.
            edges: the neighbours of node 0, then those of node 1, …
        Returns:
            The null communicator on those that are no nodes.
        Raises:
            Exception: ERR_ARG: there are more nodes than processes, or it is no graph.
        """
        from sfm_kernel.mpi.comm.topology_comms import Graphcomm

        graph = _graph(self._live, index, edges)
        made: CommState | None = blocking(self, of_group, self._live.names[: len(graph.index)])
        if made is not None:
            made.topology = graph
        return Graphcomm._of(made)

    def Graph_map(self, index: Sequence[int], edges: Sequence[int]) -> int:
        """This process's rank in such a graph; UNDEFINED if it would have none. Not collective."""
        state = self._live
        nodes = len(_graph(state, index, edges).index)
        return state.rank if state.rank < nodes else UNDEFINED

    def Create_dist_graph_adjacent(
        self,
        sources: Sequence[int] | None,
        destinations: Sequence[int] | None,
        sourceweights: Weights = None,
        destweights: Weights = None,
        info: Info = INFO_NULL,
        reorder: bool = False,
    ) -> Distgraphcomm:
        """A graph to which each process gives its own edges, both those that come and that go.

        Args:
            sources, destinations: the other ends of this process's edges.
            sourceweights, destweights: a weight for each; UNWEIGHTED (or None) for a graph without.
        Raises:
            Exception: ERR_RANK: there is no such rank. ERR_TOPOLOGY: only some have weights.
        """
        from sfm_kernel.mpi.comm.topology_comms import Distgraphcomm

        state = self._live
        ends = _ranks(state, sources), _ranks(state, destinations)
        weights = _weights(sourceweights, len(ends[0])), _weights(destweights, len(ends[1]))
        has = [(bool(side), given is not None) for side, given in zip(ends, weights, strict=True)]
        both = None
        if _weighted(state, has):
            both = tuple(weights[0] or ()), tuple(weights[1] or ())
        made: CommState = blocking(self, same, info)
        made.topology = DistributedGraph(tuple(ends[0]), tuple(ends[1]), both)
        return Distgraphcomm._of(made)

    def Create_dist_graph(
        self,
        sources: Sequence[int],
        degrees: Sequence[int],
        destinations: Sequence[int],
        weights: Weights = None,
        info: Info = INFO_NULL,
        reorder: bool = False,
    ) -> Distgraphcomm:
        """A graph to which each process gives some edges, whosever they are.

        The edges of a node are in the order of the ranks that gave them, and of one rank in its
        order.

        Args:
            sources: nodes from which edges go.
            degrees: how many from each.
            destinations: where they go to: those of the first source, then those of the second, …
            weights: one for each edge; UNWEIGHTED (or None) for a graph without.
        Raises:
            Exception: ERR_RANK: there is no such rank. ERR_ARG: a degree is negative.
                ERR_TOPOLOGY: only some edges have weights.
        """
        from sfm_kernel.mpi.comm.topology_comms import Distgraphcomm

        state = self._live
        starts = _ranks(state, sources)
        counts = numbers(degrees, len(starts))
        if min(counts, default=0) < 0:
            fail(ERR_ARG, f"a node has 0 edges or more, not {min(counts)}", self)
        ends = _ranks(state, destinations, sum(counts))
        given = _weights(weights, len(ends))
        begins = [one for one, count in zip(starts, counts, strict=True) for _ in range(count)]
        edges = list(zip(begins, ends, given or [0] * len(ends), strict=True))
        made: CommState = blocking(self, _distributed, edges, given is not None, info)
        return Distgraphcomm._of(made)


def numbers(given: Sequence[int], wanted: int | None = None) -> list[int]:
    """The integers of a sequence. Raises ValueError if there are not as many as wanted."""
    found = [operator.index(given[nth]) for nth in range(len(given))]
    if wanted is not None and len(found) != wanted:
        raise ValueError(f"{wanted} items are needed, not {len(found)}")
    return found


# ---- what a program gives ----


def _grid(
    state: CommState, dims: Sequence[int], periods: Sequence[bool] | bool | None, code: int
) -> Grid:
    extents = numbers(dims)
    if periods is None or isinstance(periods, bool):
        periods = [bool(periods)] * len(extents)
    closed = [bool(one) for one in numbers(periods, len(extents))]
    if min(extents, default=1) < 1:
        fail(ERR_DIMS, f"the extents of a grid are 1 or more, not {extents}", state)
    grid = Grid(tuple(extents), tuple(closed))
    if grid.size > state.size:
        fail(code, f"a grid of {extents} needs {grid.size} processes, not {state.size}", state)
    return grid


def _graph(state: CommState, index: Sequence[int], edges: Sequence[int]) -> Graph:
    ends, others = numbers(index), numbers(edges)
    if ends and ends[0] == 0 and ends[-1] == len(others):
        del ends[0]  # where the edges of each node begin, and the last end
    nodes = len(ends)
    if nodes > state.size:
        fail(ERR_ARG, f"a graph of {nodes} nodes needs as many processes, not {state.size}", state)
    if any(first > second for first, second in pairwise([0, *ends])):
        fail(ERR_ARG, f"index counts the edges up to each node: {ends} does not rise", state)
    count = ends[-1] if ends else 0
    if count > len(others):
        fail(ERR_ARG, f"index speaks of {count} edges, and there are {len(others)}", state)
    for other in others[:count]:
        if not 0 <= other < nodes:
            fail(ERR_ARG, f"an edge leads to {other}: nodes are 0 to {nodes - 1}", state)
    return Graph(tuple(ends), tuple(others[:count]))


def _ranks(state: CommState, given: Sequence[int] | None, wanted: int | None = None) -> list[int]:
    """The ends of edges; None stands for none. A truth test would not do: it may be an array."""
    found = numbers(() if given is None else given, wanted)
    for rank in found:
        if not 0 <= rank < state.size:
            fail(ERR_RANK, f"an edge has the end {rank}: ranks are 0 to {state.size - 1}", state)
    return found


def _weights(given: Weights, edges: int) -> list[int] | None:
    """One for each edge; None for none."""
    if given is None or (isinstance(given, int) and given == UNWEIGHTED):
        return None
    if isinstance(given, int) and given == WEIGHTS_EMPTY:
        if edges:
            raise ValueError(f"WEIGHTS_EMPTY is for no edges, and there are {edges}")
        return []
    return numbers(given, edges)  # type: ignore[arg-type]  # another int has no length


def _weighted(state: CommState, given: Sequence[tuple[bool, bool]]) -> bool:
    """Whether a graph has weights.

    Args:
        given: for each part of it, whether it has edges, and whether it has weights.
    """
    flags = {weighted for edges, weighted in given if edges}
    if len(flags) > 1:
        fail(ERR_TOPOLOGY, "some edges have weights and others not: give all or none", state)
    return flags.pop() if flags else any(weighted for _, weighted in given)


# ---- plans: see ``comm.driver`` ----


def _distributed(
    state: CommState, edges: Sequence[tuple[int, int, int]], weighted: bool, info: Info
) -> Work:
    """Everybody hears of the edges at its node; see ``Create_dist_graph``."""
    again = same(state, info)
    about: list[tuple[Any, ...]] = [([], [], bool(edges), weighted) for _ in state.names]
    for start, end, weight in edges:
        about[end][0].append((start, weight))
        about[start][1].append((end, weight))

    def work(driver: Driver) -> CommState:
        heard = driver.group.alltoall(about)
        has_weights = _weighted(state, [one[2:] for one in heard])
        incoming = [edge for one in heard for edge in one[0]]
        outgoing = [edge for one in heard for edge in one[1]]
        sources, source_weights = _columns(incoming)
        destinations, destination_weights = _columns(outgoing)
        both = (source_weights, destination_weights) if has_weights else None
        made: CommState = again(driver)
        made.topology = DistributedGraph(sources, destinations, both)
        return made

    return work


def _columns(pairs: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(one for one, _ in pairs), tuple(other for _, other in pairs)
