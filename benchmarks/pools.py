"""Pools of workers that are given many tasks: ours, and those of others, each in its own process.

Run as ``python -m benchmarks.pools POOL WORKERS SOCKET``; see ``crew``.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

from sfm_kernel.errors import SFMError
from sfm_kernel.lessons.measure.crew import OURS, Answer, launcher, serve

Run = Callable[[int, int, int], list[Any]]
"""Runs so many tasks of so many milliseconds, in chunks of a size (0: its own choice, or alone)."""

SFM, EXECUTOR = "SFM farm", "SFM Executor"
FUTURES, MPI, IPYPARALLEL, DASK = "concurrent.futures", "mpi4py.futures", "ipyparallel", "Dask"
MODULES = {IPYPARALLEL: "ipyparallel", DASK: "distributed"}
"""What has to be installed."""


NAME = "benchmarks.pools"


def task(ms: int) -> int:
    """A task: it sleeps, since workers that compute would measure the cores, of which there are
    fewer than workers."""
    if ms:
        time.sleep(ms / 1e3)
    return ms


def absent(pool: str) -> str | None:
    """Why this pool cannot be had here, and how to get it; None if it can."""
    if pool in MODULES and find_spec(MODULES[pool]) is None:
        return f"{pool} is left out, it is not installed: pip install 'sfm-kernel[bench]'"
    return None


def command(pool: str, workers: int) -> list[str]:
    """The words that start the process which drives a pool."""
    words = ["-m", NAME, pool, str(workers)]
    if pool == MPI:
        return [*launcher(OURS, workers + 1), "-m", "mpi4py.futures", *words]
    return [sys.executable, *words]


@contextlib.contextmanager
def _farm(workers: int) -> Iterator[Run]:
    from sfm_kernel import farm
    from sfm_kernel.serving import LocalProcesses

    own = LocalProcesses(workers)
    try:
        with farm.connect(own.sfm) as pool:
            yield lambda count, ms, chunk: list(pool.map(task, [ms] * count, chunk=chunk))
    finally:
        own.close()


@contextlib.contextmanager
def _executor(kind: Callable[[int], Any], workers: int) -> Iterator[Run]:
    with kind(workers) as pool:
        yield lambda count, ms, chunk: list(pool.map(task, [ms] * count, chunksize=chunk or 1))


def _own(workers: int) -> Any:
    from sfm_kernel import farm

    return farm.Executor(workers)


def _standard(workers: int) -> Any:
    from concurrent.futures import ProcessPoolExecutor

    return ProcessPoolExecutor(workers)


def _mpi(workers: int) -> Any:
    from mpi4py.futures import MPIPoolExecutor

    return MPIPoolExecutor(workers)


@contextlib.contextmanager
def _ipyparallel(workers: int) -> Iterator[Run]:
    import ipyparallel

    quiet = {"log_level": logging.ERROR}
    with ipyparallel.Cluster(n=workers, controller_ip="127.0.0.1", **quiet) as client:
        client.wait_for_engines(workers, interactive=False, timeout=60)
        view = client.load_balanced_view()
        yield lambda count, ms, chunk: list(
            view.map_sync(task, [ms] * count, chunksize=chunk or 1, ordered=True)
        )


@contextlib.contextmanager
def _dask(workers: int) -> Iterator[Run]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address=None,
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster) as client,
    ):

        def run(count: int, ms: int, chunk: int) -> list[Any]:
            size = {"batch_size": chunk} if chunk else {}
            made = client.map(task, [ms] * count, pure=False, **size)
            found: list[Any] = client.gather(made)
            return found

        yield run


POOLS: dict[str, Callable[[int], contextlib.AbstractContextManager[Run]]] = {
    SFM: _farm,
    EXECUTOR: partial(_executor, _own),
    FUTURES: partial(_executor, _standard),
    MPI: partial(_executor, _mpi),
    IPYPARALLEL: _ipyparallel,
    DASK: _dask,
}


def measure(run: Run, count: int, ms: int, chunk: int) -> Answer:
    """How long so many tasks take together."""
    started = time.perf_counter()
    found = run(count, ms, chunk)
    seconds = time.perf_counter() - started
    if found != [ms] * count:
        raise SFMError("tasks have returned something else than they should")
    return {"seconds": seconds}


if __name__ == "__main__":
    from importlib import import_module

    own = import_module(NAME)  # whose `task` workers can import
    name, number, path = sys.argv[1:]
    with own.POOLS[name](int(number)) as opened:
        serve(path, 0, {"tasks": partial(own.measure, opened)})
