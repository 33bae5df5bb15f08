"""What an exercise asks for, and where it is found."""

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
"""Numbers of processes with which an attempt is tried."""

Arguments = Sequence[tuple[Any, ...]]
"""Those of each rank."""


class CheckFailed(SFMError):
    """An attempt does not do what its exercise asks for. Raised where grades are given."""


@dataclass(frozen=True)
class Check:
    """What an exercise asks for: a function, which every process calls.

    Attributes:
        name: that of the function, and of the check.
        asks: what it has to do, in one line.
        given: the arguments of each rank, for a number of processes. Whatever is random about them
            comes from the generator, so that a trial can be repeated.
        wanted: what each rank has to return, from the arguments of all: computed in another way
            than the students', as a rule without messages.
        sizes: numbers of processes.
        seeds: how many trials there are with each. From the second on one rank begins late.
        seconds: that one trial may take; all of the notebooks' take milliseconds.
        most: how many messages all processes together may send, those of a ``Group`` among them;
            None: as many as they like.
        fewest: how many they have to send at least: what comes in parts is not to come as a whole.
        exact: floats must have the same bits. Else they may differ by 1e-9 of their size.
        late: whether ranks begin late in trials: shows races.
        buffering: of the endpoints; 0: each ``send`` waits until it is received.
        mpi: the cell uses mpi4py. With ``buffering=0`` MPI's standard sends wait.
        sites: the site of each rank, for a number of processes; None: all are at one.
        most_between: how many messages may go between the sites.
        busiest: how many messages any one process may receive, for a number of processes.
        language: "python" or "c".
        signature: of a function in C: ``long token(long number)``. Arguments and results are
            numbers: ``int``, ``long`` or ``double``.
        note: what is added to what is said of a wrong attempt: where to look.
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
            raise ValueError(f"a check has the name of a function, not {self.name!r}")
        if self.language not in ("python", "c"):
            raise ValueError(f"{self.name}: the language is 'python' or 'c', not {self.language!r}")
        if not self.sizes or any(type(size) is not int or size < 1 for size in self.sizes):
            raise ValueError(f"{self.name}: sizes are numbers of processes, not {self.sizes!r}")


def checks() -> dict[str, Check]:
    """The checks of the notebooks, in their order."""
    from sfm_kernel.lessons import checks as folder

    found: dict[str, Check] = {}
    for one in sorted(pkgutil.iter_modules(folder.__path__), key=lambda one: one.name):
        found |= of_module(importlib.import_module(f"{folder.__name__}.{one.name}"))
    return found


def of_module(module: ModuleType) -> dict[str, Check]:
    """The checks that a module has as names of its own, in their order."""
    found = [one for one in vars(module).values() if isinstance(one, Check)]
    return {one.name: one for one in found}


def of_file(path: str) -> dict[str, Check]:
    """The checks in a teacher's Python file.

    Raises:
        CheckFailed: there is none, or it cannot be run; says why.
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
        raise CheckFailed(f"{path} has no check: `from sfm_kernel.lessons import Check` has how")
    return found


def find(name: str, known: Mapping[str, Check]) -> Check:
    """The check of this name.

    Raises:
        CheckFailed: there is none; names those that are like it, or all.
    """
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, 3, 0.5)
    hint = f"Did you mean {' or '.join(f'`{one}`' for one in near)}? " if near else ""
    raise CheckFailed(f"no check is called {name!r}. {hint}There: {', '.join(known)}")


def same(got: Any, wanted: Any, exact: bool = False) -> bool:
    """Whether a result is the right one: lists and tuples are alike, and floats nearly equal.

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
            and all(same(one, other, exact) for one, other in zip(got, wanted, strict=True))
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
        one, other = np.asarray(got), np.asarray(wanted)
        if one.shape != other.shape:
            return False
        return bool(np.array_equal(one, other) if exact else np.allclose(one, other, 1e-9, 1e-12))
    except (TypeError, ValueError):
        return False
