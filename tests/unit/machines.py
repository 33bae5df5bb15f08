"""Machines, which are folders: each has its own SFM_DIR, and its view of the directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sfm_kernel.directory import DirectoryServer, Member, RemoteDirectory
from tests.unit.processes import Process

KEY = bytes(range(32))


class Machine:
    """A folder that stands for a machine: its view of the directory, and its processes."""

    def __init__(self, folder: Path, server: DirectoryServer, patch: pytest.MonkeyPatch) -> None:
        with patch.context() as here:
            here.setenv("SFM_DIR", str(folder))
            self.directory = RemoteDirectory(server.world, server.url, server.key)
        self.processes: list[Process] = []

    def process(self) -> Process:
        self.processes.append(Process(self.directory.folder))
        return self.processes[-1]

    def join(self, **request: Any) -> Member:
        return self.process().join(self.directory, **request)


MakeMachine = Callable[[], Machine]
