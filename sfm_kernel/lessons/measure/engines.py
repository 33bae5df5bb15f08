"""The engines of a benchmark, and the functions by which home drives them.

A benchmark's ``serve(sfm)`` runs in every engine and waits for jobs. Home sends a job to engine 0,
which shares it with the others, and makes a row of the answer. So home drives the engines of a
notebook's world exactly as local processes, and nothing is measured between two jobs.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from sfm_kernel.errors import RecvTimeout, SFMError
from sfm_kernel.spawn.job import Job
from sfm_kernel.world import join

if TYPE_CHECKING:
    from sfm_kernel.endpoint import Endpoint
    from sfm_kernel.message import Message

START_SECONDS = 120.0
"""Seconds that engines may take to join, or to answer the first job."""


@contextmanager
def local_engines(n: int, serve: Callable[[Endpoint], object]) -> Iterator[Endpoint]:
    """``n`` local processes that run ``serve(sfm)``; yields this process's endpoint, "home".

    The processes are ranks 0 … n-1 of a new world, and home is its guest, just as a notebook is:
    the same functions drive engines from a notebook and these processes. ``serve`` must return
    when home says stop, or has left; then the ``with`` block ends.

    Raises:
        ProcessFailed: a process raised or died; the others were stopped.
    """
    with Job("bench", n, _enter, (n, serve)) as job:
        with join(job.world, name="home", guest=True) as home:
            try:
                job.gather(home)
                yield home
            except SFMError:  # the symptom of a failure in a process, whose own error says more
                with suppress(RecvTimeout):
                    job.results(5.0)
                raise
        # Home has left: engines that still wait for it end with PeerLost.
        job.results(START_SECONDS)
        job.end()


def _enter(sfm: Endpoint, n: int, serve: Callable[[Endpoint], object]) -> None:
    sfm.wait_for(*range(n), timeout=START_SECONDS)
    serve(sfm)


@contextmanager
def environment_of(variables: Mapping[str, str]) -> Iterator[None]:
    """Processes that start, and endpoints that join, in the block have these variables."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def chosen_engines(benchmark: str, engines: int | None, home: Endpoint | None) -> tuple[int, int]:
    """The number of engines that a benchmark uses, and the number that serve it.

    Args:
        engines: the requested number; None: all of home's world, or 4 local processes.
        home: a notebook's endpoint; None: the benchmark starts its own processes.
    Raises:
        ValueError: the request is less than 1, or more than home's world has.
    """
    if engines is None:
        engines = home.size if home is not None else 4
    available = home.size if home is not None else engines
    if not 1 <= engines <= available:
        choice = f"choose 1 to {max(available, 1)}"
        raise ValueError(f"{benchmark} cannot run on {engines} engines: {choice}")
    return engines, available


@contextmanager
def driving(
    benchmark: str,
    serve: Callable[[Endpoint], object],
    engines: int,
    home: Endpoint | None = None,
    stop: Mapping[str, Any] | None = None,
) -> Iterator[Callable[..., Message]]:
    """Engines that serve a benchmark; yields ``ask(**job)``, which returns engine 0's answer.

    Without ``home`` the engines are local processes; with it they are those of home's world. The
    last job, ``stop`` (default: ``{"stop": True}``), makes all ``engines`` return from ``serve``.
    """
    last_job = {"engines": engines, **(stop or {"stop": True})}
    with nullcontext(home) if home is not None else local_engines(engines, serve) as driver:
        ask = partial(_ask, driver, benchmark)
        try:
            yield ask
        except SFMError:  # the engines do not serve any more
            raise
        except BaseException:  # the caller was interrupted, or needs no more rows
            with suppress(SFMError):
                ask(timeout=START_SECONDS, **last_job)
            raise
        ask(timeout=START_SECONDS, **last_job)


def _ask(home: Endpoint, benchmark: str, /, *, timeout: float | None = None, **job: Any) -> Message:
    """Send a job to engine 0, which shares it with the others; return its answer.

    Raises:
        SFMError: the job failed on engine 0, or no answer came within ``timeout`` seconds
            because the engines do not serve.
        PeerLost: engine 0 died.
    """
    # Distinguishes the answer from late ones to interrupted jobs, also of an earlier kernel; in
    # decimal digits, since the panel shows what a process waits for.
    number = secrets.randbelow(1_000_000)
    home.send(dest=0, tag=f"{benchmark} job", number=number, **job)
    try:
        answer = home.recv(timeout, src=0, tag=f"{benchmark} answer", number=number)
    except RecvTimeout:
        raise SFMError(
            f"the engines do not answer. Let every engine run {benchmark}.serve(sfm) first, "
            f"in a cell that starts with `%%sfm --noblock`"
        ) from None
    if "failed" in answer:
        raise SFMError(f"engine 0 stopped serving {benchmark}: {answer.failed}")
    return answer


def serve_jobs(
    sfm: Endpoint, benchmark: str, work: Callable[[Message], Mapping[str, Any] | None], home: str
) -> None:
    """Do the jobs of ``ask``, on the first ``job.engines`` engines, until one says ``stop``.

    Engine 0 passes each job on to engines 1 … ``job.engines`` - 1, then all call ``work(job)``;
    the result on engine 0 is the answer.
    """
    rank = rank_of(sfm)
    while True:
        job = sfm.recv(src=home if rank == 0 else 0, tag=f"{benchmark} job")
        with answering(sfm, benchmark, job) as answer:
            broadcast(sfm, job)
            if "stop" in job:
                return
            answer.update(work(job) or {})


def broadcast(sfm: Endpoint, job: Message) -> None:
    """Engine 0 sends a job on to the engines that take part; the others wait for the next."""
    if sfm.rank == 0:
        contents = {name: job[name] for name in job if name not in ("src", "dest")}
        for rank in range(1, job.engines):
            sfm.send(dest=rank, **contents)


def rank_of(sfm: Endpoint) -> int:
    """The engine's rank. Raises SFMError for a guest, which would wait for jobs for ever."""
    if sfm.rank is None:
        raise SFMError(f"serve runs on engines, in a %%sfm cell; {sfm.name!r} is not an engine")
    return sfm.rank


@contextmanager
def answering(sfm: Endpoint, benchmark: str, job: Message) -> Iterator[dict[str, Any]]:
    """Do a job that ``ask`` sent; yields a dict, which engine 0 sends to home at the end.

    An exception of the block is reported to home, which would wait for ever otherwise.
    """
    result: dict[str, Any] = {}
    try:
        yield result
    except BaseException as error:
        result = {"failed": repr(error)}
        raise
    finally:
        if sfm.rank == 0:
            sfm.send(dest=job.src, tag=f"{benchmark} answer", number=job.number, **result)
