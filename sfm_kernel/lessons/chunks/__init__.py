"""Chunked transfers: throughput and the receiver's memory against chunk size and window.

A large array is moved from one process into a buffer of another, in acknowledged chunks; with
window 1 that is the paper's protocol. Beside it the same array goes in one message. In both cases
the clock stops when the receiver has acknowledged that all is in its buffer.

Source: Fedosov and Benson, "Communication with Super Flexible Messaging", section 3, Example 3.
"""

from __future__ import annotations

import argparse
import gc
import os
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

import sfm_kernel
from sfm_kernel.directory import remove_world
from sfm_kernel.lessons.measure.arguments import numbers
from sfm_kernel.lessons.measure.engines import START_SECONDS, driving, serve_jobs
from sfm_kernel.lessons.measure.results import Part
from sfm_kernel.lessons.measure.rows import Row, grouped
from sfm_kernel.mpi import Namespace, mpi_recv_buf, mpi_send_buf

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from sfm_kernel.endpoint import Endpoint
    from sfm_kernel.message import Message

SIZES = (32 << 20,)
CHUNKS = (4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20)
WINDOWS = (1, 2, 4, 8)
ONE_SEND = "one send"

MEGABYTE = 1 << 20

_CORES = os.cpu_count() or 1
PEAK_ERROR_KB = _CORES * max(32, 2 * _CORES) * os.sysconf("SC_PAGE_SIZE") / 1024
"""The error of a peak, in kB: each processor counts this many pages of a process separately before
it adds them up (lib/percpu_counter.c of Linux, since 6.2)."""


# The work of the two engines


def serve(sfm: Endpoint, home: str = "home") -> None:
    """Move arrays for home, until it says stop. Engine 0 sends, engine 1 receives."""
    work = {"time": _time, "memory": _memory}
    serve_jobs(sfm, "chunks", lambda job: work[job.work](sfm, job), home)


def _time(sfm: Endpoint, job: Message) -> Mapping[str, Any]:
    """Seconds of each of ``job.count`` transfers, after one that is not measured."""
    comm = Namespace("bench chunks", (0, 1))
    if sfm.rank == 0:
        array = _array(job.bytes)
        return {"seconds": [_send(sfm, array, job, comm) for _ in range(1 + job.count)][1:]}
    array = _empty(job.bytes)
    for _ in range(1 + job.count):
        _receive(sfm, array, job, comm)
    _check(array)
    return {}


def _send(sfm: Endpoint, array: NDArray[Any], job: Message, comm: Namespace) -> float:
    receiver = comm.rank_to_name(1)
    sfm.recv(src=receiver, tag="ready")
    started = time.perf_counter()
    if job.window is None:
        sfm.send(dest=receiver, tag="whole", array=array)
        sfm.recv(src=receiver, tag="copied")
    else:
        options = {"chunk_bytes": job.chunk_bytes, "window": job.window}
        mpi_send_buf(sfm, array, 0, array.size, array.dtype, 1, 0, comm, **options)
    return time.perf_counter() - started


def _receive(sfm: Endpoint, array: NDArray[Any], job: Message, comm: Namespace) -> None:
    sender = comm.rank_to_name(0)
    sfm.send(dest=sender, tag="ready")
    if job.window is None:
        m = sfm.recv(src=sender, tag="whole")
        array[:] = m.array
        del m
        sfm.send(dest=sender, tag="copied")
    else:
        mpi_recv_buf(sfm, array, 0, array.size, array.dtype, 0, 0, comm)


def _array(nbytes: int) -> NDArray[Any]:
    return np.arange(nbytes // 8, dtype=np.float64)


def _empty(nbytes: int) -> NDArray[Any]:
    """Memory for the same array, all of it touched, so that filling it does not add memory."""
    return np.full(nbytes // 8, -1.0)


def _check(array: NDArray[Any]) -> None:
    if not (array == _array(array.nbytes)).all():
        raise ValueError("the array that arrived is not the one that was sent")


# The receiver's memory


def _memory(sfm: Endpoint, job: Message) -> Mapping[str, Any]:
    """The receiver's additional memory during one transfer, beyond its buffer; None if unknown.

    The two engines meet in a new world for this transfer: shared memory that was used before stays
    mapped for a while, and would hide the memory of this transfer.
    """
    hosts = {member.host for member in sfm.members() if member.rank in (0, 1)}
    if len(hosts) > 1 or os.environ.get("SFM_DIRECTORY"):
        return {"peak": None}
    if sfm.rank == 0:
        world = f"bench-{uuid.uuid4().hex[:12]}"
        try:
            with sfm_kernel.join(world, "sender") as endpoint:
                sfm.send(dest=1, tag="meet", world=world)
                return {"peak": _send_once(endpoint, job)}
        finally:
            remove_world(world)
    world = sfm.recv(src=0, tag="meet").world
    with sfm_kernel.join(world, "receiver", create=False) as endpoint:
        endpoint.send(dest="sender", tag="here")
        _receive_once(endpoint, job)
        endpoint.recv(src="sender", tag="go home")
    return {}


MEETING = Namespace("meeting", ("sender", "receiver"))


def _send_once(sfm: Endpoint, job: Message) -> int | None:
    sfm.recv(START_SECONDS, src="receiver", tag="here")
    _touch_rings(sfm, "receiver")
    _send(sfm, _array(job.bytes), job, MEETING)
    peak: int | None = sfm.recv(src="receiver", tag="peak").peak
    sfm.send(dest="receiver", tag="go home")
    return peak


def _receive_once(sfm: Endpoint, job: Message) -> None:
    array, small = _empty(job.bytes), _empty(64 << 10)
    _touch_rings(sfm, "sender")
    mpi_recv_buf(sfm, small[:0], 0, 0, small.dtype, 0, 1, MEETING)  # all code has run once
    gc.collect()
    before = _reset_peak()
    _receive(sfm, array, job, MEETING)
    peak = None if before is None else _status("VmHWM") - before
    _check(array)
    sfm.send(dest="sender", tag="peak", peak=peak)


def _touch_rings(sfm: Endpoint, other: str) -> None:
    """Touch all pages of both rings and traces, in both processes: using them adds no memory."""
    for _ in range(64):
        for _ in range(64):
            sfm.send(dest=other, tag="fill", pad=bytes(64))
        for _ in range(64):
            sfm.recv(src=other, tag="fill")
    if other == "receiver":
        mpi_send_buf(sfm, [], 0, 0, "float64", 1, 1, MEETING)


def _reset_peak() -> int | None:
    """Let the kernel measure a new peak; return the resident memory. None if it cannot."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        return _status("VmRSS")
    except (OSError, ValueError):
        return None


def _status(field: str) -> int:
    """The bytes of ``what`` in this process's status. Mapped shared memory counts, too."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.removesuffix("kB")) << 10
    raise ValueError(f"the kernel does not report {field}")


# The sweep, driven from home


def rows(
    *,
    home: Endpoint | None = None,
    sizes: Sequence[int] = SIZES,
    chunks: Sequence[int] = CHUNKS,
    windows: Sequence[int] = WINDOWS,
    repeat: int = 3,
    count: int = 3,
) -> Iterator[Row]:
    """Measure every size with every chunk and window; yield a row after each measurement.

    Each of ``repeat`` rounds takes all of them in turn, and then the array in one message.
    Windows that the array does not fill are left out. Without ``home``, two local processes are
    started; with it (the endpoint of a notebook), engines 0 and 1 of its world must run
    ``serve(sfm)``.

    Columns: bytes (of the array), protocol ("window 4" or "one send"), chunk_bytes and window
    (None for one send), round, seconds (the median of ``count`` transfers), mb_s (1 MB = 2**20
    B), peak_bytes (the receiver's additional memory, beyond its buffer; None if the kernel does
    not report it), bound_bytes (window * chunk; for one send, the array).

    Raises:
        ValueError: an argument is out of range; nothing was started.
        SFMError: the engines do not serve, or a process failed.
    """
    if repeat < 1 or count < 1:
        raise ValueError(f"repeat {repeat}, count {count}: both at least 1")
    for kind, values in (("size", sizes), ("chunk", chunks), ("window", windows)):
        least = 1 if kind == "window" else 8
        if not values or min(values) < least or (least == 8 and any(value % 8 for value in values)):
            allowed = "1" if kind == "window" else "8, and a multiple of it"
            raise ValueError(f"a {kind} is at least {allowed}; not {list(values)}")
    with driving("chunks", serve, 2, home) as ask:
        # Not measured: the first messages open channels. With a time limit, if no engine serves.
        first = {"bytes": 8, "chunk_bytes": 8, "window": 1}
        ask(timeout=START_SECONDS, engines=2, work="time", count=1, **first)
        for number, size in product(range(repeat), sizes):
            fitting = [(c, w) for c, w in product(chunks, windows) if c * w <= size]
            protocols: list[tuple[int, int] | tuple[None, None]] = [*fitting, (None, None)]
            for chunk, window in protocols:
                job = {"engines": 2, "bytes": size, "chunk_bytes": chunk, "window": window}
                seconds = median(ask(work="time", count=count, **job).seconds)
                yield {
                    "bytes": size,
                    "protocol": ONE_SEND if window is None else f"window {window}",
                    "chunk_bytes": chunk,
                    "window": window,
                    "round": number,
                    "seconds": seconds,
                    "mb_s": size / seconds / MEGABYTE,
                    "peak_bytes": ask(work="memory", **job).peak,
                    "bound_bytes": chunk * window if chunk and window else size,
                }


def summary(measured: Sequence[Row]) -> list[Row]:
    """A row for each configuration, over all rounds: medians, and the highest peak of memory."""
    listed = []
    keys = ("bytes", "protocol", "chunk_bytes")
    for (size, protocol, chunk), group in grouped(measured, keys).items():
        peaks = [row["peak_bytes"] for row in group if row["peak_bytes"] is not None]
        listed.append(
            {
                "bytes": size,
                "protocol": protocol,
                "chunk_kb": chunk and chunk / 1024,
                "ms": median(row["seconds"] for row in group) * 1e3,
                "mb_s": median(row["mb_s"] for row in group),
                "peak_kb": max(peaks) / 1024 if peaks else None,
                "bound_kb": group[0]["bound_bytes"] / 1024,
            }
        )
    return listed


def plot(measured: Sequence[Row]) -> Figure:
    """Throughput and the receiver's memory against chunk size, for the largest array."""
    from sfm_kernel.lessons.chunks.plots import Memory, Throughput
    from sfm_kernel.plots import still

    size = max(row["bytes"] for row in measured)
    shown = [row for row in measured if row["bytes"] == size]
    chunks = sorted({row["chunk_bytes"] for row in shown if row["window"] is not None})
    windows = sorted({row["window"] for row in shown if row["window"] is not None})
    return still(shown, Throughput(chunks), Memory(chunks, windows, size))


# The command line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``python -m sfm_kernel.lessons chunks``."""
    parser.add_argument("--engines", type=int, choices=(2,), default=2, help="always 2")
    parser.add_argument("--bytes", type=numbers, metavar="B,B,…", help="sizes of the array")
    parser.add_argument("--chunks", type=numbers, metavar="B,B,…", help="sizes of a chunk, bytes")
    parser.add_argument("--windows", type=numbers, metavar="W,W,…", help="chunks on their way")


def plan(options: argparse.Namespace) -> list[Part]:
    """What the command line asks for, in a part for each size of the array."""
    quick = {"sizes": (4 << 20,), "chunks": CHUNKS[1:5:2], "windows": (1, 4)}
    usual = {"sizes": (*SIZES, 128 << 20), "chunks": CHUNKS, "windows": WINDOWS}
    defaults: dict[str, tuple[int, ...]] = quick if options.quick else usual
    repeat = options.repeat or (2 if options.quick else 3)
    measured = partial(
        rows,
        chunks=options.chunks or defaults["chunks"],
        windows=options.windows or defaults["windows"],
        repeat=repeat,
    )
    return [
        Part(f"{size:,} bytes", partial(measured, sizes=(size,)), 1 + repeat * size / 1e7, repeat)
        for size in options.bytes or defaults["sizes"]
    ]
