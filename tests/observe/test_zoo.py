"""Wrong programs get the explanation that they must get, and their calls end with it."""

from __future__ import annotations

import importlib
import pkgutil
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from sfm_kernel import ProcessFailed
from sfm_kernel.observe import DeadlockMonitor
from sfm_kernel.observe.deadlocks import end_calls
from tests.conftest import LONG
from tests.observe import zoo
from tests.observe.harness import LAUNCHERS, Run, launched, running, said

FOUND = [
    importlib.import_module(f"{zoo.__name__}.{found.name}")
    for found in pkgutil.iter_modules(zoo.__path__)
]
PROGRAMS = [program for program in FOUND if hasattr(program, "SAID")]
REFUSED = [program for program in FOUND if hasattr(program, "RAISES")]
PROOF = 0.5

OTHERWISE = ("collective_forgotten", "lost_reply")
"""Programs that MPI's launchers run as well, if not all programs do (``make long``). MPI's programs
have other names there: see tests/c/test_zoo.py and tests/mpi/test_library.py."""


def test_the_zoo_is_there() -> None:
    assert len(PROGRAMS) >= 12 and REFUSED and len(PROGRAMS + REFUSED) == len(FOUND)


def name_of(program: ModuleType) -> str:
    return program.__name__.rpartition(".")[2]


def pairs() -> list[Any]:
    """Programs, each with its launchers."""
    found = []
    for nth, launcher in enumerate(LAUNCHERS):
        for program in PROGRAMS:
            name = name_of(program)
            if nth and name.startswith("mpi_"):
                continue
            if LONG or nth == 0 or name in OTHERWISE[nth - 1 :: 2]:
                ids = f"{name}-{('run', 'launcher', 'magic')[nth]}"
                found.append(pytest.param(program, launcher, id=ids))
    return found


@pytest.mark.parametrize(("program", "launcher"), pairs())
def test_it_is_explained_and_ended(program: ModuleType, launcher: str) -> None:
    title, *sentences = said(program)
    stuck = getattr(program, "STUCK", program.CYCLE)
    with launched(program, launcher) as run:
        found = look(run, stuck, lambda diagnosis: diagnosis["sentences"] == sentences)
        assert found["sentences"] == sentences
        assert (found["title"], found["verdict"]) == (title, "deadlock")
        assert (found["cycle"], set(found["stuck"])) == (program.CYCLE, set(stuck))

        watch, proven = DeadlockMonitor(run.folder, PROOF), None
        while proven is None:
            assert run.running, "it has ended before the deadlock was proven"
            proven = watch.check()
            time.sleep(0.05)
        assert proven["sentences"] == sentences
        # A process that has got the error from a member of its group does not get it again.
        judged = set(end_calls(run.folder, proven))
        assert judged and judged <= set(stuck)
        text = "\n".join([f"{title}.", *sentences])
        raised = ("DeadlockDetected", program.CYCLE or stuck, text)
        if name_of(program).startswith("mpi_"):
            raised = ("MPI.Exception", None, text)
        for name, ended in zip(program.NAMES, run.results(), strict=True):
            assert (ended is not None) == (name in stuck)
            if ended:  # in a group, perhaps by another member's error
                # MPI's errors have a longest text.
                cut = len(ended[2]) if ended[0] == "MPI.Exception" else None
                assert ended == (*raised[:2], text[:cut]) and ended[2]


def look(
    run: Run, stuck: list[str], enough: Callable[[dict[str, Any]], bool], limit: float = 10.0
) -> dict[str, Any]:
    """The first diagnosis that is ``enough``, or the last one. None claims too much."""
    deadline = time.monotonic() + limit
    while True:
        found = run.explain()
        assert set(found["stuck"]) <= set(stuck)
        if enough(found) or time.monotonic() > deadline:
            return found
        time.sleep(0.02)


@pytest.mark.parametrize("program", REFUSED, ids=name_of)
def test_some_mistakes_are_refused_by_the_calls_themselves(program: ModuleType) -> None:
    with running(program.program, len(program.NAMES), names=program.NAMES) as run:
        with pytest.raises(ProcessFailed) as failure:
            run.results()
    for text in program.RAISES:
        assert text in str(failure.value)
