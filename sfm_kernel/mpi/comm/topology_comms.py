"""Communicators whose members have neighbours: in grids, graphs and distributed graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from sfm_kernel.mpi.base.constants import CART, DIST_GRAPH, ERR_ARG, ERR_RANK, GRAPH, PROC_NULL
from sfm_kernel.mpi.base.errors import fail
from sfm_kernel.mpi.base.scalars import scalar
from sfm_kernel.mpi.comm.comm import Intracomm
from sfm_kernel.mpi.comm.creation import split
from sfm_kernel.mpi.comm.driver import blocking
from sfm_kernel.mpi.comm.neighbours import Neighbours
from sfm_kernel.mpi.comm.topology import DistributedGraph, Graph, Grid, Topology
from sfm_kernel.mpi.comm.topology_creation import numbers
from sfm_kernel.mpi.engine.communicator import CommState


class Topocomm(Intracomm, Neighbours):
    """Communicator whose members have neighbours."""

    __slots__ = ()
    _kinds: ClassVar[tuple[int, ...]] = (CART, GRAPH, DIST_GRAPH)

    @classmethod
    def _fits(cls, state: CommState) -> bool:
        return state.topology is not None and state.topology.kind in cls._kinds

    @property
    def _neighbours(self) -> Topology:
        topology: Topology = self._live.topology
        return topology

    @property
    def degrees(self) -> tuple[int, int]:
        """How many neighbours this process receives from, and how many it sends to."""
        sources, destinations = self.inoutedges
        return len(sources), len(destinations)

    @property
    def indegree(self) -> int:
        """How many neighbours this process receives from."""
        return self.degrees[0]

    @property
    def outdegree(self) -> int:
        """How many neighbours this process sends to."""
        return self.degrees[1]

    @property
    def inoutedges(self) -> tuple[list[int], list[int]]:
        """The neighbours that this process receives from, and those that it sends to."""
        rank = self._live.rank
        return self._neighbours.sources(rank), self._neighbours.destinations(rank)

    @property
    def inedges(self) -> list[int]:
        """The neighbours that this process receives from."""
        return self.inoutedges[0]

    @property
    def outedges(self) -> list[int]:
        """The neighbours that this process sends to."""
        return self.inoutedges[1]

    def _check_rank(self, rank: int) -> int:
        size = self._live.size
        if not 0 <= scalar(rank) < size:
            fail(ERR_RANK, f"there is no rank {rank}: ranks are 0 to {size - 1}", self)
        return rank


class Cartcomm(Topocomm):
    """Communicator whose members are the points of a grid.

    Its neighbours are, in each dimension, the one before and the one after; PROC_NULL beyond an
    open edge.
    """

    __slots__ = ()
    _kinds = (CART,)

    @property
    def _grid(self) -> Grid:
        grid: Grid = self._live.topology
        return grid

    def Get_dim(self) -> int:
        """How many dimensions the grid has."""
        return len(self._grid.dims)

    @property
    def dim(self) -> int:
        """How many dimensions the grid has."""
        return self.Get_dim()

    @property
    def ndim(self) -> int:
        """How many dimensions the grid has."""
        return self.Get_dim()

    def Get_topo(self) -> tuple[list[int], list[int], list[int]]:
        """The extents of the grid; which dimensions are closed (0 or 1); where this process is."""
        grid = self._grid
        return list(grid.dims), [int(one) for one in grid.periods], grid.coords(self._live.rank)

    @property
    def topo(self) -> tuple[list[int], list[int], list[int]]:
        """As ``Get_topo``."""
        return self.Get_topo()

    @property
    def dims(self) -> list[int]:
        """The extents of the grid."""
        return self.Get_topo()[0]

    @property
    def periods(self) -> list[int]:
        """Which dimensions are closed: 1, else 0."""
        return self.Get_topo()[1]

    @property
    def coords(self) -> list[int]:
        """Where this process is."""
        return self.Get_topo()[2]

    def Get_cart_rank(self, coords: Sequence[int]) -> int:
        """Who is there. In closed dimensions one counts on, round and round.

        Raises:
            Exception: ERR_ARG: that is beyond an open edge.
        """
        grid = self._grid
        asked = numbers(coords, len(grid.dims))
        rank = grid.rank(asked)
        if rank == PROC_NULL:
            fail(ERR_ARG, f"{asked} is beyond an open edge of a grid of {list(grid.dims)}", self)
        return rank

    def Get_coords(self, rank: int) -> list[int]:
        """Where a rank is."""
        return self._grid.coords(self._check_rank(rank))

    def Shift(self, direction: int, disp: int) -> tuple[int, int]:
        """From whom to receive and to whom to send, when all send ``disp`` points further.

        Args:
            direction: the dimension: 0 …
        Returns:
            Source and destination; PROC_NULL beyond an open edge.
        Raises:
            Exception: ERR_ARG: there is no such dimension.
        """
        grid, rank = self._grid, self._live.rank
        if not 0 <= direction < len(grid.dims):
            fail(ERR_ARG, f"no dimension {direction}: the grid has {len(grid.dims)} of them", self)
        return grid.moved(rank, direction, -disp), grid.moved(rank, direction, disp)

    def Sub(self, remain_dims: Sequence[bool]) -> Cartcomm:
        """The part of the grid in which this process moves along these dimensions. Collective.

        Args:
            remain_dims: for each dimension, whether it stays.
        """
        grid = self._grid
        keep = [bool(one) for one in numbers(remain_dims, len(grid.dims))]
        coords = zip(self.coords, keep, strict=True)
        rest = grid.part([not one for one in keep])
        color = rest.rank([place for place, stays in coords if not stays])
        made: CommState = blocking(self, split, color, self._live.rank)
        made.topology = grid.part(keep)
        return Cartcomm._of(made)


class Graphcomm(Topocomm):
    """Communicator whose members are the nodes of a graph, which each of them knows whole."""

    __slots__ = ()
    _kinds = (GRAPH,)

    @property
    def _graph(self) -> Graph:
        graph: Graph = self._live.topology
        return graph

    def Get_dims(self) -> tuple[int, int]:
        """How many nodes and edges the graph has."""
        return len(self._graph.index), len(self._graph.edges)

    @property
    def dims(self) -> tuple[int, int]:
        """How many nodes and edges the graph has."""
        return self.Get_dims()

    @property
    def nnodes(self) -> int:
        """How many nodes the graph has."""
        return self.Get_dims()[0]

    @property
    def nedges(self) -> int:
        """How many edges the graph has."""
        return self.Get_dims()[1]

    def Get_topo(self) -> tuple[list[int], list[int]]:
        """For each node, where in the list of edges its own end; and that list."""
        return list(self._graph.index), list(self._graph.edges)

    @property
    def topo(self) -> tuple[list[int], list[int]]:
        """As ``Get_topo``."""
        return self.Get_topo()

    @property
    def index(self) -> list[int]:
        """For each node, where in the list of edges its own end."""
        return self.Get_topo()[0]

    @property
    def edges(self) -> list[int]:
        """The neighbours of rank 0, then those of rank 1, …"""
        return self.Get_topo()[1]

    def Get_neighbors_count(self, rank: int) -> int:
        """How many neighbours a rank has."""
        return len(self.Get_neighbors(rank))

    @property
    def nneighbors(self) -> int:
        """How many neighbours this process has."""
        return len(self.neighbors)

    def Get_neighbors(self, rank: int) -> list[int]:
        """The neighbours of a rank."""
        return self._graph.neighbours(self._check_rank(rank))

    @property
    def neighbors(self) -> list[int]:
        """The neighbours of this process."""
        return self.Get_neighbors(self._live.rank)


class Distgraphcomm(Topocomm):
    """Communicator whose members are the nodes of a graph, of which each knows its own edges."""

    __slots__ = ()
    _kinds = (DIST_GRAPH,)

    @property
    def _graph(self) -> DistributedGraph:
        graph: DistributedGraph = self._live.topology
        return graph

    def Get_dist_neighbors_count(self) -> tuple[int, int, bool]:
        """How many edges come in and go out, and whether they have weights."""
        graph = self._graph
        return len(graph.incoming), len(graph.outgoing), graph.weights is not None

    def Get_dist_neighbors(
        self,
    ) -> tuple[list[int], list[int], tuple[list[int], list[int]] | None]:
        """Where edges come from, where they go to, and the weights of both."""
        graph = self._graph
        weights = None
        if graph.weights is not None:
            weights = list(graph.weights[0]), list(graph.weights[1])
        return list(graph.incoming), list(graph.outgoing), weights
