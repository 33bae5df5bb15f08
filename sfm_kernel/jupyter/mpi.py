"""MPI in a notebook: ``import mpi4py`` on engines, and programs in processes of their own."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from ipyparallel.error import CompositeError
from IPython.core.error import UsageError

from sfm_kernel.jupyter import programs
from sfm_kernel.jupyter.cell import CellInterrupted
from sfm_kernel.jupyter.engine import MPI4PY
from sfm_kernel.jupyter.home import Home
from sfm_kernel.mpi.launch import mpiexec, standin
from sfm_kernel.transport.base import Member

_LOOK = 0.5
"""Seconds between two looks at the controller."""

_USAGE = "%sfm mpi4py on: `import mpi4py` gives SFM's MPI on all engines; off: what is installed"


class Mpi4py:
    """Which engines have the stand-in: ``import mpi4py`` gives ``sfm_kernel.mpi`` there."""

    def __init__(self) -> None:
        self._there: set[str] = set()  # the uids of engines

    def switch(self, words: Sequence[str], home: Home | None) -> str:
        """Do what ``%sfm mpi4py`` asks for; what to tell the user.

        It holds for engines that are started later, too: they find it in their environment.

        Raises:
            UsageError: the word is none of "on" and "off"; or an engine runs another MPI.
        """
        if list(words) not in (["on"], ["off"], []):
            raise UsageError(f"{_USAGE}, not {' '.join(words)!r}")
        members = home.engines() if home is not None else []
        if home is not None and list(words) == ["on"]:
            self.install(home, members)
        elif home is not None and list(words) == ["off"]:
            call(home, members, standin.remove)
            self._there.clear()
        if words:
            os.environ[MPI4PY] = words[0]
        whose = "SFM's MPI" if os.environ.get(MPI4PY) == "on" else "the mpi4py that is installed"
        return f"`from mpi4py import MPI` gives {whose} on all engines"

    def install(self, home: Home, members: Sequence[Member]) -> None:
        """Give these engines the stand-in.

        Blocks: until engines that do not have it yet are free; Stop interrupts it.
        Raises:
            UsageError: an engine runs another MPI already.
        """
        missing = [member for member in members if member.uid not in self._there]
        if missing:
            call(home, missing, standin.install)
            self._there.update(member.uid for member in missing)


def call(home: Home, members: Sequence[Member], function: Callable[..., None], *given: Any) -> None:
    """Call a function on engines and wait for it.

    Raises:
        UsageError: it raised on one of them.
        CellInterrupted: Stop was pressed meanwhile.
    """
    if not members:
        return
    names = {member.info["engine_id"]: str(member.name) for member in members}
    answers = home.client[list(names)].apply_async(function, *given)
    try:
        while not answers.ready():
            answers.wait(_LOOK)
            home.check_controller()
        answers.get()
    except KeyboardInterrupt:
        raise CellInterrupted("an engine is busy with an earlier cell: wait for it") from None
    except CompositeError as failed:
        _, value, _, where = failed.elist[0]
        raise UsageError(f"on {names.get((where or {}).get('engine_id'), '?')}: {value}") from None


def run(words: Sequence[str], engines: int) -> None:
    """Run a program as ``python -m sfm_kernel.mpi`` does, with its output in this cell.

    Args:
        words: what follows ``%sfm run``.
        engines: how many ranks, where the words do not say it; 0 is the launcher's own default.
    Blocks: until it has ended. Stop ends it; a second Stop kills it.
    Raises:
        UsageError: the words are no program.
        CellFailed: the exit status is not 0.
        CellInterrupted: it was stopped.
    """
    words = [*(["-n", str(engines)] if engines else []), *words]
    try:
        wish = mpiexec.parse(words, "%sfm run")
    except mpiexec.WrongUsage as problem:
        raise UsageError(f"%sfm run: {problem}") from None
    except SystemExit:  # -h
        return
    ranks = sum(size for size, _ in wish.programs)
    programs.run([*(["--label"] if ranks > 1 else []), *words])
