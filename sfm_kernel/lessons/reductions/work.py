"""The work of each process: opens its endpoints, reduces, and reports its processor time."""

from __future__ import annotations

import resource
import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sfm_kernel.collectives import Group
from sfm_kernel.errors import SFMError
from sfm_kernel.lessons.measure.engines import START_SECONDS, serve_jobs
from sfm_kernel.lessons.pingpong.links import OPENINGS
from sfm_kernel.lessons.pingpong.mechanisms import Queue

if TYPE_CHECKING:
    from sfm_kernel.endpoint import Endpoint
    from sfm_kernel.message import Message

ZMQ = "SFM w/Q zmq"
"""The mechanism of ``OPENINGS`` that sends all messages over ZeroMQ, as between machines."""

UNIT = 8
"""Bytes of a float; the sizes of arrays are multiples of it."""


def serve(sfm: Endpoint, home: str = "home") -> None:
    """Do home's reductions, until it says stop. Runs on every engine."""
    with _Worlds(sfm) as worlds:
        works = {"reduce": _reduce, "flood": _flood}
        serve_jobs(sfm, "reductions", lambda job: works[job.work](sfm, worlds, job), home)


class _Worlds:
    """This process's endpoints, one for each transport, and its groups; closes what it opened."""

    def __init__(self, sfm: Endpoint) -> None:
        self._stack = ExitStack()
        self._endpoints = {"shm": sfm}
        self._groups: dict[tuple[str, int], Group] = {}

    def endpoint(self, transport: str, processes: int) -> Endpoint:
        """The endpoint with this transport, when the first ``processes`` ranks have joined.

        Raises:
            SFMError: messages to one of them would use another transport.
        """
        if transport not in self._endpoints:
            sfm = self._endpoints["shm"]
            queue = self._stack.enter_context(OPENINGS[ZMQ](sfm, 0))
            assert isinstance(queue, Queue)
            self._endpoints[transport] = queue.sfm
        sfm = self._endpoints[transport]
        if transport != "shm":  # The engines' own endpoints are there already, or have failed.
            sfm.wait_for(*range(processes), timeout=START_SECONDS)
        for other in range(processes):
            kind = sfm.route_kind(other)
            if other != sfm.rank and (kind == "zmq") != (transport == "zmq"):
                raise SFMError(
                    f"{sfm.name!r} reaches {other!r} through {kind}, not {transport}: run all on "
                    f"one machine, without SFM_TRANSPORT"
                )
        return sfm

    def group(self, transport: str, processes: int) -> Group:
        """The group of ranks 0 … processes-1."""
        key = (transport, processes)
        if key not in self._groups:
            self._groups[key] = Group(self.endpoint(*key), range(processes))
        return self._groups[key]

    def __enter__(self) -> _Worlds:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()


def _spent() -> tuple[float, int]:
    """This process so far: seconds of processor time of all its threads, and its switches.

    A switch is a time at which the process gave up its core.
    """
    use = resource.getrusage(resource.RUSAGE_SELF)
    return time.process_time(), use.ru_nvcsw + use.ru_nivcsw


def _reduce(sfm: Endpoint, worlds: _Worlds, job: Message) -> Mapping[str, Any] | None:
    """Do ``count`` reductions; on rank 0 return their time, and the sums over all processes."""
    group = worlds.group(job.transport, job.processes)
    array = np.full(job.nbytes // UNIT, group.rank + 1.0)
    total, expected = np.empty_like(array), group.size * (group.size + 1) / 2
    reduce = partial(group.allreduce, array, np.add, out=total, algorithm=job.algorithm)
    for _ in range(1 + job.count // 10):  # a warm-up, after which all processes have begun
        total.fill(0)
        reduce()
        if not (total == expected).all():
            raise SFMError(
                f"{job.algorithm} with {group.size} processes added {expected} up to {total}"
            )
    cpu, switches = _spent()
    started = time.perf_counter()
    for _ in range(job.count):
        reduce()
    seconds = time.perf_counter() - started
    cpu_after, switches_after = _spent()
    spent = {"cpu": cpu_after - cpu, "switches": switches_after - switches}
    if group.rank != 0:
        sfm.send(dest=0, tag="reductions spent", number=job.number, **spent)
        return None
    others = [
        sfm.recv(src=rank, tag="reductions spent", number=job.number)
        for rank in range(1, group.size)
    ]
    totals = {name: spent[name] + sum(other[name] for other in others) for name in spent}
    totals["seconds"] = seconds
    return {name: total / job.count for name, total in totals.items()}


def _flood(sfm: Endpoint, worlds: _Worlds, job: Message) -> Mapping[str, Any] | None:
    """Send ``count`` messages from process 0 to 1 as fast as possible; on rank 0 their time."""
    queue = worlds.endpoint(job.transport, job.processes)
    data = np.ones(job.nbytes // UNIT)
    if sfm.rank == 1:
        for _ in range(job.count):
            queue.recv(src=0, tag="flood").data  # noqa: B018 - decodes it
        queue.send(dest=0, tag="flood end")
        return None
    started = time.perf_counter()
    for _ in range(job.count):
        queue.send(dest=1, tag="flood", data=data)
    queue.recv(src=1, tag="flood end")
    seconds = time.perf_counter() - started
    return {"seconds": seconds / job.count}
