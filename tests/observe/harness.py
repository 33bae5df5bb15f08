"""Programs that run in worlds of their own, to be looked at from outside."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import sfm_kernel
from sfm_kernel import directory
from sfm_kernel.observe import explain, snapshot
from tests.contract.conftest import Background

LIMIT = 40.0
"""Seconds after which a program is stopped; far more than any of them needs."""


class Run:
    """A program that runs in its own world. Made by ``running``."""

    def __init__(self, folder: str, call: Background) -> None:
        self.folder, self._call = folder, call

    @property
    def running(self) -> bool:
        return self._call.is_alive()

    def results(self) -> list[Any]:
        """What the program returned, by rank, when all have returned; raises what it raised."""
        found: list[Any] = self._call.result()
        return found

    def explain(self) -> dict[str, Any]:
        """Why it does not go on; if it has ended meanwhile, raises what it has raised."""
        try:
            return explain(self.folder)
        except FileNotFoundError:
            self.results()
            raise

    def process(self, name: object) -> dict[str, Any]:
        """One of its processes, as the snapshot has it."""
        found: dict[str, Any]
        (found,) = (one for one in snapshot(self.folder)["processes"] if one["name"] == name)
        return found

    def signal(self, name: object, number: int) -> None:
        os.kill(self.process(name)["pid"], number)

    def stop(self) -> None:
        """End all its processes, also those that are stopped or that it has started by itself."""
        while self.running:
            with contextlib.suppress(FileNotFoundError):
                for one in snapshot(self.folder)["processes"]:
                    if one["alive"]:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(one["pid"], signal.SIGKILL)
            self._call.join(0.05)


@contextlib.contextmanager
def running(
    program: Callable[..., Any], n: int, *args: Any, names: Sequence[str] | None = None
) -> Iterator[Run]:
    """``sfm_kernel.run`` in the background, from when all have joined.

    None of its processes is left when the block ends, however it ends.
    """
    before = set(directory.worlds())
    call = Background(lambda: sfm_kernel.run(program, n, *args, names=names, timeout=LIMIT))
    run = None
    try:
        while run is None:
            if not call.is_alive():
                call.result()  # raises why it has ended
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
    """What has to be said about a program of the zoo: the title, and the sentences."""
    file = Path(str(program.__file__))
    places = {}
    for number, line in enumerate(file.read_text().splitlines(), 1):
        if marker := re.search(r"  # (\w+)$", line):
            places[marker[1]] = f"{file.name}, line {number} (program)"
    text: str = program.SAID.strip().format(**vars(program) | places)
    return text.splitlines()
