"""Runs mpi4py's tests on sfm_kernel's MPI, and prints a table.

    python tools/mpi4py_suite.py CHECKOUT [module ...] [-n 1,2,3,5] [--real PYTHON] [--timeout 300]

CHECKOUT is a folder with the sources of mpi4py (its `test` folder has the tests); nothing is
downloaded. Each module runs in a separate world, with each number of ranks. The exit status is 1 if
a test fails, or a module does not end.

A test that is skipped has not passed. With `--real`, the python of an environment that has mpi4py
and its mpiexec, each module also runs there: the column `lost` is the number of tests that run
there and not here. `-v` prints their names, and how tests fail.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

RANKS = (1, 2, 3, 5)
RESULTS = "MPI4PY_SUITE_RESULTS"
"""Environment variable of a rank: the folder to which it writes its results."""


class Outcome(NamedTuple):
    """A module's tests in a world of ``ranks`` ranks, over all ranks."""

    module: str
    ranks: int
    seconds: float
    tests: int
    skipped: int
    lost: set[str] | None
    """The tests that run on the real mpi4py and not here; None if that is not known."""
    failed: dict[str, str]
    """Name of a test -> the ranks on which it failed, and how."""
    problem: str
    """Why the module did not end; empty if it did."""


# In a rank


def run_module(folder: Path, module: str) -> int:
    """Run one module with mpi4py's runner; write the results to a file."""
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(folder))
    sys.argv = [str(folder / "main.py"), "--no-builddir", module]
    import main as runner

    begun: set[str] = set()

    def noted(test: unittest.TestCase, result: Any = None) -> Any:
        begun.add(test.id())
        return run(test, result)

    run, unittest.TestCase.run = unittest.TestCase.run, noted  # type: ignore[method-assign]

    class Program(runner.TestProgram):  # type: ignore[misc]
        def runTests(self) -> None:
            try:
                super().runTests()
            finally:
                leave(self.result, begun)

    try:
        Program(module=None)
    except SystemExit:
        pass  # the file has the results
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()  # a rank that is done must not end the world for the others
    return 0


def leave(result: Any, begun: set[str]) -> None:
    """Write this rank's results for the driver."""
    failed = {test.id(): text.strip() for test, text in (*result.failures, *result.errors)}
    failed |= {test.id(): "succeeds unexpectedly" for test in result.unexpectedSuccesses}
    skipped = {test.id() for test, _ in result.skipped}
    numbers = {"tests": result.testsRun, "skipped": len(skipped), "failed": failed}
    numbers["ran"] = sorted(begun - skipped)
    from mpi4py import MPI

    path = Path(os.environ[RESULTS], str(MPI.COMM_WORLD.rank))
    path.write_text(json.dumps(numbers), encoding="utf-8")


# The driver


Done = tuple[subprocess.CompletedProcess[str], dict[int, Any]]
"""The result of a module's processes, and the results that each rank has written."""


def run(launch: Sequence[str], inside: Sequence[str], timeout: float) -> Done:
    """Run a module in a new world; ``inside``: the arguments of ``run_module``."""
    with tempfile.TemporaryDirectory(prefix="mpi4py-suite-") as results:
        command = ["timeout", str(timeout + 30), *launch, __file__, "--inside", *inside]
        done = subprocess.run(
            command,
            env=os.environ | {RESULTS: results, "PYTHONPATH": inside[0]},  # for spawned processes
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
        paths = sorted(Path(results).iterdir())
        return done, {int(path.name): json.loads(path.read_text("utf-8")) for path in paths}


def outcome(folder: Path, module: str, ranks: int, timeout: float, real: Path | None) -> Outcome:
    """Run a module here, and on the real mpi4py, if there is one."""
    size, started = ["-n", str(ranks)], time.monotonic()
    here = [sys.executable, "-m", "sfm_kernel.mpi", *size, "--timeout", str(timeout)]
    done, found = run(here, [str(folder), module], timeout)
    seconds = time.monotonic() - started
    failed: dict[str, str] = {}
    for rank, result in found.items():
        for name, text in result["failed"].items():
            failed[name] = failed.get(name, "") + f"rank {rank}:\n{text}\n"
    problem = ""
    if done.returncode != 0 or len(found) < ranks:
        problem = f"exit status {done.returncode}, {len(found)} of {ranks} ranks came to the end"
        problem += f"\n{done.stderr[-3000:]}"
    first = found.get(0, {"tests": 0, "skipped": 0, "ran": []})
    lost = None
    if real is not None:
        there = [str(real.with_name("mpiexec")), *size, str(real)]
        _, found = run(there, [str(folder), module], timeout)
        lost = set(found[0]["ran"]) - set(first["ran"]) if 0 in found else None
    return Outcome(module, ranks, seconds, first["tests"], first["skipped"], lost, failed, problem)


HEAD = f"{'module':24} {'ranks':>5} {'tests':>6} {'skipped':>8} {'lost':>5} {'seconds':>8}"


def line(result: Outcome) -> str:
    state = "did not end" if result.problem else f"{len(result.failed)} failures"
    lost = "?" if result.lost is None else len(result.lost)
    numbers = f"{result.tests:6} {result.skipped:8} {lost:>5} {result.seconds:8.1f}"
    return f"{result.module:24} {result.ranks:5} {numbers}  {state}"


def show(result: Outcome, verbose: bool) -> None:
    """Print the line of a result, its failures and its problem."""
    print(line(result), flush=True)
    for name, text in result.failed.items():
        print(f"    {name}")
        if verbose:
            print(f"        {text}".replace("\n", "\n        "))
    for name in sorted(result.lost or ()) if verbose else ():
        print(f"    {name}  runs on the real one only")
    if result.problem:
        print(f"    {result.problem}".replace("\n", "\n    "))


def main() -> int:
    if sys.argv[1:2] == ["--inside"]:
        return run_module(Path(sys.argv[2]), sys.argv[3])
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", type=Path, help="a folder with the sources of mpi4py")
    parser.add_argument("modules", nargs="*", help="test_info … (all, if none is named)")
    parser.add_argument("-n", dest="sizes", default=RANKS, metavar="n,n,…", help="ranks",
                        type=lambda text: tuple(map(int, text.split(","))))  # fmt: skip
    parser.add_argument("--timeout", type=float, default=300, metavar="S", help="for a module")
    parser.add_argument("-v", dest="verbose", action="store_true", help="also print how tests fail")
    parser.add_argument("--real", type=Path, metavar="PYTHON", help="with mpi4py, beside mpiexec")
    options = parser.parse_intermixed_args()
    folder = options.checkout.resolve() / "test"
    if not (folder / "main.py").exists():
        parser.error(f"{folder} has no main.py: give the folder of mpi4py's sources")
    modules = options.modules or sorted(path.stem for path in folder.glob("test_*.py"))

    print(HEAD, flush=True)
    found = []
    for module in modules:
        for ranks in options.sizes:
            result = outcome(folder, module, ranks, options.timeout, options.real)
            show(result, options.verbose)
            found.append(result)
    bad = [result for result in found if result.problem or result.failed]
    skipped = sum(result.skipped for result in found)
    lost = sum(len(result.lost or ()) for result in found) if options.real else "?"
    tests = sum(result.tests for result in found)
    print(f"{tests} tests, {skipped} skipped; {lost} run elsewhere only")
    print(f"{len(bad)} runs with failures")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
