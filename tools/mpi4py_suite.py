"""Runs the tests that mpi4py brings along on sfm_kernel's MPI, and prints a table.

    python tools/mpi4py_suite.py CHECKOUT [module ...] [-n 1,2,3,5] [--timeout 300] [-v]

CHECKOUT is a folder with the sources of mpi4py (its `test` folder has the tests); nothing is
downloaded. Each module is run by itself, with each number of ranks. The exit status is 1 if a test
fails that is not in KNOWN, or a module does not come to its end.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

RANKS = (1, 2, 3, 5)
RESULTS = "MPI4PY_SUITE_RESULTS"
"""In the environment of a rank: the folder in which it leaves its results."""

KNOWN = {
    "test_package.*": "about files of a compiled mpi4py",
    "test_toplevel.*.testGetInclude": "there are no C headers",
    "test_mpiapi.*": "about mpi4py's C sources",
    "test_mpiabi.*": "about the ABI of a C library",
    "test_doc.*": "about docstrings that a compiler makes",
    "test_cffi.*": "addresses of C's handles",
    "test_ctypes.*": "addresses of C's handles",
    "test_objmodel.*": "among others, looks at the memory of BOTTOM",
    "test_p2p_obj.*.testCommLock": "a table inside mpi4py",
    "test_msgspec.TestMessageRMA.*": "windows are not offered",
    "test_win.*": "windows are not offered",
    "test_spawn.*": "processes that start others are not offered",
    "test_dynproc.*": "processes that start others are not offered",
    "test_ulfm.*": "recovery from failures is not offered",
}
"""Tests that may fail (module.class.name, with * and ?), and why."""


class Outcome(NamedTuple):
    """A module's tests in a world of so many ranks, over all of them."""

    module: str
    ranks: int
    seconds: float
    tests: int
    skipped: int
    failed: dict[str, str]
    """Name of a test -> the ranks on which it failed, and how."""
    problem: str
    """Why the module did not come to its end; empty if it did."""

    @property
    def unknown(self) -> list[str]:
        """The failures that nothing explains."""
        return [name for name in self.failed if not known(name)]


def known(name: str) -> str:
    """Why this test may fail; empty if it may not."""
    reasons = (why for pattern, why in KNOWN.items() if fnmatch.fnmatchcase(name, pattern))
    return next(reasons, "")


# In a rank


def run_module(folder: Path, module: str) -> int:
    """Run one module with mpi4py's own runner; leave what came of it in a file."""
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(folder))
    sys.argv = [str(folder / "main.py"), "--no-builddir", module]
    import main as runner

    class Program(runner.TestProgram):  # type: ignore[misc]
        def runTests(self) -> None:
            try:
                super().runTests()
            finally:
                leave(self.result)

    try:
        Program(module=None)
    except SystemExit:
        pass  # the file tells
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()  # a rank that is done must not take the world along
    return 0


def leave(result: Any) -> None:
    """Write this rank's results for the driver."""
    failed = {test.id(): text.strip() for test, text in (*result.failures, *result.errors)}
    failed |= {test.id(): "succeeds unexpectedly" for test in result.unexpectedSuccesses}
    numbers = {"tests": result.testsRun, "skipped": len(result.skipped), "failed": failed}
    path = Path(os.environ[RESULTS], os.environ["SFM_MPI_RANK"])
    path.write_text(json.dumps(numbers), encoding="utf-8")


# The driver


def outcome(folder: Path, module: str, ranks: int, timeout: float) -> Outcome:
    """Run a module in a world of its own."""
    with tempfile.TemporaryDirectory(prefix="mpi4py-suite-") as results:
        launch = ["-m", "sfm_kernel.mpi", "-n", str(ranks), "--timeout", str(timeout)]
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, *launch, __file__, "--inside", str(folder), module],
            env=os.environ | {RESULTS: results},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
        seconds = time.monotonic() - started
        found = {
            rank: json.loads(path.read_text(encoding="utf-8"))
            for rank in range(ranks)
            if (path := Path(results, str(rank))).exists()
        }
    failed: dict[str, str] = {}
    for rank, result in found.items():
        for name, text in result["failed"].items():
            failed[name] = failed.get(name, "") + f"rank {rank}:\n{text}\n"
    problem = ""
    if done.returncode != 0 or len(found) < ranks:
        problem = f"exit status {done.returncode}, {len(found)} of {ranks} ranks came to the end"
        problem += f"\n{done.stderr[-3000:]}"
    first = found.get(0, {"tests": 0, "skipped": 0})
    return Outcome(module, ranks, seconds, first["tests"], first["skipped"], failed, problem)


def outcomes(
    folder: Path, modules: Sequence[str], sizes: Sequence[int], timeout: float
) -> Iterator[Outcome]:
    for module in modules:
        for ranks in sizes:
            yield outcome(folder, module, ranks, timeout)


def line(one: Outcome) -> str:
    state = "did not end" if one.problem else f"{len(one.unknown)} failures"
    state += f", {len(one.failed) - len(one.unknown)} known" if one.failed else ""
    numbers = f"{one.ranks:5} {one.tests:6} {one.skipped:8} {one.seconds:8.1f}"
    return f"{one.module:24} {numbers}  {state}"


def main() -> int:
    if sys.argv[1:2] == ["--inside"]:
        return run_module(Path(sys.argv[2]), sys.argv[3])
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", type=Path, help="a folder with the sources of mpi4py")
    parser.add_argument("modules", nargs="*", help="test_info … (all, if none is named)")
    parser.add_argument("-n", dest="sizes", default=RANKS, metavar="n,n,…", help="ranks",
                        type=lambda text: tuple(map(int, text.split(","))))  # fmt: skip
    parser.add_argument("--timeout", type=float, default=300, metavar="S", help="for a module")
    parser.add_argument("-v", dest="verbose", action="store_true", help="also tell how tests fail")
    options = parser.parse_intermixed_args()
    folder = options.checkout.resolve() / "test"
    if not (folder / "main.py").exists():
        parser.error(f"{folder} has no main.py: give the folder of mpi4py's sources")
    modules = options.modules or sorted(path.stem for path in folder.glob("test_*.py"))

    print(f"{'module':24} {'ranks':>5} {'tests':>6} {'skipped':>8} {'seconds':>8}", flush=True)
    found = []
    for one in outcomes(folder, modules, options.sizes, options.timeout):
        print(line(one), flush=True)
        for name, text in one.failed.items():
            print(f"    {name}  {known(name)}")
            if options.verbose and not known(name):
                print(f"        {text}".replace("\n", "\n        "))
        if one.problem:
            print(f"    {one.problem}".replace("\n", "\n    "))
        found.append(one)
    bad = [one for one in found if one.problem or one.unknown]
    print(f"{sum(one.tests for one in found)} tests, {len(bad)} runs with unexplained failures")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
