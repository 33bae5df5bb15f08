"""Workers that are processes of the job: all ranks but one, which has the tasks."""

from __future__ import annotations

import secrets
import threading
from typing import TYPE_CHECKING, Any

from sfm_kernel.mpi import MPI
from sfm_kernel.mpi.engine.process import process
from sfm_kernel.mpi.futures import _core, threads
from sfm_kernel.mpi.futures.crew import Crew, Manager
from sfm_kernel.mpi.futures.main_program import where
from sfm_kernel.mpi.futures.managing import Options, Pool
from sfm_kernel.mpi.futures.worker import as_worker, serve

if TYPE_CHECKING:
    from sfm_kernel.mpi.futures.pool import MPIPoolExecutor


class Job:
    """The ranks of a communicator as a master and workers. Made by all of them together.

    Attributes:
        is_master: whether this process is ``root``.
    """

    def __init__(self, comm: Any, root: int) -> None:
        self.is_master = comm.Get_rank() == root
        self._comm, self._root = comm, root
        self._channel = comm.bcast(f"mpi futures {secrets.token_hex(8)}", root)
        self._workers = comm.Split(int(self.is_master))

    def crew(self) -> Crew:
        """The workers, for the master."""
        names = list(self._comm._state.names)
        del names[self._root]
        return Crew(process().sfm, self._channel, names)

    def serve(self) -> None:
        """Be a worker until the master says stop."""
        master = self._comm._state.names[self._root]
        serve(process().sfm, self._channel, master, self._workers)

    def free(self) -> None:
        """Free the communicator of the workers."""
        self._workers.Free()


def alone(pool: Pool, options: Options) -> None:
    """What manages a pool where the only worker is this process: it does the tasks itself."""
    with as_worker(MPI.COMM_SELF):
        threads.manage(pool, options | {"max_workers": 1})


def manage_ranks(executor: MPIPoolExecutor | None, comm: Any, root: int) -> None:
    """Make the master's executor use the other ranks; on these, be a worker until it ends."""
    if comm.Get_size() == 1:
        assert executor is not None
        executor._pool = Pool(executor, alone)
        return
    job = Job(comm, root)
    if executor is None:
        job.serve()
        job.free()
        return

    def manage(pool: Pool, options: Options) -> None:
        crew = job.crew()
        try:
            Manager(pool, crew).manage(options)  # the ranks have run this program themselves
        finally:
            crew.stop()
            job.free()

    executor._pool = Pool(executor, manage)


class SharedPool:
    """All executors of a program use the ranks 1, 2, … as workers: ``python -m mpi4py.futures``.

    Made by all ranks together. A context manager: its value is None on workers, which leave it when
    rank 0 does. Called with an executor, it returns the pool for that.
    """

    def __init__(self) -> None:
        self._job: Job | None = None
        self._crew: Crew | None = None
        self._pools: list[Pool] = []
        self._lock = threading.Lock()

    def __enter__(self) -> SharedPool | None:
        comm = MPI.COMM_WORLD
        _core.SharedPool = self
        if comm.Get_size() == 1:
            return self
        self._job = Job(comm, 0)
        if not self._job.is_master:
            return None
        self._crew = self._job.crew()
        return self

    def __exit__(self, *_: object) -> None:
        for pool in self._pools:
            pool.done()
            pool.join()
        if self._crew is not None:
            self._crew.stop()
        elif self._job is not None:
            self._job.serve()
        if self._job is not None:
            self._job.free()
        _core.SharedPool = None

    def __call__(self, executor: MPIPoolExecutor) -> Pool:
        pool = Pool(executor, alone if self._crew is None else self._manage)
        with self._lock:
            self._pools.append(pool)
        return pool

    def _manage(self, pool: Pool, options: Options) -> None:
        assert self._crew is not None
        Manager(pool, self._crew).manage(options | {"main program": where(options)})

    def __reduce__(self) -> str:
        return "SharedPool"


def comm_split(comm: Any, root: int) -> tuple[Any, Any]:
    """A master and workers: the intercommunicator between them, and that of the workers.

    The second is null on ``root``, and both are where there are no workers.
    """
    if comm.Get_size() == 1:
        return MPI.Intercomm(MPI.COMM_NULL), MPI.Intracomm(MPI.COMM_NULL)
    is_root = comm.Get_rank() == root
    local = comm.Split(int(is_root))
    leader = int(root == 0) if is_root else root
    between = local.Create_intercomm(0, comm, leader)
    if is_root:
        local.Free()
    return between, local
