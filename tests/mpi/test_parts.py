"""Messages that travel in parts: eager ones, streams, and what interrupts and kills do to them."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from secrets import token_hex
from typing import Any

import pytest

import sfm_kernel
from tests.mpi.test_pointtopoint import run

PART, EAGER = 1 << 16, 1 << 20
SIZES = [
    size + more
    for size in (PART, 2 * PART, EAGER - PART, EAGER, EAGER + PART, 2 * EAGER, 5 * EAGER)
    for more in (-1, 0, 1)
]


@pytest.mark.parametrize("way", ["plain", "status", "Irecv", "Mprobe", "strided", "Isend", "Ssend"])
def test_all_sizes_arrive_whole(way: str) -> None:
    def program(comm: Any, MPI: Any) -> list[int]:
        import numpy as np

        wrong = []
        for nth, size in enumerate(SIZES):
            data = (np.arange(size) * (nth + 3) % 251).astype(np.uint8)
            into = np.zeros(2 * size, np.uint8)
            spaced = MPI.BYTE.Create_vector(size, 1, 2).Commit()
            got = into[::2] if way == "strided" else into[:size]
            if comm.rank == 0:
                if way == "strided":
                    into[::2] = data
                    comm.Send([into, 1, spaced], 1, nth)
                elif way == "Isend":
                    comm.Isend(data, 1, nth).Wait()
                else:
                    getattr(comm, "Ssend" if way == "Ssend" else "Send")(data, 1, nth)
                comm.Recv(into[:1], 1)  # one after the other
                continue
            status = MPI.Status()
            if way == "status":
                comm.Recv(got, MPI.ANY_SOURCE, MPI.ANY_TAG, status)
            elif way == "Irecv":
                comm.Irecv(got, 0, nth).Wait(status)
            elif way == "Mprobe":
                comm.Mprobe(0, nth, status).Recv(got)
            elif way == "strided":
                comm.Recv([into, 1, spaced], 0, nth, status)
            else:
                comm.Recv(got, 0, nth)
                status = None
            if not (got == data).all() or (status and status.Get_count() != size):
                wrong.append(size)
            comm.Send(into[:1], 0)
        return wrong

    assert run(program) == [[], []]


@pytest.mark.parametrize("size", [PART + 1, EAGER, EAGER + 1, 4 * EAGER])
@pytest.mark.parametrize("blocking", [True, False])
def test_too_long_for_the_buffer(size: int, blocking: bool) -> None:
    """What fits is there, the next message is whole, and the sender is done."""

    def program(comm: Any, MPI: Any) -> Any:
        import numpy as np

        if comm.rank == 0:
            comm.Send(np.full(size, 1, np.uint8), 1)
            comm.Send(np.full(size, 2, np.uint8), 1)
            return None
        short, whole = np.zeros(size - 1, np.uint8), np.zeros(size, np.uint8)
        with pytest.raises(MPI.Exception) as caught:
            comm.Recv(short, 0) if blocking else comm.Irecv(short, 0).Wait()
        comm.Recv(whole, 0)
        return caught.value.Get_error_class() == MPI.ERR_TRUNCATE, short[0], set(whole.tolist())

    assert run(program)[1] == (True, 1, {2})


def test_many_at_once_in_both_directions() -> None:
    """A blocking receive that could stream, while sends of this process are under way."""

    def program(comm: Any, MPI: Any) -> list[int]:
        import numpy as np

        wrong, other = [], 1 - comm.rank
        for size in (PART * 3, 3 * EAGER):
            sends = [comm.Isend(np.full(size, nth, np.uint8), other, nth) for nth in range(4)]
            for nth in (3, 1, 2, 0):
                into = np.empty(size, np.uint8)
                comm.Recv(into, other, nth)
                wrong += [nth] * (not (into == nth).all())
            MPI.Request.Waitall(sends)
        return wrong

    assert run(program) == [[], []]


def test_threads_stream_at_once() -> None:
    def program(comm: Any, MPI: Any) -> list[bool]:
        from concurrent.futures import ThreadPoolExecutor

        import numpy as np

        def talk(nth: int) -> bool:
            right = True
            for turn in range(4):
                data = np.full(3 * EAGER + nth, 10 * nth + turn, np.uint8)
                into = np.empty(len(data), np.uint8)
                if comm.rank == nth % 2:
                    comm.Send(data, 1 - comm.rank, nth)
                else:
                    comm.Recv(into, 1 - comm.rank, nth)
                    right = right and (into == data).all()
            return bool(right)

        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(talk, range(4)))

    assert run(program) == [[True] * 4] * 2


# ---- processes that are interrupted or killed in the middle ----

MESSAGES = 300
HEAD = """
import sys
import numpy as np
from sfm_kernel.mpi import MPI
comm, sizes = MPI.COMM_WORLD, [70_000, 1 << 20, 3 << 20, 30 << 20]
def data(nth): return np.full(sizes[nth % 4], nth % 251, np.uint8)
into, status, END = np.empty(max(sizes), np.uint8), MPI.Status(), 2**31 - 1
comm.Get_rank()  # joins the world: what is begun after that can be interrupted anywhere
print('begun', flush=True)
"""
SEND = f"""{HEAD}
nth = 0
try:
    while True:
        comm.Send(data(nth), 1)
        nth += 1
except MPI.Exception as error:
    print(error.Get_error_class() == MPI.ERR_PROC_FAILED, flush=True)
"""
RECEIVE = f"""{HEAD}
try:
    while True: comm.Recv(into, 0)
except MPI.Exception as error:
    print(error.Get_error_class() == MPI.ERR_PROC_FAILED, flush=True)
"""
INTERRUPTED = f"""{HEAD}
import signal
inside = False
def stop(*_):
    global inside
    if inside:
        inside = False
        raise KeyboardInterrupt
signal.signal(signal.SIGINT, stop)
stopped, failed = 0, set()
def try_to(call, *arguments):
    global inside, stopped
    try:
        inside = True
        call(*arguments)
        inside = False
        return True
    except KeyboardInterrupt:
        stopped += 1
    except MPI.Exception as error:
        inside = False
        failed.add(error.Get_error_string())
        if error.Get_error_class() == MPI.ERR_PROC_FAILED: raise
    return False
"""
SEND_INTERRUPTED = f"""{INTERRUPTED}
for nth in range({MESSAGES}):
    try_to(comm.Send, data(nth), 1, nth)
comm.Send(data(0)[:1], 1, END)
"""
RECEIVE_INTERRUPTED = f"""{INTERRUPTED}
wrong, whole, nth = 0, 0, 0
while True:
    if try_to(comm.Recv, into, 0, MPI.ANY_TAG, status):
        nth = status.tag
        if nth == END: break
        whole += 1
        wrong += status.Get_count() != sizes[nth % 4]
        wrong += not (into[:sizes[nth % 4]] == nth % 251).all()
print(wrong, whole > 0, flush=True)
"""


@contextmanager
def two(first: str, second: str) -> Iterator[list[subprocess.Popen[str]]]:
    """Two ranks that run these programs, both begun."""
    world = f"test-{token_hex(4)}"
    here = os.environ | {"SFM_MPI_WORLD": world, "SFM_MPI_SIZE": "2"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", text],
            env=here | {"SFM_MPI_RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank, text in enumerate((first, second))
    ]
    try:
        for one in ranks:
            assert one.stdout is not None and one.stdout.readline() == "begun\n"
        yield ranks
    finally:
        for one in ranks:
            one.kill()
            one.communicate()
        sfm_kernel.directory.clean()


@pytest.mark.parametrize("victim", [0, 1])
def test_who_is_killed_keeps_nobody_waiting(victim: int) -> None:
    with two(SEND, RECEIVE) as ranks:
        time.sleep(random.Random().uniform(0.2, 0.4))
        ranks[victim].kill()
        out, _ = ranks[1 - victim].communicate(timeout=60)
        assert out == "True\n"


@pytest.mark.parametrize("victim", [0, 1])
def test_interrupts_lose_no_more_than_what_they_meet(victim: int) -> None:
    """What was received is right, whatever was interrupted, and both come to their end."""
    with two(SEND_INTERRUPTED, RECEIVE_INTERRUPTED) as ranks:
        dice = random.Random()
        while ranks[0].poll() is None:
            time.sleep(dice.uniform(0.001, 0.02))
            if ranks[victim].poll() is None:
                ranks[victim].send_signal(signal.SIGINT)
        out, _ = ranks[1].communicate(timeout=60)
        assert out == "0 True\n"
