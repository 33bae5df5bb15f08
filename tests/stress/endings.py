"""Processes that end while threads of theirs are in a call; run as a module.

``python -m tests.stress.endings WORLD ROUNDS``: in each round, for each call and two ways to end, a
child joins a world, blocks in the call and ends. A child is a fork of this process, which has
imported everything, so that the end of its interpreter costs milliseconds. Every error is printed.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import sfm_kernel
from sfm_kernel import Endpoint
from sfm_kernel.collectives import Group

Call = Callable[[Endpoint], Any]

REGISTERED: dict[str, Call] = {}
"""Functions by name, each of which blocks for ever in both endpoints, A and B, of a process."""


def call(function: Call) -> Call:
    """Register a function."""
    REGISTERED[function.__name__] = function
    return function


def other(sfm: Endpoint) -> str:
    return "B" if sfm.name == "A" else "A"


@call
def recv(sfm: Endpoint) -> None:
    sfm.recv(20.0)


@call
def recv_after_a_message(sfm: Endpoint) -> None:
    sfm.send(dest=other(sfm), n=1)
    sfm.recv(n=1)
    sfm.recv()  # over TCP this call itself waits at the sockets


@call
def recv_with_a_slow_predicate(sfm: Endpoint) -> None:
    for n in range(50):
        sfm.send(dest=other(sfm), n=n)
    sfm.recv(n=lambda n: time.sleep(0.002))


@call
def recv_again_and_again(sfm: Endpoint) -> None:
    while True:
        sfm.send(dest=other(sfm), numbers=[1, 2, 3])
        assert sfm.recv().numbers == [1, 2, 3]


@call
def send_into_a_full_inbox(sfm: Endpoint) -> None:
    sfm.buffering = 1 << 20
    while True:
        sfm.send(dest=other(sfm), x=bytes(100_000))


@call
def send_unbuffered(sfm: Endpoint) -> None:
    sfm.buffering = 0
    sfm.send(dest=other(sfm), n=1)


@call
def callback(sfm: Endpoint) -> None:
    sfm.regcb(lambda _: time.sleep(0.01))
    for n in range(5):
        sfm.send(dest=other(sfm), n=n)
    threading.Event().wait()


@call
def callback_that_sends(sfm: Endpoint) -> None:
    def pass_on(_: Any) -> None:
        sfm.send(dest=other(sfm), n=1)

    sfm.buffering = 0
    sfm.regcb(pass_on, n=0)
    sfm.send(dest=other(sfm), n=0)


@call
def meeting(sfm: Endpoint) -> None:
    Group(sfm, ["A", "B"], name=f"only {sfm.name}")


@call
def barrier(sfm: Endpoint) -> None:
    group = Group(sfm, ["A", "B"])
    if sfm.name == "A":
        group.barrier()


@call
def allreduce(sfm: Endpoint) -> None:
    group = Group(sfm, ["A", "B"])
    if sfm.name == "A":
        group.allreduce({"pickled": 1}, lambda a, b: a)


@call
def wait_for(sfm: Endpoint) -> None:
    sfm.wait_for("nobody")


def block(call: Call, sfm: Endpoint, entered: threading.Event) -> None:
    entered.set()
    call(sfm)


# A program may fork while it has threads; the warning of Python 3.12 and later is not our output.
warnings.filterwarnings("ignore", ".*multi-threaded", DeprecationWarning)


def child(world: str, call: Call, way: str, rng: random.Random) -> None:
    ends = [sfm_kernel.join(world, "A"), sfm_kernel.join(world, "B")]
    for sfm in ends:
        entered = threading.Event()
        threading.Thread(target=block, args=(call, sfm, entered), daemon=True).start()
        entered.wait()
    time.sleep(rng.choice([0, 0.001, 0.02, rng.uniform(0, 0.15)]))
    if way == "fork":
        if (grandchild := os.fork()) == 0:
            raise SystemExit(5)
        if os.waitpid(grandchild, 0)[1] != 5 << 8:
            raise SystemExit(6)


WAYS = {"end": 0, "exit": 3, "raise": 1, "fork": 0}
"""How a process ends, and its exit status then."""

AT_ONCE = 4
"""Children that run at a time."""


def say(failed: threading.ExceptHookArgs) -> None:
    """Print the name first: the end of the interpreter cuts off the long output of a thread."""
    os.write(2, f"{failed.exc_type.__name__}: {failed.exc_value}\n".encode())
    os.write(2, "".join(traceback.format_tb(failed.exc_traceback)).encode())


def started(world: str, name: str, way: str, seed: float) -> tuple[int, int] | None:
    """The pid of a child and a file with what it writes to stderr; None in the child."""
    words = os.memfd_create("stderr")
    if pid := os.fork():
        return pid, words
    os.dup2(words, 2)
    signal.alarm(60)
    threading.excepthook = say
    child(world, REGISTERED[name], way, random.Random(seed))
    if way == "exit":
        sys.exit(3)
    if way == "raise":
        sys.excepthook = lambda *_: None
        raise ValueError("on purpose")
    return None


def main(world: str, rounds: int) -> None:
    rng = random.Random(world)
    calls = list(REGISTERED) * rounds
    left = [(name, way) for name in calls for way in rng.sample(list(WAYS), 2)]
    running: dict[int, tuple[str, str, int]] = {}
    while left or running:
        while left and len(running) < AT_ONCE:
            name, way = left.pop()
            begun = started(f"{world}-{len(left)}", name, way, rng.random())
            if begun is None:
                return
            running[begun[0]] = name, way, begun[1]
        pid, status = os.wait()
        name, way, words = running.pop(pid)
        status = os.waitstatus_to_exitcode(status)
        said = os.pread(words, 10_000, 0).decode()
        os.close(words)
        if status != WAYS[way] or said:
            print(f"{name}, {way}: exit status {status}\n{said}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
