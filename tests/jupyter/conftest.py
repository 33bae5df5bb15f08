"""A notebook, or a Jupyter server, for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.jupyter.notebook import Notebook, notebook
from tests.jupyter.server import Server, server


@pytest.fixture(scope="module")
def book(request: pytest.FixtureRequest) -> Iterator[Notebook]:
    """A notebook that has run the cells ``CELLS`` of its module."""
    with notebook(*request.module.CELLS) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with an empty folder."""
    with server(tmp_path_factory.mktemp("notebooks")) as running:
        yield running
