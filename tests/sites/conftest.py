"""Labs and directory servers for tests. A test is skipped only if the machine refuses namespaces.

In CI that is a failure: all tests with labs are marked zmq.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from sfm_kernel.directory import DirectoryServer, RemoteDirectory
from sfm_kernel.lessons.sites.lab import Lab, LabRefused
from sfm_kernel.lessons.sites.world import LabWorld

KEY = bytes(range(32))
MakeLab = Callable[..., Lab]


@pytest.fixture
def server(world: str) -> Iterator[DirectoryServer]:
    with DirectoryServer(world, KEY, "tcp://127.0.0.1:0") as running:
        yield running


@pytest.fixture
def directory(server: DirectoryServer, sfm_dir: Path) -> Iterator[RemoteDirectory]:
    with RemoteDirectory(server.world, server.url, KEY) as opened:
        yield opened


@pytest.fixture
def make_lab() -> Iterator[MakeLab]:
    """``Lab(...)``, closed when the test ends."""
    with ExitStack() as stack:

        def make(*args: Any, **kwargs: Any) -> Lab:
            try:
                return stack.enter_context(Lab(*args, **kwargs))
            except LabRefused as refused:
                pytest.skip(str(refused))

        yield make


def start(
    stack: ExitStack, world: LabWorld, site: str, host: int, *command: str
) -> subprocess.Popen[str]:
    """Run a Python module in a host of a world's lab; ``stack`` kills it, also if it is stopped."""
    process: subprocess.Popen[str] = world.lab.run(
        site, [sys.executable, "-m", *command], world._environment(site, host), host=host,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
    )  # fmt: skip
    stack.callback(_end, process)
    return process


def _end(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGCONT)
    process.kill()
    with suppress(BrokenPipeError), process:
        pass
