"""A process that tries attempts, apart from the notebook and its engines. Run as a module.

It reads requests from stdin and writes answers to stdout, both JSON, one a line; it ends when
stdin does. Both are a socket, which no other process of the user can open in ``/proc``. The
processes of trials are forks of a server, so that modules are imported once.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from sfm_kernel.lessons.examine import c, words
from sfm_kernel.lessons.examine.cell import Attempt, Unready, ready
from sfm_kernel.lessons.examine.check import Check, CheckFailed, checks, find, of_file
from sfm_kernel.lessons.examine.trial import server, trial
from sfm_kernel.spawn import lifeline, process
from sfm_kernel.spawn.forkserver import ForkServer
from sfm_kernel.spawn.report import answers

_GRACE = 3.0
"""Seconds between asking an examiner to end its processes and killing it."""

MOST_SEED = 10**12
"""Seeds above those of ``Check.seeds`` cannot be guessed within the time of a trial."""


class Verdict(NamedTuple):
    """Whether an attempt has passed, and the report to the student.

    ``begun`` is False if the student has not begun, ``hangs`` is True if a trial has not ended.
    """

    passed: bool
    text: str
    begun: bool = True
    hangs: bool = False


class Request(NamedTuple):
    """An attempt to try.

    Attributes:
        name: the name of the check.
        attempt: the cell.
        file: the teacher's file with the check; "" for a check of the notebooks.
        size, seed: the size and seed of the only trial to run; 0: all trials.
        path: the notebook's ``sys.path``.
    """

    name: str
    attempt: Attempt
    file: str = ""
    size: int = 0
    seed: int = 0
    path: Sequence[str] = ()


Progress = Callable[[int, int, bool], object]
"""Is told after each trial how many there were, how many there are, and whether it has failed."""


def judged(request: Request, forks: ForkServer, progress: Progress) -> Verdict:
    """Try an attempt with several numbers of processes, until one trial fails.

    Raises:
        CheckFailed: there is no such check.
    """
    check = find(request.name, of_file(request.file) if request.file else checks())
    try:
        attempt = request.attempt._replace(text=ready(request.attempt, check.name))
        return _tried(check, attempt, request, forks, progress)
    except Unready as problem:
        mark = "✗ " if problem.begun else ""
        return Verdict(False, f"{mark}{check.name}: {problem}", problem.begun)


def _tried(
    check: Check, attempt: Attempt, request: Request, forks: ForkServer, progress: Progress
) -> Verdict:
    # The trial with one process comes last: a fault that only it shows says little about messages.
    sizes = (
        [request.size] if request.size else sorted(check.sizes, key=lambda size: (size == 1, size))
    )
    trials = [(size, seed) for size in sizes for seed in _seeds(check, request, size, max(sizes))]
    for number, (size, seed) in enumerate(trials):
        if check.language == "c":
            found = c.trial(check, attempt, size, seed)
        else:
            found = trial(check, attempt, size, seed, forks)
        try:
            fault = words.verdict(check, found)
        except Exception as problem:  # noqa: BLE001 - the teacher's functions, a student's values
            fault = f"the result cannot be compared: {type(problem).__name__}: {problem}"
        progress(number + 1, len(trials), bool(fault))
        if fault:
            right = sorted(sizes[: sizes.index(size)])
            hangs = found.failed is None and bool(found.hangs or found.slow)
            return Verdict(False, words.wrong(check, found, right, fault), hangs=hangs)
    return Verdict(True, words.right(check, sorted(sizes)))


def _seeds(check: Check, request: Request, size: int, largest: int) -> list[int]:
    if request.seed:
        return [request.seed]
    # Who has the check's source can compute all arguments of the other trials.
    secret = [1 + secrets.randbelow(MOST_SEED)] if size == largest else []
    return [*range(1, check.seeds + 1), *secret]


class Examiner:
    """An examiner process, for the process that asks it. A context manager."""

    def __init__(self) -> None:
        environment = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **os.environ}
        command = process.python("sfm_kernel.lessons.examine.examiner")
        ours, theirs = socket.socketpair()
        with theirs, ours:
            self._process = process.start(command, env=environment, stdin=theirs, stdout=theirs)
            self._requests, self._answers = ours.makefile("w"), ours.makefile("r")

    def judged(self, request: Request, progress: Progress | None = None) -> Verdict:
        """Like the function ``judged``, in the examiner.

        After Stop (KeyboardInterrupt) the examiner cannot be used any more.
        """
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            print(json.dumps(request), file=self._requests, flush=True)
        while line := self._answer():
            answer = json.loads(line)
            if "error" in answer:
                raise CheckFailed(answer["error"])
            if "trials" not in answer:
                return Verdict(**answer)
            if progress is not None:
                progress(*answer["trials"])
        raise CheckFailed(f"the check ended with exit status {self._process.wait()}: try again")

    def _answer(self) -> str:
        with contextlib.suppress(ConnectionResetError):
            return self._answers.readline()
        return ""

    def __enter__(self) -> Examiner:
        return self

    def __exit__(self, *_: object) -> None:
        """End the process, and all processes that it has started."""
        process.end([self._process], _GRACE)
        for file in (self._requests, self._answers):
            with contextlib.suppress(OSError):
                file.close()


def _stop(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def main() -> None:
    """Answer requests until there are no more."""
    signal.signal(signal.SIGTERM, _stop)
    lifeline.keep_to_itself()
    pipe = answers()

    def progress(*trials: object) -> None:
        print(json.dumps({"trials": trials}), file=pipe, flush=True)

    with contextlib.closing(server()) as forks:
        for line in sys.stdin:
            given: list[Any] = json.loads(line)
            request = Request(*given)
            request = request._replace(attempt=Attempt(*request.attempt))
            sys.path[:] = [*request.path] or sys.path
            try:
                answer: dict[str, Any] = judged(request, forks, progress)._asdict()
            except CheckFailed as problem:
                answer = {"error": str(problem)}
            print(json.dumps(answer), file=pipe)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
