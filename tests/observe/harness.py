"""Programs that run in separate worlds, which a test observes from outside."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import sfm_kernel
from sfm_kernel import directory
from sfm_kernel.jupyter import programs
from sfm_kernel.observe import explain, snapshot
from tests.contract.conftest import Background
from tests.mpi.launching import LAUNCHER
from tests.observe.zoo import outcome

LIMIT = 150.0
"""Seconds after which a program is stopped; far more than any program needs."""


class Run:
    """A program that runs in a world. Made by ``running``."""

    def __init__(self, folder: str, call: Background) -> None:
        self.folder, self._call = folder, call

    @property
    def running(self) -> bool:
        return self._call.is_alive()

    def results(self) -> list[Any]:
        """Wait for the program, and give its results by rank; raises what it raised."""
        found: list[Any] = self._call.result()
        return found

    def explain(self) -> dict[str, Any]:
        """Explain why the program does not go on; if it has ended, raise what it raised."""
        try:
            return explain(self.folder)
        except FileNotFoundError:
            self.results()
            raise

    def process(self, name: object) -> dict[str, Any]:
        """One of its processes, from a snapshot."""
        found: dict[str, Any]
        (found,) = (
            process for process in snapshot(self.folder)["processes"] if process["name"] == name
        )
        return found

    def signal(self, name: object, number: int) -> None:
        os.kill(self.process(name)["pid"], number)

    def stop(self) -> None:
        """End all its processes, also stopped ones and those that it has started itself."""
        while self.running:
            with contextlib.suppress(FileNotFoundError):
                for process in snapshot(self.folder)["processes"]:
                    if process["alive"]:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(process["pid"], signal.SIGKILL)
            self._call.join(0.05)


@contextlib.contextmanager
def running(
    program: Callable[..., Any], n: int, *args: Any, names: Sequence[str] | None = None
) -> Iterator[Run]:
    """Run ``sfm_kernel.run`` in the background; the block begins when all have joined.

    None of its processes is left when the block ends, however it ends.
    """
    with _called(lambda: sfm_kernel.run(program, n, *args, names=names, timeout=LIMIT), n) as run:
        yield run


LAUNCHERS = ["sfm_kernel.run", "python -m sfm_kernel.mpi", "%sfm run"]


@contextlib.contextmanager
def launched(program: ModuleType, launcher: str) -> Iterator[Run]:
    """Run a program of the zoo by one of ``LAUNCHERS``, as ``running``; results: outcomes."""
    n, name = len(program.NAMES), program.__name__.rpartition(".")[2]
    if launcher == "sfm_kernel.run":
        with running(outcome, n, program.program, names=program.NAMES) as run:
            yield run
        return
    with tempfile.TemporaryDirectory() as folder:
        words = ["-n", str(n), "--timeout", str(LIMIT), "-m", "tests.observe.rank", name, folder]

        def call() -> list[Any]:
            if launcher == "%sfm run":
                programs.run_mpi(words, 0)
            else:
                subprocess.run([*LAUNCHER, *words], check=True)
            endings = (json.loads(Path(folder, str(rank)).read_text()) for rank in range(n))
            return [ended and tuple(ended) for ended in endings]

        with _called(call, n) as run:
            yield run


@contextlib.contextmanager
def _called(function: Callable[[], list[Any]], n: int) -> Iterator[Run]:
    """Call ``function`` in the background; the block begins when ``n`` have joined its world."""
    before = set(directory.worlds())
    call = Background(function)
    run = None
    try:
        while run is None:
            if not call.is_alive():
                call.result()  # raises the reason of its end
            for world in set(directory.worlds()) - before:
                with directory.LocalDirectory(world, create=False) as found:
                    run = Run(found.folder, call)
            time.sleep(0.005)
        while run.running and len(run.explain()["processes"]) < n:
            time.sleep(0.005)
        yield run
    finally:
        if run is not None:
            run.stop()
        call.join(LIMIT)


def said(program: ModuleType) -> list[str]:
    """The expected explanation of a program of the zoo: the title, and the sentences."""
    file = Path(str(program.__file__))
    places = {}
    for number, line in enumerate(file.read_text().splitlines(), 1):
        if marker := re.search(r"  # (\w+)$", line):
            places[marker[1]] = f"{file.name}, line {number} (program)"
    text: str = program.SAID.strip().format(**vars(program) | places)
    return text.splitlines()
