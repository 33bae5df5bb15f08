"""Correct programs in which for a while no process seems able to go on."""

from __future__ import annotations

import _thread
import contextlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from IPython.lib.backgroundjobs import BackgroundJobFunc
from tornado.ioloop import IOLoop

from sfm_kernel import Endpoint, Group, Message, PeerLost, mpi

LONG = 0.9
"""Seconds: far more than a wait has to last before it is judged."""


def a_callback_takes_its_time(sfm: Endpoint) -> None:
    """Its process waits for the process that has asked."""
    if sfm.name == "A":
        sfm.recv(src="B", ready=True)
        sfm.send(dest="B", tag="question")
        sfm.recv(src="B", tag="answer")
        sfm.send(dest="B", tag="end")
    elif sfm.name == "B":
        with sfm.regcb(lambda m: _answer(sfm, m), tag="question"):
            sfm.send(dest="A", ready=True)
            sfm.recv(src="A", tag="end")


def a_callback_goes_on_when_its_program_has_ended(sfm: Endpoint) -> None:
    if sfm.name == "A":
        sfm.recv(src="B", ready=True)
        sfm.send(dest="B", tag="question")
        sfm.recv(src="B", tag="answer")
    elif sfm.name == "B":
        sfm.regcb(lambda m: _answer(sfm, m), tag="question")
        sfm.send(dest="A", ready=True)


def _answer(sfm: Endpoint, question: Message) -> None:
    time.sleep(LONG)
    sfm.send(dest=question.src, tag="answer")


def a_predicate_takes_its_time(sfm: Endpoint) -> None:
    if sfm.name == "A":
        sfm.recv(n=_is_two)
        sfm.send(dest="B", tag="end")
    elif sfm.name == "B":
        for n in range(3):
            sfm.send(dest="A", n=n)
        sfm.recv(src="A")


def _is_two(n: int) -> bool:
    time.sleep(LONG / 2)
    return n == 2


def a_thread_sends_later(sfm: Endpoint) -> None:
    """Its process waits for the reply, or has ended."""
    if sfm.name == "A":
        threading.Timer(LONG, sfm.send, (), {"dest": "B"}).start()
        sfm.recv(src="B")
        threading.Timer(LONG, sfm.send, (), {"dest": "B"}).start()
    elif sfm.name == "B":
        sfm.recv(src="A")
        sfm.send(dest="A")
        sfm.recv(src="A")


def a_timer_sends(sfm: Endpoint) -> None:
    if sfm.name == "A":
        signal.signal(signal.SIGALRM, lambda *_: sfm.send(dest="B"))
        signal.setitimer(signal.ITIMER_REAL, LONG)
        sfm.recv(src="B")
    elif sfm.name == "B":
        sfm.recv(src="A")
        sfm.send(dest="A")


def a_bystander_sends(sfm: Endpoint) -> None:
    """One bystander at a time, so that nothing else of its process could go on."""
    for begin in BYSTANDERS:
        if sfm.name == "A":
            end = begin(lambda: sfm.send(dest="B"))
            sfm.recv(src="B")
            end()
        elif sfm.name == "B":
            sfm.recv(src="A")
            sfm.send(dest="A")


Send = Callable[[], object]
"""The action of a bystander."""


def _handler_of_a_signal(send: Send) -> Send:
    """Send in a signal handler; a process outside the world sends the signal."""
    former = signal.signal(signal.SIGUSR1, lambda *_: send())
    kill = f"import os, time; time.sleep({LONG}); os.kill(os.getppid(), {int(signal.SIGUSR1)})"
    child = subprocess.Popen([sys.executable, "-c", kill])
    return lambda: (child.wait(), signal.signal(signal.SIGUSR1, former))


def _handler_of_the_end_of_a_child(send: Send) -> Send:
    former = signal.signal(signal.SIGCHLD, lambda *_: send())
    child = subprocess.Popen(["sleep", str(LONG)])
    return lambda: (child.wait(), signal.signal(signal.SIGCHLD, former))


def _low_level_thread(send: Send) -> Send:
    over = threading.Event()
    _thread.start_new_thread(lambda: (time.sleep(LONG), send(), over.set()), ())
    return over.wait


def _loop_of_tornado(send: Send) -> Send:
    """Act in a thread that the user has started."""
    loop = IOLoop(make_current=False)
    loop.call_later(LONG, lambda: (send(), loop.stop()))
    thread = threading.Thread(target=loop.start)
    thread.start()
    return lambda: (thread.join(), loop.close())


def _job_of_ipython(send: Send) -> Send:
    job = BackgroundJobFunc.__new__(BackgroundJobFunc)  # in some versions the constructor fails
    threading.Thread.__init__(job)
    job.func, job.args, job.kwargs = lambda: (time.sleep(LONG), send()), (), {}
    job.start()
    return job.join


BYSTANDERS: list[Callable[[Send], Send]] = [
    _handler_of_a_signal,
    _handler_of_the_end_of_a_child,
    _low_level_thread,
    _loop_of_tornado,
    _job_of_ipython,
]


def a_function_is_called_while_it_waits(sfm: Endpoint) -> None:
    """The function ends a wait for a group that is never made, and later a barrier."""
    if sfm.name == "A":
        with contextlib.suppress(TimeoutError):
            Group(sfm, on_wait=_after(LONG))
        sfm.send(dest="B", tag="make it")
        group = Group(sfm, name="later")
        group.on_wait = _after(LONG)
        with contextlib.suppress(TimeoutError):
            group.barrier()
        sfm.send(dest="B", tag="end")
    elif sfm.name == "B":
        sfm.recv(src="A", tag="make it")
        Group(sfm, name="later")
        sfm.recv(src="A", tag="end")


def _after(seconds: float) -> Callable[[], None]:
    end = time.monotonic() + seconds

    def give_up() -> None:
        if time.monotonic() > end:
            raise TimeoutError

    return give_up


def a_receive_ends_by_itself(sfm: Endpoint) -> None:
    if sfm.name == "A":
        try:
            sfm.recv(LONG, src="B", tag="never")
        except TimeoutError:
            sfm.send(dest="B")
    elif sfm.name == "B":
        sfm.recv(src="A")


def one_ends_right_after_a_barrier(sfm: Endpoint) -> None:
    """Members still in the barrier may not have noticed that all have arrived."""
    group = Group(sfm)
    for _ in range(3):
        if sfm.name == "A":
            time.sleep(LONG / 2)
        group.barrier()


def a_source_is_no_name(sfm: Endpoint) -> None:
    """The source of a receive is no name, but is equal to some."""
    if sfm.name == "A":
        sfm.recv(src=_OneOf("B", "C"))
    elif sfm.name == "B":
        time.sleep(LONG)
        sfm.send(dest="A")


class _OneOf:
    def __init__(self, *names: str) -> None:
        self._names = names

    def __eq__(self, name: object) -> bool:
        return name in self._names

    __hash__ = None  # type: ignore[assignment]


WORKER = """
import sys, time, sfm_kernel
sfm = sfm_kernel.join(sys.argv[1], "worker", guest=True)
sfm.send(dest="A", tag="ready")
time.sleep(60)
"""


def one_waits_for_somebody_who_dies(sfm: Endpoint) -> None:
    """Its receive ends with PeerLost."""
    if sfm.name == "A":
        sfm.wait_for("worker")
        sfm.recv(tag="ready")
        try:
            sfm.recv(src="worker", tag="result")
        except PeerLost:
            return
        raise AssertionError("the receive did not end with PeerLost")
    if sfm.name == "B":
        with subprocess.Popen([sys.executable, "-c", WORKER, sfm.world]) as worker:
            sfm.wait_for("worker")
            time.sleep(LONG)
            worker.kill()


ALL = [program for name, program in list(globals().items()) if name.startswith(("a_", "one_"))]


def meet_and_go_on(sfm: Endpoint) -> None:
    """A program for a test that stops A while it is in the barrier."""
    group = Group(sfm)
    if sfm.name == "A":
        group.barrier()
        sfm.send(dest="B")
    else:
        time.sleep(LONG)
        group.barrier()
        sfm.recv(src="A")


def meet_at_a_tree_and_go_on(sfm: Endpoint) -> None:
    _go_on_in_mpi(sfm, lambda comm: comm.Barrier())


def post_and_go_on(sfm: Endpoint) -> None:
    _go_on_in_mpi(sfm, lambda comm: comm.Bcast(np.zeros(1), root=1))


def _go_on_in_mpi(sfm: Endpoint, meet: Callable[[Any], object]) -> None:
    """``meet_and_go_on`` with a call of MPI, whose data go through memory that both share."""
    mpi.use(sfm)
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    for _ in range(5):  # then they have agreed on that memory
        comm.Barrier()
    if sfm.name == "A":
        meet(comm)
        comm.send(None, dest=1)
    else:
        time.sleep(LONG)
        meet(comm)
        comm.recv(source=0)


def ask_around(sfm: Endpoint) -> None:
    """A program for a test that stops B while it waits for A; C's question is under way to B."""
    if sfm.name == "A":
        sfm.recv(src="C")
        sfm.send(dest="B")
    elif sfm.name == "B":
        with sfm.regcb(lambda m: sfm.send(dest=m.src, tag="answer"), tag="question"):
            sfm.send(dest="C", ready=True)
            sfm.recv(src="A")
    else:
        sfm.recv(src="B", ready=True)
        time.sleep(LONG)
        sfm.send(dest="B", tag="question")
        sfm.recv(src="B", tag="answer")
        sfm.send(dest="A")
