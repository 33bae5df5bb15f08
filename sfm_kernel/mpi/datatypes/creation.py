"""The constructors of datatypes: from the arguments of MPI's calls to states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sfm_kernel.mpi.base import constants as c
from sfm_kernel.mpi.base.errors import fail
from sfm_kernel.mpi.datatypes import layout
from sfm_kernel.mpi.datatypes.arguments import count, counts, whole, wholes
from sfm_kernel.mpi.datatypes.layout import Group, Layout
from sfm_kernel.mpi.datatypes.pieces import Offsets
from sfm_kernel.mpi.datatypes.state import Making, TypeState


def duplicate(old: TypeState) -> TypeState:
    """The same data; committed if *old* is."""
    return TypeState(
        old.layout,
        Making(c.COMBINER_DUP, {}, (old,)),
        stands_for=old.stands_for,
        committed=old.committed,
    )


def contiguous(old: TypeState, number: int) -> TypeState:
    number = count(number)
    return _made(layout.contiguous(old.layout, number), c.COMBINER_CONTIGUOUS, old, count=number)


def vector(
    old: TypeState, number: int, blocklength: int, stride: int, *, in_bytes: bool
) -> TypeState:
    number, blocklength = count(number), count(blocklength, "blocklength")
    stride = whole(stride)
    step = stride if in_bytes else stride * old.extent
    return _made(
        layout.vector(old.layout, number, blocklength, step),
        c.COMBINER_HVECTOR if in_bytes else c.COMBINER_VECTOR,
        old,
        count=number,
        blocklength=blocklength,
        stride=stride,
    )


def indexed(
    old: TypeState, blocklengths: Sequence[int], displacements: Sequence[int], *, in_bytes: bool
) -> TypeState:
    lengths = counts(blocklengths, "blocklengths")
    where = wholes(displacements, len(lengths))
    return _made(
        layout.indexed(old.layout, lengths, where if in_bytes else where * old.extent),
        c.COMBINER_HINDEXED if in_bytes else c.COMBINER_INDEXED,
        old,
        blocklengths=lengths,
        displacements=where,
    )


def indexed_block(
    old: TypeState, blocklength: int, displacements: Sequence[int], *, in_bytes: bool
) -> TypeState:
    blocklength, where = count(blocklength, "blocklength"), wholes(displacements)
    lengths = np.full(len(where), blocklength, np.int64)
    return _made(
        layout.indexed(old.layout, lengths, where if in_bytes else where * old.extent),
        c.COMBINER_HINDEXED_BLOCK if in_bytes else c.COMBINER_INDEXED_BLOCK,
        old,
        blocklength=blocklength,
        displacements=where,
    )


def struct(
    blocklengths: Sequence[int], displacements: Sequence[int], old: Sequence[TypeState]
) -> TypeState:
    lengths = counts(blocklengths, "blocklengths")
    where = wholes(displacements, len(lengths))
    present = {id(one): one for one, length in zip(old, lengths, strict=True) if length}
    if len(present) == 1:
        # As in MPICH: blocks of one type are not padded to its alignment.
        (only,) = present.values()
        made = layout.indexed(only.layout, lengths, where)
    else:
        made = layout.struct(lengths, where, [one.layout for one in old])
    arguments = {"blocklengths": lengths, "displacements": where}
    return TypeState(made, Making(c.COMBINER_STRUCT, arguments, tuple(old)))


def resized(old: TypeState, lb: int, extent: int) -> TypeState:
    lb, extent = whole(lb), whole(extent)
    return _made(
        layout.resized(old.layout, lb, extent), c.COMBINER_RESIZED, old, lb=lb, extent=extent
    )


def subarray(
    old: TypeState,
    sizes: Sequence[int],
    subsizes: Sequence[int],
    starts: Sequence[int],
    order: int,
) -> TypeState:
    whole_sizes = counts(sizes, "sizes")
    inner = counts(subsizes, "subsizes", len(whole_sizes))
    first = counts(starts, "starts", len(whole_sizes))
    if np.any(first + inner > whole_sizes):
        fail(
            c.ERR_ARG,
            f"a subarray of {inner.tolist()} from {first.tolist()} on is not within an array of "
            f"{whole_sizes.tolist()}: starts + subsizes must not exceed sizes",
        )
    groups = [
        [(start, 0, 1, length)]
        for start, length in zip(first.tolist(), inner.tolist(), strict=True)
    ]
    return _made(
        _array(old.layout, whole_sizes, groups, order),
        c.COMBINER_SUBARRAY,
        old,
        sizes=whole_sizes,
        subsizes=inner,
        starts=first,
        order=order,
    )


def darray(
    old: TypeState,
    size: int,
    rank: int,
    gsizes: Sequence[int],
    distribs: Sequence[int],
    dargs: Sequence[int],
    psizes: Sequence[int],
    order: int,
) -> TypeState:
    size, rank = count(size, "size"), whole(rank)
    sizes = counts(gsizes, "gsizes")
    how, arguments = wholes(distribs, len(sizes)), wholes(dargs, len(sizes))
    grid = wholes(psizes, len(sizes))
    if not 0 <= rank < size:
        fail(c.ERR_RANK, f"rank {rank} is not one of {size} processes: give 0 to {size - 1}")
    if np.any(grid < 1) or int(np.prod(grid)) != size:
        fail(
            c.ERR_ARG,
            f"a grid of {grid.tolist()} processes has not the {size} that it is for: the product "
            f"of psizes must be size (MPI.Compute_dims finds such)",
        )
    place = np.unravel_index(rank, grid.tolist()) if len(grid) else ()
    groups = [
        _share(*(int(number) for number in one))
        for one in zip(sizes, how, arguments, grid, place, strict=True)
    ]
    return _made(
        _array(old.layout, sizes, groups, order),
        c.COMBINER_DARRAY,
        old,
        size=size,
        rank=rank,
        gsizes=sizes,
        distribs=how,
        dargs=arguments,
        psizes=grid,
        order=order,
    )


def _made(made: Layout, combiner: int, old: TypeState, **arguments: Any) -> TypeState:
    return TypeState(made, Making(combiner, arguments, (old,)))


def _array(old: Layout, sizes: Offsets, groups: list[list[Group]], order: int) -> Layout:
    if order not in (c.ORDER_C, c.ORDER_FORTRAN):
        fail(c.ERR_ARG, f"the order is {order}: give ORDER_C or ORDER_FORTRAN")
    slowest_first = 1 if order == c.ORDER_C else -1
    return layout.array(old, sizes.tolist()[::slowest_first], groups[::slowest_first])


def _share(size: int, how: int, argument: int, processes: int, place: int) -> list[Group]:
    """What the process at *place* has of one dimension."""
    default = argument == c.DISTRIBUTE_DFLT_DARG
    if how == c.DISTRIBUTE_NONE:
        if processes != 1:
            fail(
                c.ERR_ARG,
                f"{processes} processes share a dimension that is not distributed: its psize is 1",
            )
        block = size
    elif how == c.DISTRIBUTE_BLOCK:
        block = -(-size // processes) if default else argument
        if block < 0 or block * processes < size:
            fail(
                c.ERR_ARG,
                f"{processes} blocks of {block} do not hold the {size} elements of a dimension: "
                "give a larger darg, or DISTRIBUTE_DFLT_DARG",
            )
    elif how == c.DISTRIBUTE_CYCLIC:
        block = 1 if default else argument
        if block < 1:
            fail(c.ERR_ARG, f"the darg of a cyclic distribution is {block}: it must be positive")
    else:
        fail(
            c.ERR_ARG,
            f"{how} is no distribution: give DISTRIBUTE_BLOCK, DISTRIBUTE_CYCLIC or "
            "DISTRIBUTE_NONE",
        )
    return _blocks(size, block, place * block, processes * block)


def _blocks(size: int, block: int, first: int, step: int) -> list[Group]:
    """Blocks from *first* on, as far as the dimension reaches; the last may be shorter."""
    if first >= size:
        return []
    complete = max(0, -(-(size - block + 1 - first) // step))
    groups: list[Group] = [(first, step, complete, block)] if complete else []
    rest = first + complete * step
    if rest < size:
        groups.append((rest, 0, 1, min(block, size - rest)))
    return groups
