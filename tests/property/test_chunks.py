"""Chunked transfers: every item arrives once, in its place, and nothing else changes."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfm_kernel
from sfm_kernel import Endpoint
from sfm_kernel.mpi import ANY, Namespace, Received, mpi_recv_buf, mpi_send_buf, plan

Pair = tuple[Endpoint, Endpoint]
COMM = Namespace("property", ("A", "B"))


@given(st.integers(0, 300), st.integers(1, 40))
def test_a_plan_has_every_item_once(count: int, chunk: int) -> None:
    parts = list(plan(count, chunk))
    assert [item for start, end, _ in parts for item in range(start, end)] == list(range(count))
    assert [last for _, _, last in parts] == [False] * (len(parts) - 1) + [True]
    sizes = [end - start for start, end, _ in parts]
    assert all(size == chunk for size in sizes[:-1])
    assert 1 <= sizes[-1] <= chunk or (count, sizes) == (0, [0])


@given(st.integers(1, 60), st.integers(1, 40))
def test_an_exact_multiple_has_no_empty_last_chunk(chunks: int, chunk: int) -> None:
    parts = list(plan(chunks * chunk, chunk))
    assert len(parts) == chunks and parts[-1] == ((chunks - 1) * chunk, chunks * chunk, True)


@given(st.integers(0, 200), st.integers(1, 40), st.integers(0, 50))
def test_a_plan_is_that_of_the_paper(count: int, chunk: int, offset: int) -> None:
    """Beyond one chunk. The paper counts from the start of the buffer, and corrects for it."""
    parts = [(start + offset, end + offset, last) for start, end, last in plan(count, chunk)]
    if count > chunk:
        stops = [*range(offset + chunk, offset + count, chunk), offset + count]
        starts = range(offset, offset + count, chunk)
        assert parts == [(a, b, b == stops[-1]) for a, b in zip(starts, stops, strict=True)]


@pytest.fixture(scope="module")
def ways() -> Iterator[Pair]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SFM_TRANSPORT", "inproc")
        with sfm_kernel.join("chunks", "A") as a, sfm_kernel.join("chunks", "B") as b:
            yield a, b


DTYPES = st.sampled_from(["float64", "int32", "uint8", "complex128", "bool", "S3"])
LAYOUTS = st.sampled_from(["plain", "strided", "backwards", "bytes", "list"])


def buffer(values: Any, layout: str) -> Any:
    """These values in a buffer of its own."""
    if layout == "strided":
        wide = np.zeros(3 * len(values), values.dtype)
        wide[::3] = values
        return wide[::3]
    if layout == "backwards":
        return values[::-1].copy()[::-1]
    if layout == "bytes":
        return bytearray(values.tobytes())
    return values.tolist() if layout == "list" else values.copy()


def values_of(buf: Any, dtype: str) -> list[Any]:
    values = np.frombuffer(buf, dtype) if isinstance(buf, bytearray) else np.asarray(buf, dtype)
    return list(values.tolist())


@pytest.mark.keeps("the endpoints of the module")
@pytest.mark.timeout(600)
@given(data=st.data(), dtype=DTYPES, layouts=st.tuples(LAYOUTS, LAYOUTS))
def test_a_transfer(ways: Pair, data: st.DataObject, dtype: str, layouts: tuple[str, str]) -> None:
    """Any offsets, count, chunk and window; buffers of any two kinds."""
    a, b = ways
    draw = data.draw
    count, room = draw(st.integers(0, 60)), draw(st.integers(0, 5))
    before, after = (draw(st.tuples(st.integers(0, 9), st.integers(0, 9))) for _ in range(2))
    chunk, window = draw(st.integers(1, 70)), draw(st.integers(1, 6))
    numbers = np.arange(1, 1 + before[0] + count + before[1]) % 100
    sent = numbers.astype("U2").astype("S3") if dtype == "S3" else numbers.astype(dtype)
    there = np.full(after[0] + count + room + after[1], 77).astype(sent.dtype)
    src, dst = buffer(sent, layouts[0]), buffer(there, layouts[1])

    sending = threading.Thread(
        target=mpi_send_buf,
        args=(a, src, before[0], count, dtype, 1, 7, COMM),
        kwargs={"chunk_bytes": chunk * sent.dtype.itemsize, "window": window},
    )
    sending.start()
    origin = draw(st.sampled_from([(0, 7), (ANY, 7), (0, ANY), (ANY, ANY)]))
    got = mpi_recv_buf(b, dst, after[0], count + room, dtype, *origin, COMM)
    sending.join()

    assert got == Received(count, 0, 7)
    expected = there.copy()
    expected[after[0] : after[0] + count] = sent[before[0] : before[0] + count]
    assert values_of(dst, dtype) == expected.tolist()
    assert values_of(src, dtype) == sent.tolist()
    assert not a.peek() and not b.peek(), "nothing is left in the inboxes"


@pytest.mark.keeps("the endpoints of the module")
@pytest.mark.timeout(600)
@given(
    sizes=st.lists(st.integers(0, 30), min_size=1, max_size=6),
    chunk=st.integers(1, 12),
    window=st.integers(1, 4),
)
def test_transfers_in_a_row_do_not_mix(
    ways: Pair, sizes: list[int], chunk: int, window: int
) -> None:
    """Same source, destination, tag and namespace: they arrive as sent, one by one."""
    a, b = ways
    marks = itertools.count(1)
    batches = [np.full(size, next(marks), "int64") for size in sizes]

    def send_all() -> None:
        for batch in batches:
            size = len(batch)
            options = {"chunk_bytes": 8 * chunk, "window": window}
            mpi_send_buf(a, batch, 0, size, "int64", 1, 3, COMM, **options)

    sending = threading.Thread(target=send_all)
    sending.start()
    for batch in batches:
        got = np.zeros(40, "int64")
        assert mpi_recv_buf(b, got, 0, 40, "int64", 0, 3, COMM).count == len(batch)
        assert got.tolist() == [*batch.tolist(), *[0] * (40 - len(batch))]
    sending.join()
    assert not a.peek() and not b.peek()
