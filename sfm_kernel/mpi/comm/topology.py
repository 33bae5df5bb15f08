"""Who is whose neighbour: grids and graphs of ranks, as values without any communication.

A topology says, for each rank, from whom (``sources``) and to whom (``destinations``) neighbour
collectives go; PROC_NULL stands for nobody. A pair may have several edges: their messages are told
apart by their order alone. ``sending_order`` is the order in which a rank sends its blocks, so that
each of its neighbours, who takes in the order of its own sources, gets the right one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sfm_kernel.mpi.base.constants import CART, DIST_GRAPH, GRAPH, PROC_NULL


class Topology(Protocol):
    """What communicators with neighbours have in common."""

    @property
    def kind(self) -> int:
        """CART, GRAPH or DIST_GRAPH."""

    def sources(self, rank: int) -> list[int]:
        """Those from whom ``rank`` receives."""

    def destinations(self, rank: int) -> list[int]:
        """Those to whom ``rank`` sends."""

    def sending_order(self, rank: int) -> Sequence[int]:
        """The indices of ``destinations``, in the order in which they are sent to."""


@dataclass(frozen=True)
class Grid:
    """A Cartesian grid; ranks count its points in row-major order.

    Attributes:
        dims: its extents, 1 or more each.
        periods: which dimensions are closed to rings.
    """

    dims: tuple[int, ...]
    periods: tuple[bool, ...]
    kind = CART

    @property
    def size(self) -> int:
        """How many points it has."""
        return math.prod(self.dims)

    def coords(self, rank: int) -> list[int]:
        """Where a rank is."""
        found = []
        for extent in reversed(self.dims):
            rank, place = divmod(rank, extent)
            found.append(place)
        return found[::-1]

    def rank(self, coords: Sequence[int]) -> int:
        """Who is there; PROC_NULL beyond an open edge."""
        rank = 0
        for place, extent, periodic in zip(coords, self.dims, self.periods, strict=True):
            if not periodic and not 0 <= place < extent:
                return PROC_NULL
            rank = rank * extent + place % extent
        return rank

    def moved(self, rank: int, direction: int, by: int) -> int:
        """Who is ``by`` points further along a dimension."""
        coords = self.coords(rank)
        coords[direction] += by
        return self.rank(coords)

    def sources(self, rank: int) -> list[int]:
        """In each dimension the one before, then the one after."""
        return [self.moved(rank, along, by) for along in range(len(self.dims)) for by in (-1, 1)]

    destinations = sources

    def sending_order(self, rank: int) -> list[int]:
        """In each dimension forward first, as whoever is there takes from backward first.

        Where both ways lead to the same process (rings of one or two), what was sent forward so
        comes from backward.
        """
        return [2 * along + way for along in range(len(self.dims)) for way in (1, 0)]

    def part(self, keep: Sequence[bool]) -> Grid:
        """The grid of the dimensions that are kept."""
        dims = (extent for extent, stays in zip(self.dims, keep, strict=True) if stays)
        periods = (closed for closed, stays in zip(self.periods, keep, strict=True) if stays)
        return Grid(tuple(dims), tuple(periods))


@dataclass(frozen=True)
class Graph:
    """A graph that everybody knows whole.

    Attributes:
        index: for each rank, how many edges it and all before it have.
        edges: the neighbours of rank 0, then those of rank 1, …
    """

    index: tuple[int, ...]
    edges: tuple[int, ...]
    kind = GRAPH

    def neighbours(self, rank: int) -> list[int]:
        """The neighbours of a rank."""
        return list(self.edges[self.index[rank - 1] if rank else 0 : self.index[rank]])

    sources = destinations = neighbours

    def sending_order(self, rank: int) -> range:
        """As they are."""
        return range(len(self.neighbours(rank)))


@dataclass(frozen=True)
class DistributedGraph:
    """A graph of which each process knows its own edges only.

    Attributes:
        incoming, outgoing: the ends of this process's edges.
        weights: of both; None if the graph has none.
    """

    incoming: tuple[int, ...]
    outgoing: tuple[int, ...]
    weights: tuple[tuple[int, ...], tuple[int, ...]] | None
    kind = DIST_GRAPH

    def sources(self, rank: int) -> list[int]:
        """From whom this process receives, whatever ``rank`` is."""
        return list(self.incoming)

    def destinations(self, rank: int) -> list[int]:
        """To whom this process sends, whatever ``rank`` is."""
        return list(self.outgoing)

    def sending_order(self, rank: int) -> range:
        """As they are."""
        return range(len(self.outgoing))
