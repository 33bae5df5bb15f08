"""Running a function in several processes of a fresh world, without Jupyter."""

from __future__ import annotations

import contextlib
import os
import pickle
import secrets
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import cloudpickle

from sfm_kernel.endpoint.seen import Account, disagreement
from sfm_kernel.errors import ProcessFailed, RecvTimeout
from sfm_kernel.watching import Watching

JOINED, GO, END = b"J", b"G", b"E"
"""The words on the pipes; see ``launched``."""

GRACE = 2.0
"""Seconds between asking a process to stop and killing it."""


def run(
    function: Callable[..., Any],
    n: int = 4,
    *args: Any,
    names: Sequence[str] | None = None,
    timeout: float | None = None,
    detect: bool = False,
    record: str | os.PathLike[str] | None = None,
    **kwargs: Any,
) -> list[Any]:
    """Call ``function(sfm, *args, **kwargs)`` in ``n`` processes; their results, by rank.

    Each process has its own endpoint ``sfm`` with its rank, and ``sfm.size == n``. The function
    may come from a notebook or a script: it is sent by value.

    Blocks: until all have returned, or one has failed. Stop (KeyboardInterrupt) stops them all.
    When they wait for each other for ever, stderr says why, once, after some seconds.
    Args:
        n: processes, at least 1. Each is a fresh Python on this machine.
        names: names of the ranks; without them a process's name is its rank.
        timeout: seconds after which all are stopped.
        detect: calls that wait for each other for ever end with DeadlockDetected.
        record: an HTML file, into which is written what happened: the timeline, what was said of a
            deadlock, and the code; also of what has failed. See ``sfm_kernel.observe.record``.
    Raises:
        ProcessFailed: a process raised (its traceback is in the message) or died.
        RecvTimeout: not all had returned within ``timeout`` seconds.
        CollectiveMismatch: all have returned, and have made calls of a group that do not fit
            together.
        No process is left in any case.
    Example:
        >>> sfm_kernel.run(lambda sfm: sfm.rank * 10, n=2)
        [0, 10]
    """
    if type(n) is not int or n < 1:
        raise ValueError(f"n is a number of processes, 1 or more, not {n!r}")
    if names is not None and len(names) != n:
        raise ValueError(f"{n} processes need {n} names, not {len(names)}: {list(names)}")
    world = f"run-{os.getpid()}-{secrets.token_hex(4)}"
    work = cloudpickle.dumps((function, args, kwargs))
    crew = Crew()
    path = os.fspath(record) if record else ""
    script = getattr(getattr(function, "__code__", None), "co_filename", "") if record else ""
    watching = Watching(world, crew.pids, _say, end=detect, hint=_HINT, record=path, script=script)
    try:
        for rank in range(n):
            crew.start(world, rank, n, names[rank] if names else None, work)
        try:
            results = crew.results(n, timeout, watching)
        finally:
            watching.record()
        crew.end()
        return results
    finally:
        crew.stop()
        remove(world)


_HINT = "The processes go on waiting. Stop ends them; so does run(..., detect=True) by itself."


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def remove(world: str) -> None:
    """Remove what the world has left in shared memory."""
    from sfm_kernel.directory import remove_world

    with contextlib.suppress(OSError):
        remove_world(world)


class Crew:
    """The processes of one run, and the pipes on which they report."""

    def __init__(self) -> None:
        self._processes: list[Any] = []  # each is what subprocess.Popen is
        self._reports: list[int] = []
        self._accounts: list[Account] = []

    def start(self, world: str, rank: int, n: int, name: str | None, work: bytes) -> None:
        read, write = os.pipe()
        try:
            process = self._spawn(write)
        finally:
            os.close(write)
        self._processes.append(process)
        self._reports.append(read)
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            pickle.dump((world, rank, n, name, sys.path, work), process.stdin)
            process.stdin.flush()

    def _spawn(self, report: int) -> Any:
        """Start a process; what it says comes out of the pipe ``report``."""
        return subprocess.Popen(
            # -P: not where a file could take the place of one of Python's own modules; it gets
            # this process's sys.path with its work.
            [sys.executable, "-P", "-m", "sfm_kernel.launched", str(report)],
            stdin=subprocess.PIPE,
            pass_fds=(report,),
            start_new_session=True,  # Ctrl-C is for this process, which stops the others
        )

    def pids(self) -> list[int]:
        """The processes that were started."""
        return [process.pid for process in self._processes]

    def results(self, n: int, timeout: float | None, watching: Watching) -> list[Any]:
        deadline = None if timeout is None else time.monotonic() + timeout
        results: dict[int, Any] = {}
        reports = {rank: bytearray() for rank in range(n)}
        joined = 0
        with selectors.DefaultSelector() as selector:
            for rank, read in enumerate(self._reports):
                selector.register(read, selectors.EVENT_READ, rank)
            while len(results) < n:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    missing = [rank for rank in range(n) if rank not in results]
                    raise RecvTimeout(f"ranks {missing} had not returned within {timeout} s")
                watching.check()
                pause = max(0.0, watching.due - time.monotonic())
                for event, _ in selector.select(pause if left is None else min(left, pause)):
                    report = reports[event.data]
                    part = os.read(event.fd, 1 << 20)
                    if part and not report:
                        joined += 1
                        if joined == n:
                            self.say(GO)
                    report += part
                    if not part:
                        selector.unregister(event.fd)
                        results[event.data] = self._result(event.data, bytes(report))
        return [results[rank] for rank in range(n)]

    def end(self) -> None:
        """All have returned: let them leave the world.

        Raises CollectiveMismatch.
        """
        self.say(END)
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
        if mismatch := disagreement(self._accounts):
            raise mismatch

    def ended(self) -> bool:
        """Whether one of them has ended."""
        return any(process.poll() is not None for process in self._processes)

    def say(self, word: bytes) -> None:
        """Tell all of them: ``GO`` or ``END``."""
        for process in self._processes:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(word)
                process.stdin.flush()

    def _result(self, rank: int, report: bytes) -> Any:
        text = report.removeprefix(JOINED)
        if not text:
            code = self._processes[rank].wait()
            if code < 0:
                raise ProcessFailed(rank, f"was killed by {signal.Signals(-code).name}")
            raise ProcessFailed(rank, f"ended with exit status {code} before it returned")
        good, value, trace, account = pickle.loads(text)
        if good:
            self._accounts.append(account)
            return pickle.loads(value)
        raise ProcessFailed(rank, f"raised {value}", trace)

    def stop(self) -> None:
        """End what still runs: ask, then kill. Takes at most ``GRACE`` seconds in all."""
        for process in self._processes:
            if process.poll() is None:
                process.terminate()
        deadline = time.monotonic() + GRACE
        for process in self._processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.close()
        while self._reports:
            os.close(self._reports.pop())
