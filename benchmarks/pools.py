"""Pools of workers for many tasks: SFM's, and those of other libraries, each in another process.

Run as ``python -m benchmarks.pools POOL WORKERS SOCKET``; see ``lessons.measure.launched``.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from sfm_kernel.errors import SFMError, pip_install
from sfm_kernel.lessons.measure.launched import OURS, Answer, launcher, serve

Run = Callable[[int, int, int], list[Any]]
"""``run(count, ms, chunk)`` runs tasks of ``ms`` milliseconds in chunks (0: the pool's default)."""

SFM, EXECUTOR = "SFM farm", "SFM Executor"
FUTURES, MPI, IPYPARALLEL, DASK = "concurrent.futures", "mpi4py.futures", "ipyparallel", "Dask"
PACKAGES = {IPYPARALLEL: "ipyparallel>=9", DASK: "distributed>=2024.8"}
"""Pool -> the package that it needs, and from which version on."""

NAME = "benchmarks.pools"


def task(ms: int) -> int:
    """Sleep for ``ms`` milliseconds: tasks that compute would measure the cores."""
    if ms:
        time.sleep(ms / 1e3)
    return ms


def absent(pool: str) -> str | None:
    """Why this pool cannot run here, and what to install; None if it can."""
    package = PACKAGES.get(pool)
    if package is not None and find_spec(package.partition(">")[0]) is None:
        return f"{pool} is left out, it is not installed: {pip_install(package)}"
    return None


def command(pool: str, workers: int) -> list[str]:
    """The command that starts the process of a pool."""
    words = ["-m", NAME, pool, str(workers)]
    if pool == MPI:
        return [*launcher(OURS, workers + 1), "-m", "mpi4py.futures", *words]
    return [sys.executable, *words]


@contextlib.contextmanager
def _farm(workers: int) -> Iterator[Run]:
    from sfm_kernel import farm
    from sfm_kernel.serving import LocalProcesses

    processes = LocalProcesses(workers)
    try:
        with farm.connect(processes.sfm) as pool:
            yield lambda count, ms, chunk: list(pool.map(task, [ms] * count, chunk=chunk))
    finally:
        processes.close()


@contextlib.contextmanager
def _executor(module: str, kind: str, workers: int) -> Iterator[Run]:
    """A pool with the interface of ``concurrent.futures``."""
    with getattr(import_module(module), kind)(workers) as pool:
        yield lambda count, ms, chunk: list(pool.map(task, [ms] * count, chunksize=chunk or 1))


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
    EXECUTOR: partial(_executor, "sfm_kernel.farm", "Executor"),
    FUTURES: partial(_executor, "concurrent.futures", "ProcessPoolExecutor"),
    MPI: partial(_executor, "mpi4py.futures", "MPIPoolExecutor"),
    IPYPARALLEL: _ipyparallel,
    DASK: _dask,
}


def measure(run: Run, count: int, ms: int, chunk: int) -> Answer:
    """The time of ``count`` tasks together."""
    started = time.perf_counter()
    found = run(count, ms, chunk)
    seconds = time.perf_counter() - started
    if found != [ms] * count:
        raise SFMError("tasks have returned wrong results")
    return {"seconds": seconds}


if __name__ == "__main__":
    module = import_module(NAME)  # not __main__: workers have to import `task`
    name, number, path = sys.argv[1:]
    with module.POOLS[name](int(number)) as opened:
        serve(path, 0, {"tasks": partial(module.measure, opened)})
