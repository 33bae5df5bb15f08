"""Runs MPI programs in new processes, and calls functions on engines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ipyparallel.error import CompositeError
from IPython.core.error import UsageError

from sfm_kernel.jupyter import programs
from sfm_kernel.jupyter.cell import CellInterrupted
from sfm_kernel.jupyter.home import Home
from sfm_kernel.mpi.launch import mpiexec
from sfm_kernel.transport.base import Member

_POLL = 0.5
"""Seconds between two checks of the controller."""


def call(home: Home, members: Sequence[Member], function: Callable[..., None], *given: Any) -> None:
    """Call a function on engines and wait for it.

    Raises:
        UsageError: the function raised an error on an engine.
        CellInterrupted: the user pressed Stop.
    """
    if not members:
        return
    names = {member.info["engine_id"]: str(member.name) for member in members}
    answers = home.client[list(names)].apply_async(function, *given)
    try:
        while not answers.ready():
            answers.wait(_POLL)
            home.cluster.check_controller()
        answers.get()
    except KeyboardInterrupt:
        raise CellInterrupted("an engine is busy with an earlier cell: wait for it") from None
    except CompositeError as failed:
        _, value, _, info = failed.elist[0]
        raise UsageError(f"on {names.get((info or {}).get('engine_id'), '?')}: {value}") from None


def run(words: Sequence[str], engines: int) -> None:
    """Run a program as ``python -m sfm_kernel.mpi`` does, with its output in this cell.

    Args:
        words: the words after ``%sfm run``.
        engines: the number of ranks if the words give none; 0 is the launcher's default.
    Blocks: until the program has ended. Stop ends it; a second Stop kills it.
    Raises:
        UsageError: the words name no program.
        CellFailed: the exit status is not 0.
        CellInterrupted: the user stopped the program.
    """
    words = [*(["-n", str(engines)] if engines else []), *words]
    try:
        command = mpiexec.parse(words, "%sfm run")
    except mpiexec.WrongUsage as problem:
        raise UsageError(f"%sfm run: {problem}") from None
    except SystemExit:  # -h
        return
    ranks = sum(size for size, _ in command.programs)
    with programs.launcher() as start:
        start([*(["--label"] if ranks > 1 else []), *words])
