"""When an MPI call returns, nothing that another process waits for is left queued: what has come is
answered, whatever the process does next."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel import mpi

LARGE = 300_000
"""Bytes of a message whose receiver fetches them."""

Receive = Callable[[Any, Any, Any], Any]


def irecv(comm: Any, MPI: Any, into: Any) -> Any:
    return comm.Irecv(into, 0, 5)


def irecv_and_wait(comm: Any, MPI: Any, into: Any) -> None:
    comm.Irecv(into, 0, 5).Wait()


def irecv_and_testsome(comm: Any, MPI: Any, into: Any) -> None:
    request = comm.Irecv(into, 0, 5)
    while not MPI.Request.Testsome([request]):
        pass


def start(comm: Any, MPI: Any, into: Any) -> Any:
    request = comm.Recv_init(into, 0, 5)
    MPI.Prequest.Startall([request])
    return request


def imrecv(comm: Any, MPI: Any, into: Any) -> Any:
    return comm.Mprobe(0, 5).Irecv(into)


def improbe(comm: Any, MPI: Any, into: Any) -> Any:
    while (message := comm.Improbe(0, 5)) is None:
        pass
    return message.Irecv(into)


def isendrecv(comm: Any, MPI: Any, into: Any) -> Any:
    return comm.Isendrecv(np.ones(1), 0, 7, into, 0, 5)


def irecv_of_any(comm: Any, MPI: Any, into: Any) -> Any:
    return comm.Irecv(into, MPI.ANY_SOURCE, MPI.ANY_TAG)


def posted_before(comm: Any, MPI: Any, into: Any) -> Any:
    """The message comes while a receive of another one is under way."""
    request = comm.Irecv(into, 0, 5)
    comm.Iprobe(0, 99)
    return request


WAYS: list[Receive] = [
    irecv, irecv_and_wait, irecv_and_testsome, start, imrecv, improbe, isendrecv,
    irecv_of_any, posted_before,
]  # fmt: skip


def after(path: Path) -> bool:
    """Whether a process has made the file within 10 s, while this one is in no call of MPI."""
    deadline = time.monotonic() + 10
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.001)
    return path.exists()


@pytest.mark.parametrize("nbytes", [8, LARGE], ids=["small", "large"])
def test_what_lies_there_is_answered_when_the_call_returns(tmp_path: Path, nbytes: int) -> None:
    def program(sfm: Any) -> list[str]:
        mpi.use(sfm)
        from mpi4py import MPI

        comm, left = MPI.COMM_WORLD, []
        for way in WAYS:
            sending, received = (tmp_path / f"{way.__name__} {word}" for word in ("begun", "over"))
            comm.Barrier()
            if comm.rank == 0:
                request = comm.Issend(np.full(nbytes, 3, np.uint8), 1, 5)
                sending.touch()
                request.Wait()
                received.touch()
                if way is isendrecv:
                    comm.Recv(np.empty(1), 1, 7)
                continue
            after(sending)
            into = np.zeros(nbytes, np.uint8)
            request = way(comm, MPI, into)
            if not after(received):
                left.append(way.__name__)
            if request is not None:
                request.Wait()
            assert into[-1] == 3
        return left

    assert sfm_kernel.run(program, 2, timeout=150)[1] == []


def freed(comm: Any, MPI: Any, data: Any) -> None:
    comm.Isend(data, 1, 5).Free()


def waited_for(comm: Any, MPI: Any, data: Any) -> None:
    comm.Ibsend(data, 1, 5).Wait()


BEGIN: dict[str, Receive] = {
    "Isend": lambda comm, MPI, data: comm.Isend(data, 1, 5),
    "Issend": lambda comm, MPI, data: comm.Issend(data, 1, 5),
    "Isend, freed": freed,
    "Bsend": lambda comm, MPI, data: comm.Bsend(data, 1, 5),
    "Ibsend": waited_for,
    "Ibcast": lambda comm, MPI, data: comm.Ibcast(data, 0),
}


def test_what_a_full_ring_holds_back_is_sent_while_the_program_computes(tmp_path: Path) -> None:
    def program(sfm: Any) -> list[str]:
        mpi.use(sfm)
        from mpi4py import MPI

        comm, left = MPI.COMM_WORLD, []
        data = [np.full(4000, number, np.uint8) for number in range(200)]  # the ring takes 65
        MPI.Attach_buffer(bytearray(1 << 20))
        for way, begin in BEGIN.items():
            begun, received = (tmp_path / f"{way} {word}" for word in ("begun", "received"))
            comm.Barrier()
            if comm.rank == 0:
                requests = [begin(comm, MPI, each) for each in data]
                begun.touch()
                if not after(received):
                    left.append(way)
                MPI.Request.Waitall([request for request in requests if request is not None])
                continue
            after(begun)
            for each in data:
                into = np.zeros_like(each)
                if way == "Ibcast":
                    comm.Ibcast(into, 0).Wait()
                else:
                    comm.Recv(into, 0, 5)
                assert (into == each).all()
            received.touch()
        MPI.Detach_buffer()
        return left

    assert sfm_kernel.run(program, 2, timeout=150)[0] == []


SENDS = ("send", "Ssend", "Issend", "Isend", "Ssend_init", "Bsend", "Ibsend")
RECEIVES = ("Recv", "Irecv", "Irecv later", "Probe", "Mprobe", "Imrecv", "Recv_init", "Sendrecv")
SIZES = (0, 8, 1000, LARGE)


def walk(comm: Any, MPI: Any, seed: int, count: int) -> None:
    """This rank's part of random messages. All ranks take them in the same order, so that none
    waits for ever, and receive each at once or begin to."""
    dice, ways, open_requests = random.Random(seed), random.Random(seed * 100 + comm.rank), []
    for number in range(count):
        source, dest = dice.sample(range(comm.size), 2)
        nbytes, tag = dice.choice(SIZES), dice.randrange(2)
        send, receive = dice.choice(SENDS), dice.choice(RECEIVES)
        data = np.full(nbytes, number % 251, np.uint8)
        if comm.rank == source:
            if send == "send":
                comm.Send(data, dest, tag)
            elif send in ("Ssend", "Bsend"):
                getattr(comm, send)(data, dest, tag)
            elif send == "Ssend_init":
                request = comm.Ssend_init(data, dest, tag)
                request.Start()
                open_requests.append((request, data, number))
            else:
                open_requests.append((getattr(comm, send)(data, dest, tag), data, number))
        elif comm.rank == dest:
            into = np.zeros(nbytes, np.uint8)
            if receive == "Recv":
                comm.Recv(into, source, tag)
            elif receive == "Sendrecv":
                comm.Sendrecv(None, MPI.PROC_NULL, 0, into, source, tag)
            elif receive == "Probe":
                comm.Probe(source, tag)
                comm.Recv(into, source, tag)
            elif receive == "Mprobe":
                comm.Mprobe(source, tag).Recv(into)
            elif receive == "Imrecv":
                comm.Mprobe(source, tag).Irecv(into).Wait()
            elif receive == "Recv_init":
                request = comm.Recv_init(into, source, tag)
                request.Start()
                request.Wait()
            else:
                request = comm.Irecv(into, source, tag)
                if receive == "Irecv":
                    request.Wait()
                open_requests.append((request, into, number))
            if receive != "Irecv later":
                assert (into == data).all(), number
        if ways.random() < 0.1:
            time.sleep(ways.random() * 0.002)
    ways.shuffle(open_requests)
    while open_requests:
        some = [open_requests.pop() for _ in range(min(len(open_requests), ways.randrange(1, 5)))]
        MPI.Request.Waitall([request for request, _, _ in some])
        for _, data, number in some:
            assert (data == number % 251).all(), number


@pytest.mark.parametrize("seed", range(3))
def test_who_has_done_its_part_leaves_nobody_waiting(
    tmp_path: Path, seed: int, effort: int
) -> None:
    def program(sfm: Any) -> list[int]:
        if seed == 2:
            os.environ["SFM_RING_BYTES"] = "4096"  # the rings are nearly always full
        mpi.use(sfm)
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        MPI.Attach_buffer(bytearray(30 * LARGE))
        for nth in range(15 * effort):
            walk(comm, MPI, 1000 * seed + nth, 25)
            (tmp_path / f"{nth} {comm.rank}").touch()
            for rank in range(comm.size):
                assert after(tmp_path / f"{nth} {rank}"), (seed, nth, rank)
        return []

    sfm_kernel.run(program, 2 + seed % 2, timeout=150)


def test_what_another_call_than_mpi_s_takes_in_is_answered() -> None:
    """The message of a receive that is under way comes while its process waits in ``recv``."""

    def program(sfm: Any) -> Any:
        mpi.use(sfm)
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        if comm.rank == 0:
            comm.Barrier()
            comm.ssend("an answer", 1)
            return sfm.send(dest=1, tag="it has come")
        request = comm.irecv(source=0)
        comm.Barrier()
        sfm.recv(tag="it has come")
        return request.wait()

    assert sfm_kernel.run(program, 2, timeout=30)[1] == "an answer"
