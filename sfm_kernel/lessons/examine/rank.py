"""One process of a trial: it runs the student's cell, and calls the function.

The student's code has this process for itself. It holds nothing of the check and of other ranks.
"""

from __future__ import annotations

import builtins
import linecache
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple, NoReturn

from sfm_kernel.endpoint import seen
from sfm_kernel.lessons.examine import plain
from sfm_kernel.lessons.examine.cell import Attempt, definitions
from sfm_kernel.spawn import worker

_ROOM = 4000
"""Characters that a process may print; more is dropped."""

_MEMORY = 2 << 30
"""Bytes of data that one process may have: an endless list ends with MemoryError."""

NAMES = ("send", "recv", "recv_nb", "peek", "regcb")
"""Methods of the endpoint that an engine's cells call as functions."""


class Work(NamedTuple):
    """The work of one rank.

    Attributes:
        attempt: the student's cell.
        name: the name of the function.
        arguments: the function's arguments.
        late: seconds after which the rank begins.
        buffering: ``buffering`` of the endpoint; None: the default.
        mpi: whether the cell uses mpi4py.
        output: the file for the text that the rank prints.
    """

    attempt: Attempt
    name: str
    arguments: tuple[Any, ...]
    late: float
    buffering: int | None
    mpi: bool
    output: str


def main(orders: int, report: int, site: str) -> None:
    """Run as ``python -m sfm_kernel.spawn.worker`` does, in a fork."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.dup2(orders, 0)
    os.close(orders)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    sys.stdin = open(null)  # noqa: SIM115 - as long as the process lives
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, most))
    if site:
        os.environ["SFM_SITE"] = site
    sys.modules["sfm_kernel.lessons.checks"] = None  # type: ignore[assignment]  # not imported
    worker.main(report, bytes)


def call(sfm: Any, work: Work) -> bytes:
    """Run the cell and call the function, as this rank.

    Returns the function's value and the exception that it raised, with cell and line ("" if it
    returned), as ``plain.dumped`` has them.
    """
    file = f"<cell {work.attempt.number}>"
    location = work.attempt.number, None, work.attempt.before
    seen.find_cell = {file: location}.get
    sys.stdout = sys.stderr = _Output(work.output)
    builtins.input = _no_input
    try:
        function = _defined(sfm, work, file)
        time.sleep(work.late)
        return _returned(function(*work.arguments))
    except BaseException as problem:  # noqa: BLE001 - all that the student's code raises is reported
        return plain.dumped((None, _described(problem, work, file, sfm.world)))


def _returned(value: Any) -> bytes:
    try:
        return plain.dumped((value, ""))
    except plain.NotPlain as part:
        why = f"which cannot be compared with anything ({part}): return numbers, texts, lists …"
        return plain.dumped((None, f"returned {value!r:.80}, {why}"))


def _defined(sfm: Any, work: Work, file: str) -> Callable[..., Any]:
    if work.buffering is not None:
        sfm.buffering = work.buffering
    if work.mpi:
        _use_mpi(sfm, work.buffering)
    names = {name: getattr(sfm, name) for name in NAMES}
    variables: dict[str, Any] = {
        "__name__": "__main__", "sfm": sfm, "rank": sfm.rank, "size": sfm.size, **names
    }  # fmt: skip
    lines = work.attempt.text.splitlines(keepends=True)
    linecache.cache[file] = len(work.attempt.text), None, lines, file  # explanations quote lines
    exec(compile(definitions(work.attempt.text), file, "exec"), variables)
    function: Callable[..., Any] = variables[work.name]
    return function


def _use_mpi(sfm: Any, buffering: int | None) -> None:
    from sfm_kernel import mpi

    mpi.use(sfm)
    if buffering is not None:
        from mpi4py import MPI  # noqa: F401 - loads the library whose buffering is set below

        mpi.buffering(buffering)


def _described(problem: BaseException, work: Work, file: str, world: str) -> str:
    """An exception in words, with the line of the cell that raised it."""
    line = _line(problem.__traceback__, file)
    lines = work.attempt.text.splitlines()
    shown = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    location = f" in {work.attempt.where(line)}" if line else ""
    location += f", `{shown}`" if shown else ""
    if isinstance(problem, SystemExit):
        return f"ended itself{location}: a function ends with `return`"
    text = str(problem).replace(f" in world {world!r}", "").strip()
    hint = ""
    if isinstance(problem, NameError) and problem.name:
        hint = (
            f"\nThe check runs only that cell: all that it needs, such as an import or "
            f"{problem.name}, must be in it."
        )
    if isinstance(problem, TypeError) and not line:
        hint = f"\nIt was called with {len(work.arguments)} arguments."
    kind = type(problem).__name__
    if type(problem).__module__ == "mpi4py.MPI":
        kind = f"MPI.{kind}"
    return f"raised {kind}{location}{text and f': {text}'}{hint}"


def _line(trace: TracebackType | None, file: str) -> int:
    """The innermost line of the cell in a traceback; 0 if there is none."""
    found = 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            found = trace.tb_lineno
        trace = trace.tb_next
    return found


def _no_input(prompt: object = "") -> NoReturn:
    raise EOFError(
        "input() does not work in a check: take what you need from the function's arguments"
    )


class _Output:
    """Writes printed text to a file, up to a limit: an endless loop that prints fills no disk."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._room = _ROOM

    def write(self, text: str) -> int:
        if self._room > 0:
            os.write(self._fd, text[: self._room].encode(errors="replace"))
            self._room -= len(text)
            if self._room <= 0:
                os.write(self._fd, "… (more was printed)\n".encode())
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Do nothing: ``write`` has no buffer."""

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return self._fd
