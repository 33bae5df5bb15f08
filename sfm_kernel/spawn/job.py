"""Runs a function in several processes of a new world, without Jupyter."""

from __future__ import annotations

import contextlib
import os
import pickle
import secrets
import selectors
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from sfm_kernel.directory import remove_world
from sfm_kernel.endpoint.seen import Account, cell_of, disagreement, is_users_file, with_cells
from sfm_kernel.errors import ProcessFailed, RecvTimeout, limits_named
from sfm_kernel.spawn import by_value, process
from sfm_kernel.spawn.process import Process
from sfm_kernel.spawn.report import END, GO, JOINED, Result, died, frames
from sfm_kernel.watching import Watching

if TYPE_CHECKING:
    from sfm_kernel.endpoint import Endpoint

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
    """Call ``function(sfm, *args, **kwargs)`` in ``n`` processes; returns a list of their results.

    Each process has its own endpoint ``sfm`` with its rank, and ``sfm.size == n``. The function may
    be defined in a notebook or a script: it is sent by value.

    Blocks: until all processes have returned, or one has failed. Stop (KeyboardInterrupt) stops
        them all. If they wait for each other for ever, stderr explains why after some seconds.
    Args:
        function: the function to call. Its results must be picklable.
        n: number of processes, at least 1. Each is a fresh Python on this machine.
        args, kwargs: further arguments of the function.
        names: names of the ranks; without them a process's name is its rank.
        timeout: seconds after which all processes are stopped; the error explains what they did.
        detect: end calls that wait for each other for ever, with DeadlockDetected.
        record: path of an HTML file to write, also after a failure: the timeline, the explanation
            of a deadlock, and the code. See ``sfm_kernel.observe.record``.
    Raises:
        ProcessFailed: a process raised (its traceback is in the message) or died.
        RecvTimeout: not all processes have returned within ``timeout`` seconds.
        CollectiveMismatch: all have returned, but members of a group have made different calls.
        SystemLimit: this process may not have as many files open as it needs.
        In every case no process remains.
    Example:
        >>> sfm_kernel.run(lambda sfm: sfm.rank * 10, n=2)
        [0, 10]
    """
    if type(n) is not int or n < 1:
        raise ValueError(f"n is a number of processes, 1 or more, not {n!r}")
    if names is not None and len(names) != n:
        raise ValueError(f"{n} processes need {n} names, not {len(names)}: {list(names)}")
    job = Job("run", n, function, args, kwargs, names)
    path = os.fspath(record) if record else ""
    title = f"{_program(function)} on {n} {'process' if n == 1 else 'processes'}"
    watching = Watching(job.world, job.pids, _say, end=detect, hint=_HINT, record=path, title=title)
    with watching, job:
        try:
            results = job.results(timeout, watching)
        except ProcessFailed as failed:  # the frames of this package say nothing about it
            raise failed.with_traceback(None) from None
        finally:
            watching.record()
        job.end()
        return results


_HINT = "The processes still run. Stop ends them; run(..., detect=True) ends such calls by itself."


def _program(function: Callable[..., Any]) -> str:
    """The name of the script that runs; in a notebook, of the function."""
    script: str | None = getattr(sys.modules["__main__"], "__file__", None)
    return os.path.basename(script) if script else getattr(function, "__name__", "a function")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def fresh(orders: int, report: int) -> Process:
    """Start a worker as a fresh Python that reads orders from one pipe and reports to another."""
    words = process.python("sfm_kernel.spawn.worker", str(report))
    return process.start(words, stdin=orders, pass_fds=(report,))


class Job:
    """The processes of one run, in a new world, and the pipes to them.

    It is a context manager: the processes live within the block, and none remains afterwards.

    Args:
        kind: the first word of the world's name.
        size: number of processes. Each calls ``function(sfm, *args, **kwargs)``.
        names: names of the ranks; None: their numbers.
    """

    _most_report: int | None = None
    """The largest report of a process, in bytes."""

    def __init__(
        self,
        kind: str,
        size: int,
        function: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] = MappingProxyType({}),
        names: Sequence[str] | None = None,
    ) -> None:
        self.world = f"{kind}-{os.getpid()}-{secrets.token_hex(4)}"
        self._size, self._names = size, names
        self._pickled: bytes = by_value.dumps((function, args, dict(kwargs)))
        self._processes: list[Process] = []
        self._orders: list[BinaryIO] = []
        self._reports: list[int] = []
        self._accounts: list[Account] = []

    def __enter__(self) -> Self:
        try:
            with limits_named():
                for rank in range(self._size):
                    self._begin(rank)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self, orders: int, report: int) -> Process:
        """Start the next worker. A fork must close ``_orders``: otherwise the pipes would stay open
        when this process ends, and the other workers would not notice."""
        return fresh(orders, report)

    def _work(self, rank: int) -> bytes:
        """The pickled function and arguments of a rank."""
        return self._pickled

    def _begin(self, rank: int) -> None:
        read, orders = os.pipe()
        self._orders.append(os.fdopen(orders, "wb"))
        report, reports = os.pipe()
        self._reports.append(report)
        try:
            self._processes.append(self._start(read, reports))
        finally:
            os.close(read)
            os.close(reports)
        name = self._names[rank] if self._names else None
        work = self.world, rank, self._size, name, sys.path, self._work(rank)
        with contextlib.suppress(BrokenPipeError):
            pickle.dump(work, self._orders[rank])
            self._orders[rank].flush()

    def pids(self) -> list[int]:
        """The ids of the started processes, by rank."""
        return [process.pid for process in self._processes]

    def gather(self, guest: Endpoint, timeout: float = 120.0) -> None:
        """Let the processes begin; returns when all of them are in the world of ``guest``.

        Args:
            timeout: seconds.
        Raises:
            ProcessFailed: a process has ended instead.
            RecvTimeout: not all have joined in time.
        """
        self.order(GO)
        deadline = time.monotonic() + timeout
        while True:
            try:
                return guest.wait_for(*range(self._size), timeout=0.2)
            except RecvTimeout:
                if any(process.poll() is not None for process in self._processes):
                    self.results(GRACE)
                if time.monotonic() > deadline:
                    raise

    def results(self, timeout: float | None, watching: Watching | None = None) -> list[Any]:
        """The function's results, by rank. Raises as ``run`` does."""
        deadline = None if timeout is None else time.monotonic() + timeout
        results: dict[int, Any] = {}
        reports = [bytearray() for _ in range(self._size)]
        with selectors.DefaultSelector() as selector:
            for rank, read in enumerate(self._reports):
                selector.register(read, selectors.EVENT_READ, rank)
            while len(results) < self._size:
                rest = None if deadline is None else deadline - time.monotonic()
                if rest is not None and rest <= 0:
                    missing = [rank for rank in range(self._size) if rank not in results]
                    late = f"ranks {missing} had not returned within {timeout} s"
                    if starting := [rank for rank in missing if not reports[rank]]:
                        late += f", and ranks {starting} had not joined yet"
                    # Before all have joined none runs the program: there is nothing to explain.
                    why = watching.why() if watching is not None and not starting else ""
                    raise RecvTimeout(f"{late}.\n{why}" if why else late)
                if watching is not None:
                    watching.check()
                    pause = max(0.0, watching.due - time.monotonic())
                    rest = pause if rest is None else min(rest, pause)
                ended: dict[int, Result | None] = {}
                for event, _ in selector.select(rest):
                    report = reports[event.data]
                    data = os.read(event.fd, 1 << 20)
                    is_first = bool(data and not report)
                    report += data
                    if self._most_report is not None and len(report) > self._most_report:
                        most = f"{self._most_report >> 20} MB"
                        raise ProcessFailed(event.data, f"returned more than {most}")
                    if is_first and all(reports):
                        self.order(GO)
                    if not data:
                        selector.unregister(event.fd)
                        ended[event.data] = Result.received(report.removeprefix(JOINED))
                # The first failure may be the cause of the others. A death comes before them all:
                # other processes notice it only afterwards.
                for rank, result in sorted(
                    ended.items(), key=lambda item: item[1].failed_at if item[1] else 0.0
                ):
                    results[rank] = self._result(rank, result, reports[rank])
        return [results[rank] for rank in range(self._size)]

    def end(self) -> None:
        """Let the processes leave the world, after all have returned. Raises CollectiveMismatch."""
        self.order(END)
        process.wait(self._processes, GRACE)
        if mismatch := disagreement(self._accounts):
            raise mismatch

    def order(self, word: bytes) -> None:
        """Send all processes an order: ``GO`` or ``END``."""
        for orders in self._orders:
            with contextlib.suppress(BrokenPipeError):
                orders.write(word)
                orders.flush()

    def _result(self, rank: int, result: Result | None, report: bytearray) -> Any:
        if result is None:
            process.wait([self._processes[rank]])
            code = self._processes[rank].returncode or 0
            place = _place(report) if code < 0 else " before it returned"
            raise ProcessFailed(rank, died(code) + place)
        if not result.good:
            why = result.why.partition("\n")[0] if result.trace else result.why
            raise ProcessFailed(rank, f"raised {why}", with_cells(result.trace))
        if result.account is not None:
            self._accounts.append(result.account)
        return self._loaded(result.value)

    def _loaded(self, value: bytes) -> Any:
        """The function's value; these processes are trusted."""
        return pickle.loads(value)

    def __exit__(self, *_: object) -> None:
        """End the processes that still run, within about ``GRACE`` seconds; remove the world."""
        process.end(self._processes, GRACE)
        while self._orders:
            with contextlib.suppress(BrokenPipeError):
                self._orders.pop().close()
        while self._reports:
            os.close(self._reports.pop())
        with contextlib.suppress(OSError):
            remove_world(self.world)


def _place(report: bytes | bytearray) -> str:
    """The user's innermost line when a signal came: " in cell 6, line 3"; "" if unknown."""
    for file, line in frames(report):
        if is_users_file(file):
            number, _, before = cell_of(file) or (None, None, 0)
            name = os.path.basename(file) if number is None else f"cell {number}"
            return f" in {name}, line {line + before}"
    return ""
