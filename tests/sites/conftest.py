"""Labs and directory servers for tests. A test is skipped only if the machine refuses namespaces.

In CI that is a failure: all tests with labs are marked zmq.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from sfm_kernel.directory import DirectoryServer, RemoteDirectory
from sfm_kernel.lessons.sites.lab import Lab, LabRefused

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
