"""Livelocks and starving processes are suspected, and programs that go on are not."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfm_kernel import Endpoint, RecvTimeout, mpi
from sfm_kernel.observe import DeadlockMonitor, deadlocks, explain
from sfm_kernel.observe.explain import repetition, rounds
from tests.observe.harness import running

LASTING = 0.4


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (repetition, rounds):
        monkeypatch.setattr(module, "LASTING", LASTING)
    monkeypatch.setattr(deadlocks, "SELDOM", LASTING / 8)


# ---- a livelock, and a process that starves ----


def after_you(sfm: Endpoint) -> None:
    sfm.send(dest=1 - sfm.rank, say="after you")
    while True:
        if sfm.recv(src=1 - sfm.rank).say == "thanks":  # receive
            break
        time.sleep(0.001)
        sfm.send(dest=1 - sfm.rank, say="after you")  # send


def change_minds(sfm: Endpoint) -> None:
    """Both change their minds at the same time."""
    mine = True
    while True:
        sfm.send(dest=1 - sfm.rank, mine=mine)
        if sfm.recv(src=1 - sfm.rank).mine != mine:
            break
        mine = not mine


def serve_others(sfm: Endpoint) -> None:
    """The server counts whom it serves, and forgets one kind of request."""
    if sfm.rank == 0:
        for nth in itertools.count():
            request = sfm.recv(kind="fast")
            sfm.send(dest=request.src, nth=nth)
    kind = "fast" if sfm.rank == 1 else "slow"
    while True:
        sfm.send(dest=0, kind=kind)
        sfm.recv(src=0)


def after_you_in_mpi(sfm: Endpoint) -> None:
    comm = world(sfm)
    comm.send("after you", dest=1 - comm.rank, tag=7)
    while True:
        if comm.recv(source=1 - comm.rank) == "thanks":  # receive
            break
        comm.send("after you", dest=1 - comm.rank, tag=7)  # send


def serve_others_in_mpi(sfm: Endpoint) -> None:
    """The ranks of the communicator are not those of the world."""
    comm = world(sfm).Split(key=-sfm.rank)
    while comm.rank == 2:
        comm.recv(source=1, tag=1)
        comm.send(None, dest=1)
    while True:
        comm.send(None, dest=2, tag=2 - comm.rank)
        comm.recv(source=2)


def world(sfm: Endpoint) -> Any:
    mpi.use(sfm)
    from mpi4py import MPI

    return MPI.COMM_WORLD


def forward(sfm: Endpoint) -> None:
    """1 and 2 send a message on to each other, and have no way out of that; 0 waits for it."""
    if sfm.rank == 0:
        sfm.send(dest=1, tag="x")
        sfm.recv(tag="x")
    while True:
        sfm.send(dest=3 - sfm.rank, tag=sfm.recv().tag)


def leave_one(sfm: Endpoint) -> None:
    """The token goes round for ever, and nobody receives the other message."""
    if sfm.rank == 0:
        sfm.send(dest=1, tag="work")
        sfm.send(dest=1, tag="token")
    while True:
        sfm.recv(tag="token")
        sfm.send(dest=1 - sfm.rank, tag="token")


def ask_again(sfm: Endpoint) -> None:
    """0 polls for an answer, which has another tag."""
    while sfm.rank == 1:
        sfm.send(dest=sfm.recv().src, tag="anwser")
    while True:
        sfm.send(dest=1, tag="ask")
        with contextlib.suppress(RecvTimeout):
            sfm.recv(0.02, tag="answer")
            break


def suspect(program: Callable[[Endpoint], None], n: int) -> dict[str, Any]:
    with running(program, n) as run:
        monitor, found = DeadlockMonitor(run.folder), None
        while found is None:
            found = monitor.check()
            time.sleep(0.02)
        assert (found["verdict"], found["stuck"], found["but_for"]) == ("running", [], None)
        return found


def test_the_same_for_ever() -> None:
    found = suspect(after_you, 2)
    first = after_you.__code__.co_firstlineno
    here = [f"test_repetition.py, line {first + nth} (after_you)" for nth in (3, 6)]
    assert found["title"] == "Perhaps a livelock: 0 and 1 repeat the same for ever"
    assert found["sentences"][0].startswith(
        f"0 receives from 1 in {here[0]} and sends (say='after you') to 1 in {here[1]}, again and "
        "again, for "
    )
    last = "If no message and no variable ever changes, 0 and 1 go on like this for ever."
    assert found["sentences"][-1] == last


def test_the_same_for_ever_in_mpi() -> None:
    found = suspect(after_you_in_mpi, 2)
    line = re.escape("test_repetition.py, line ") + r"\d+ \(after_you_in_mpi\)"
    assert found["title"] == "Perhaps a livelock: 0 and 1 repeat the same for ever"
    assert re.match(
        rf"0 receives from 1 in {line} and sends (\(tag=7\) )?to 1 in {line}, again and again, ",
        found["sentences"][0],
    )


def test_who_asks_is_told() -> None:
    with running(after_you, 2) as run:
        while not (title := explain(run.folder, patience=0.1)["title"]).startswith("Perhaps"):
            pass
        assert title == "Perhaps a livelock: 0 and 1 repeat the same for ever"
    again = r" It receives from 1 in .* and sends .*to 1 in .*, again and again\.$"
    lies = r" Its message \(tag=2\) lies in 0's inbox, and 0 has received (at least )?\d+ others"
    with running(serve_others_in_mpi, 3) as run:
        left = {again: 0, lies: 2}
        while left:
            texts = [judged["text"] for judged in run.explain()["processes"]]
            left = {text: rank for text, rank in left.items() if not re.search(text, texts[rank])}


def test_few_values_in_turns() -> None:
    assert suspect(change_minds, 2)["title"].startswith("Perhaps a livelock: 0 and 1 ")


@pytest.mark.parametrize(
    ("program", "n", "who", "said"),
    [
        (forward, 3, "1 and 2", "0 waits for recv(tag='x') in "),
        (leave_one, 2, "0 and 1", "lies unreceived in its inbox: (tag='work')."),
        (
            ask_again,
            2,
            "0 and 1",
            "fit: tag is 'anwser', not 'answer'. It sends",
        ),
    ],
)
def test_what_flows_for_ever_is_no_service(
    program: Callable[[Endpoint], None], n: int, who: str, said: str
) -> None:
    found = suspect(program, n)
    assert found["title"] == f"Perhaps a livelock: {who} repeat the same for ever"
    assert any(said in text for text in found["sentences"])


def test_one_starves() -> None:
    found = suspect(serve_others, 3)
    assert found["title"] == "Perhaps 2 starves: 0 receives other messages all the time"
    (starving,) = (text for text in found["sentences"] if text.startswith("2 waits for "))
    assert "Its message (kind='slow') lies in 0's inbox, and 0 has received " in starving


def test_one_starves_in_mpi() -> None:
    found = suspect(serve_others_in_mpi, 3)
    assert found["title"] == "Perhaps 2 starves: 0 receives other messages all the time"
    (starving,) = (text for text in found["sentences"] if text.startswith("2 is in comm.recv("))
    assert "Its message (tag=2) lies in 0's inbox, and 0 has received " in starving


# ---- programs that go on ----


def count(sfm: Endpoint) -> None:
    for _ in range(1 << 60):
        sfm.send(dest=1 - sfm.rank, x=1)
        sfm.recv(src=1 - sfm.rank)


def until_later(sfm: Endpoint) -> None:
    end = time.monotonic() + 1000
    while time.monotonic() < end:
        sfm.send(dest=1 - sfm.rank, x=1)
        sfm.recv(src=1 - sfm.rank)


def serve(sfm: Endpoint) -> None:
    """Neither has a way out of its loop."""
    while True:
        if sfm.rank == 0:
            request = sfm.recv(tag="get")
            sfm.send(dest=request.src, value=42)
        else:
            sfm.send(dest=0, tag="get")
            sfm.recv(src=0)


def finish_early(sfm: Endpoint) -> None:
    """Rank 2 has done its share, and rank 0 comes to its message when all tasks are done."""
    if sfm.rank == 0:
        for _ in range(1 << 60):
            sfm.send(dest=sfm.recv(tag="result").src, task=1)
        sfm.recv(tag="bye")
    for _ in range(1 << 60 if sfm.rank == 1 else 3):
        sfm.send(dest=0, tag="result")
        sfm.recv(src=0)
    sfm.send(dest=0, tag="bye")
    sfm.recv(src=0, tag="end")


def solve(sfm: Endpoint) -> None:
    """Nothing counts the rounds; what is solved changes in place."""
    comm, x = world(sfm), np.ones((400, 100), order="F")
    while x[-1, -1] > 0:
        comm.sendrecv(None, dest=1 - comm.rank, source=1 - comm.rank)
        x[-1, -1] = comm.allreduce(x[-1, -1]) * 0.499999


def by_an_extension(sfm: Endpoint) -> None:
    """Whoever calls MPI past mpi4py may have a loop of its own, whose variables nobody reads."""
    comm, call = world(sfm), ctypes.CDLL("libmpi.so.12").MPI_Sendrecv
    from mpi4py import MPI

    handle, peer = MPI._handleof(comm), 1 - comm.rank
    word = ctypes.c_int(), 1, MPI._handleof(MPI.INT)
    (nobody, *ends) = ctypes.byref(word[0]), peer, 0
    while not call(nobody, *word[1:], *ends, nobody, *word[1:], *ends, handle, None):
        pass


def finish_early_in_mpi(sfm: Endpoint) -> None:
    comm = world(sfm)
    if comm.rank == 0:
        for task in itertools.count():
            comm.send(task, dest=comm.recv(tag=1))
            if task < 0:
                break
        comm.recv(tag=3)
    while comm.rank == 1:
        comm.send(1, dest=0, tag=1)
        if comm.recv(source=0) is None:
            break
    comm.send(None, dest=0, tag=3)
    comm.recv(source=0, tag=4)


def compute_and_test(sfm: Endpoint) -> None:
    comm, x = world(sfm), np.zeros(9)
    request = comm.irecv(source=1) if comm.rank == 0 else None
    while request is None or not request.test()[0]:
        x += 1


@pytest.mark.parametrize(
    ("program", "n"),
    [
        (count, 2),
        (until_later, 2),
        (serve, 2),
        (finish_early, 3),
        (solve, 2),
        (by_an_extension, 2),
        (finish_early_in_mpi, 3),
        (compute_and_test, 2),
    ],
)
def test_a_program_that_goes_on_is_not_suspected(
    program: Callable[[Endpoint], None], n: int
) -> None:
    with running(program, n) as run:
        monitor, end = DeadlockMonitor(run.folder), time.monotonic() + 4 * LASTING
        while time.monotonic() < end:
            assert monitor.check() is None
            time.sleep(0.02)
