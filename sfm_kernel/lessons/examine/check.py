"""An exercise's requirements, and the modules and files that define them."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import math
import os
import pkgutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from types import ModuleType
from typing import Any

import numpy as np

from sfm_kernel.errors import SFMError

SIZES = (1, 2, 3, 5, 8)
"""The numbers of processes that try an attempt."""

Arguments = Sequence[tuple[Any, ...]]
"""The arguments of each rank."""


class CheckFailed(SFMError):
    """An attempt does not do what its exercise asks for. Raised when attempts are graded."""


@dataclass(frozen=True)
class Check:
    """An exercise's requirements for a function, which every process calls.

    Attributes:
        name: the name of the function, and of the check.
        asks: the function's task, in one line.
        given: returns the arguments of each rank, for a number of processes. All randomness comes
            from the generator, so that a trial can be repeated.
        wanted: returns the right result of each rank, from the arguments of all. It computes
            differently from the students, usually without messages. Results are None, numbers,
            texts, bytes, lists, tuples, dicts, sets, and NumPy's arrays and numbers.
        sizes: numbers of processes.
        seeds: the number of trials with each size. From the second trial on one rank begins late.
        seconds: the longest time of one trial; all trials of the notebooks take milliseconds.
        most: the largest number of messages that all processes together may send, including those
            of a ``Group``; None: no limit.
        fewest: the smallest number of messages that they must send: an array must go in chunks.
        exact: whether floats must have the same bits. Otherwise they may differ by 1e-9 of their
            size.
        late: whether a rank begins late in some trials, which shows races.
        buffering: ``buffering`` of the endpoints; 0: each ``send`` waits until it is received.
        mpi: whether the cell uses mpi4py. With ``buffering=0`` MPI's standard sends wait.
        sites: returns the site of each rank, for a number of processes; None: one site for all.
        most_between: the largest number of messages between the sites.
        busiest: the largest number of messages that one process may receive, for a number of
            processes.
        language: "python" or "c".
        signature: the prototype of a function in C: ``long token(long number)``. Arguments and
            results are numbers: ``int``, ``long`` or ``double``.
        note: a hint that is added to the report of a wrong attempt.
    """

    name: str
    asks: str
    given: Callable[[int, Random], Arguments]
    wanted: Callable[[Arguments], Sequence[Any]]
    sizes: Sequence[int] = SIZES
    seeds: int = 2
    seconds: float = 10.0
    most: Callable[[int], int] | None = None
    fewest: Callable[[int], int] | None = None
    exact: bool = False
    late: bool = True
    buffering: int | None = None
    mpi: bool = False
    sites: Callable[[int], Sequence[str]] | None = None
    most_between: Callable[[int], int] | None = None
    busiest: Callable[[int], int] | None = None
    language: str = "python"
    signature: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise ValueError(f"a check is named like its function: {self.name!r} is no such name")
        if self.language not in ("python", "c"):
            raise ValueError(f"{self.name}: the language is 'python' or 'c', not {self.language!r}")
        if not self.sizes or any(type(size) is not int or size < 1 for size in self.sizes):
            raise ValueError(f"{self.name}: sizes are numbers of processes, not {self.sizes!r}")


def checks() -> dict[str, Check]:
    """The checks of the notebooks, in their order."""
    from sfm_kernel.lessons import checks as folder

    found: dict[str, Check] = {}
    for module in sorted(pkgutil.iter_modules(folder.__path__), key=lambda module: module.name):
        found |= of_module(importlib.import_module(f"{folder.__name__}.{module.name}"))
    return found


def of_module(module: ModuleType) -> dict[str, Check]:
    """The checks that are variables of a module, in their order."""
    found = [check for check in vars(module).values() if isinstance(check, Check)]
    return {check.name: check for check in found}


def of_file(path: str) -> dict[str, Check]:
    """The checks in a teacher's Python file.

    Raises:
        CheckFailed: the file has no check, or cannot be run; says why.
    """
    full = os.path.abspath(path)
    if not os.path.isfile(full):
        raise CheckFailed(f"there is no file {path}: --from takes a Python file with checks")
    spec = importlib.util.spec_from_file_location("sfm_checks", full)
    if spec is None or spec.loader is None:
        raise CheckFailed(f"{path} is no Python file: --from takes one with checks")
    module = importlib.util.module_from_spec(spec)
    before = sys.path[:]
    sys.path.insert(0, os.path.dirname(full))
    try:
        spec.loader.exec_module(module)
    except Exception as problem:  # noqa: BLE001 - the teacher's file may raise anything
        raise CheckFailed(f"{path} cannot be read: {type(problem).__name__}: {problem}") from None
    finally:
        sys.path[:] = before
    found = of_module(module)
    if not found:
        raise CheckFailed(
            f"{path} has no check: see `help(Check)` after `from sfm_kernel.lessons import Check`"
        )
    return found


def find(name: str, known: Mapping[str, Check]) -> Check:
    """The check of this name.

    Raises:
        CheckFailed: there is no such check; names similar ones, and all.
    """
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, 3, 0.5)
    hint = f"Did you mean {' or '.join(f'`{similar}`' for similar in near)}? " if near else ""
    raise CheckFailed(f"no check is called {name!r}. {hint}There are: {', '.join(known)}")


def same(got: Any, wanted: Any, exact: bool = False) -> bool:
    """Whether a result is right: a list may equal a tuple, and floats may differ slightly.

    >>> same((1, 2.0), [1, 2.0 + 1e-12]), same([1, 2], [2, 1]), same(None, 0)
    (True, False, False)
    """
    if isinstance(wanted, np.ndarray) or isinstance(got, np.ndarray):
        return _same_arrays(got, wanted, exact)
    if isinstance(wanted, Mapping):
        return (
            isinstance(got, Mapping)
            and got.keys() == wanted.keys()
            and all(same(got[key], wanted[key], exact) for key in wanted)
        )
    if isinstance(wanted, (list, tuple)):
        return (
            isinstance(got, (list, tuple))
            and len(got) == len(wanted)
            and all(same(*values, exact) for values in zip(got, wanted, strict=True))
        )
    if isinstance(wanted, (float, np.floating)) and isinstance(got, (int, float, np.number)):
        if exact:
            return float(got) == float(wanted)
        return math.isclose(float(got), float(wanted), rel_tol=1e-9, abs_tol=1e-12)
    return (got is None) == (wanted is None) and bool(got == wanted)


def _same_arrays(got: Any, wanted: Any, exact: bool) -> bool:
    if got is None or wanted is None:
        return False
    try:
        got, wanted = np.asarray(got), np.asarray(wanted)
        if got.shape != wanted.shape:
            return False
        return bool(np.array_equal(got, wanted) if exact else np.allclose(got, wanted, 1e-9, 1e-12))
    except (TypeError, ValueError):
        return False
