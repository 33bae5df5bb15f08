"""Datatypes: packing, bounds and counting are held against lists of every single basic type."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from sfm_kernel.mpi import MPI

MOST = 150
"""Basic types in one element: the model looks at every byte of each."""


@dataclass(frozen=True)
class Model:
    """A datatype as MPI defines it: where each basic type lies, in order.

    ``entries`` are displacements and sizes; ``lb`` and ``ub`` the bounds.
    """

    entries: tuple[tuple[int, int], ...]
    lb: int
    ub: int
    align: int

    @property
    def extent(self) -> int:
        return self.ub - self.lb

    @property
    def size(self) -> int:
        return sum(nbytes for _, nbytes in self.entries)

    def at(self, *displacements: int) -> Model:
        """One copy at each of the displacements."""
        if not displacements or not (self.entries or self.extent):
            return NOTHING
        entries = tuple((d + where, n) for d in displacements for where, n in self.entries)
        return Model(
            entries, min(displacements) + self.lb, max(displacements) + self.ub, self.align
        )

    def bytes_of(self, count: int) -> list[int]:
        """Where each packed byte of several elements lies."""
        return [
            element * self.extent + where + byte
            for element in range(count)
            for where, nbytes in self.entries
            for byte in range(nbytes)
        ]


NOTHING = Model((), 0, 0, 1)
Made = tuple[MPI.Datatype, Model]

BASIC: list[Made] = [
    (MPI.CHAR, Model(((0, 1),), 0, 1, 1)),
    (MPI.SHORT, Model(((0, 2),), 0, 2, 2)),
    (MPI.INT, Model(((0, 4),), 0, 4, 4)),
    (MPI.LONG, Model(((0, 8),), 0, 8, 8)),
    (MPI.DOUBLE, Model(((0, 8),), 0, 8, 8)),
    (MPI.SHORT_INT, Model(((0, 2), (4, 4)), 0, 8, 4)),
    (MPI.DOUBLE_INT, Model(((0, 8), (8, 4)), 0, 16, 8)),
]
SMALL = st.integers(0, 3)
STEPS = st.integers(-5, 5)
BYTES = st.integers(-40, 40)


@st.composite
def derived(draw: st.DrawFn, inner: st.SearchStrategy[Made]) -> Made:
    old, model = draw(inner)
    extent = model.extent
    kind = draw(st.sampled_from(["blocks", "vector", "resized", "array", "struct", "dup"]))
    if kind == "dup":
        return old.Dup(), model
    if kind == "resized":
        lb, new = draw(BYTES), draw(st.one_of(st.just(extent), BYTES))
        return old.Create_resized(lb, new), replace(model, lb=lb, ub=lb + new)
    if kind == "vector":
        count, length, stride = draw(SMALL), draw(SMALL), draw(STEPS)
        if draw(st.booleans()):
            stride = draw(BYTES)
            made, step = old.Create_hvector(count, length, stride), stride
        else:
            made, step = old.Create_vector(count, length, stride), stride * extent
        return made, model.at(*(i * step + j * extent for i in range(count) for j in range(length)))
    if kind == "blocks":
        return draw(blocks(old, model))
    if kind == "array":
        return draw(arrays(old, model))
    return draw(structs((old, model), inner))


@st.composite
def blocks(draw: st.DrawFn, old: MPI.Datatype, model: Model) -> Made:
    in_bytes, equal = draw(st.booleans()), draw(st.booleans())
    where = draw(st.lists(BYTES if in_bytes else STEPS, max_size=5))
    length = draw(SMALL)
    lengths = [length] * len(where) if equal else [draw(SMALL) for _ in where]
    if equal:
        create = old.Create_hindexed_block if in_bytes else old.Create_indexed_block
        made = create(length, where)
    else:
        made = (old.Create_hindexed if in_bytes else old.Create_indexed)(lengths, where)
    step = 1 if in_bytes else model.extent
    return made, model.at(
        *(
            d * step + j * model.extent
            for d, n in zip(where, lengths, strict=True)
            for j in range(n)
        )
    )


@st.composite
def structs(draw: st.DrawFn, first: Made, inner: st.SearchStrategy[Made]) -> Made:
    parts = [first, *draw(st.lists(inner, max_size=2))]
    lengths, where = [draw(SMALL) for _ in parts], [draw(BYTES) for _ in parts]
    made = MPI.Datatype.Create_struct(lengths, where, [one for one, _ in parts])
    models = [
        model.at(*(d + j * model.extent for j in range(n)))
        for (_, model), n, d in zip(parts, lengths, where, strict=True)
    ]
    models = [model for model in models if model.entries or model.extent]
    if not models:
        return made, NOTHING
    entries = sum((model.entries for model in models), ())
    lb, ub = min(model.lb for model in models), max(model.ub for model in models)
    align = max((model.align for model in models if model.entries), default=1)
    same = {one._state for (one, _), n in zip(parts, lengths, strict=True) if n}
    if len(same) > 1:
        ub += -(ub - lb) % align
    return made, Model(entries, lb, ub, align)


@st.composite
def arrays(draw: st.DrawFn, old: MPI.Datatype, model: Model) -> Made:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    order = draw(st.sampled_from([MPI.ORDER_C, MPI.ORDER_FORTRAN]))
    if draw(st.booleans()):
        subsizes = [draw(st.integers(0, size)) for size in sizes]
        starts = [draw(st.integers(0, n - k)) for n, k in zip(sizes, subsizes, strict=True)]
        made = old.Create_subarray(sizes, subsizes, starts, order)
        mine = [range(s, s + k) for s, k in zip(starts, subsizes, strict=True)]
    else:
        made, mine = draw(shared_arrays(old, sizes, order))
    chosen = list(itertools.product(*(mine if order == MPI.ORDER_C else mine[::-1])))
    dims = sizes if order == MPI.ORDER_C else sizes[::-1]
    where = [int(np.ravel_multi_index(one, dims)) * model.extent for one in chosen]
    entries = tuple((d + at, n) for d in where for at, n in model.entries)
    return made, Model(entries, 0, int(np.prod(sizes)) * model.extent, model.align)


@st.composite
def shared_arrays(draw: st.DrawFn, old: MPI.Datatype, sizes: list[int], order: int) -> Any:
    grid = [draw(st.integers(1, 3)) for _ in sizes]
    rank = draw(st.integers(0, int(np.prod(grid)) - 1))
    hows, arguments, mine = [], [], []
    for size, processes, place in zip(sizes, grid, np.unravel_index(rank, grid), strict=True):
        how = draw(st.sampled_from([MPI.DISTRIBUTE_BLOCK, MPI.DISTRIBUTE_CYCLIC]))
        if processes == 1 and draw(st.booleans()):
            how = MPI.DISTRIBUTE_NONE
        if how == MPI.DISTRIBUTE_CYCLIC:
            block = draw(st.integers(1, 3))
        else:
            block = draw(st.integers(-(-size // processes), size))
        hows.append(how)
        arguments.append(block)
        if how == MPI.DISTRIBUTE_NONE:
            mine.append(list(range(size)))
        else:
            mine.append([i for i in range(size) if i // block % processes == place])
    size = int(np.prod(grid))
    return old.Create_darray(size, rank, sizes, hows, arguments, grid, order), mine


TYPES = st.recursive(st.sampled_from(BASIC), derived, max_leaves=4).filter(
    lambda made: len(made[1].entries) <= MOST
)
MANY = settings(suppress_health_check=[*HealthCheck])


def memory_for(model: Model, count: int) -> tuple[np.ndarray[Any, Any], int]:
    """Memory of random bytes that holds so many elements, and where the first has its origin."""
    touched = model.bytes_of(count) or [0]
    origin = max(0, -min(touched))
    size = origin + max(touched) + 1
    return np.random.default_rng(size).integers(0, 256, size, np.uint8), origin


@given(TYPES)
@MANY
def test_sizes_and_bounds(made: Made) -> None:
    datatype, model = made
    ends = [(where, where + nbytes) for where, nbytes in model.entries] or [(0, 0)]
    true_lb, true_ub = min(low for low, _ in ends), max(high for _, high in ends)
    assert datatype.Get_size() == model.size
    assert datatype.Get_extent() == (model.lb, model.extent)
    assert datatype.Get_true_extent() == (true_lb, true_ub - true_lb)
    in_order = model.bytes_of(2) == list(range(2 * model.size))
    assert datatype._live.contiguous == (in_order and model.extent == model.size)


@given(TYPES, st.integers(0, 4), st.data())
@MANY
def test_pack(made: Made, count: int, data: st.DataObject) -> None:
    datatype, model = made
    memory, origin = memory_for(model, count)
    places = [origin + where for where in model.bytes_of(count)]
    packed = memory[places] if places else memory[:0]
    assert datatype._pack(memory, origin, count).tolist() == packed.tolist()
    if count:
        last = datatype._pack(memory, origin, 1, count - 1)
        assert last.tolist() == packed[(count - 1) * model.size :].tolist()
    start = data.draw(st.integers(0, packed.size))
    end = data.draw(st.integers(start, packed.size))
    part = datatype._live.pack(memory, origin, start, end)
    assert part.tolist() == packed[start:end].tolist()


@given(TYPES, st.integers(0, 3), st.data())
@MANY
def test_unpack(made: Made, count: int, data: st.DataObject) -> None:
    datatype, model = made
    memory, origin = memory_for(model, count)
    places = [origin + where for where in model.bytes_of(count)]
    assume(len(set(places)) == len(places))  # MPI forbids to receive what overlaps
    start = data.draw(st.integers(0, len(places)))
    end = data.draw(st.integers(start, len(places)))
    new = np.arange(end - start, dtype=np.uint8)
    expected = memory.copy()
    expected[places[start:end]] = new
    datatype._live.unpack(memory, origin, new, start)
    assert memory.tolist() == expected.tolist()


@given(TYPES, st.integers(0, 400))
@MANY
def test_elements(made: Made, nbytes: int) -> None:
    datatype, model = made
    ends = [0, *itertools.accumulate(n for _ in range(400) for _, n in model.entries)]
    if model.size == 0:
        assert datatype._elements_in(nbytes) == (0 if nbytes == 0 else MPI.UNDEFINED)
        return
    expected = ends.index(nbytes) if nbytes in ends else MPI.UNDEFINED
    assert datatype._elements_in(nbytes) == expected
    assert datatype._bytes_of_elements(nbytes) == ends[nbytes]


@given(TYPES)
@MANY
def test_what_it_is_made_of_makes_it_again(made: Made) -> None:
    datatype, model = made
    again = pickle.loads(pickle.dumps(datatype))
    assert again.Get_envelope() == datatype.Get_envelope()
    assert again.Get_extent() == datatype.Get_extent()
    memory, origin = memory_for(model, 2)
    assert again._pack(memory, origin, 2).tolist() == datatype._pack(memory, origin, 2).tolist()
    if not datatype.is_named:
        integers, addresses, counts, parts = datatype.Get_contents()
        assert datatype.Get_envelope()[:4] == tuple(map(len, (integers, addresses, counts, parts)))
        old, combiner, params = datatype.decode()
        same = getattr(old, f"Create_{combiner.lower()}")(**params)
        assert same.Get_contents()[:3] == (integers, addresses, counts)


NUMBERS = st.sampled_from([("SHORT", ">i2"), ("INT", ">i4"), ("LONG", ">i4"), ("DOUBLE", ">f8")])
Mixed = tuple[MPI.Datatype, list[MPI.Datatype], list[str]]


def contiguous(one: Mixed, count: int) -> Mixed:
    return one[0].Create_contiguous(count), one[1] * count, one[2] * count


def struct(one: Mixed, other: Mixed) -> Mixed:
    both = MPI.Datatype.Create_struct([1, 1], [0, one[0].extent], [one[0], other[0]])
    return both, one[1] + other[1], one[2] + other[2]


MIXED = st.recursive(
    NUMBERS.map(lambda one: (getattr(MPI, one[0]), [getattr(MPI, one[0])], [one[1]])),
    lambda inner: st.one_of(
        st.builds(contiguous, inner, st.integers(1, 3)), st.builds(struct, inner, inner)
    ),
    max_leaves=5,
)


@given(MIXED, st.integers(0, 3))
@MANY
def test_external32(mixed: Mixed, count: int) -> None:
    datatype, parts, codes = mixed
    datatype.Commit()
    values = range(-3, count * len(parts) - 3)
    given_bytes = b"".join(
        np.array(value, part.typestr).tobytes()
        for value, part in zip(values, parts * count, strict=True)
    )
    expected = b"".join(
        np.array(value, code).tobytes() for value, code in zip(values, codes * count, strict=True)
    )
    memory = np.zeros(count * datatype.extent, np.uint8)
    datatype._unpack(np.frombuffer(given_bytes, np.uint8), memory, 0)
    out = np.zeros(datatype.Pack_external_size("external32", count), np.uint8)
    assert datatype.Pack_external("external32", memory, out, 0) == len(expected) == out.size
    assert out.tobytes() == expected
    back = np.zeros_like(memory)
    datatype.Unpack_external("external32", out, 0, back)
    assert back.tolist() == memory.tolist()
