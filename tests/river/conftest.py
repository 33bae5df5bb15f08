"""Farms."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sfm_kernel import farm, serving


@pytest.fixture(scope="module")
def three() -> Iterator[serving.LocalProcesses]:
    """Processes that serve one farm after the other."""
    own = serving.LocalProcesses(3)
    yield own
    own.close()


@pytest.fixture
def workers(three: serving.LocalProcesses) -> Iterator[farm.Farm]:
    """A farm of theirs."""
    with farm.connect(three.sfm) as found:
        yield found


@pytest.fixture
def mortals() -> Iterator[farm.Farm]:
    """A farm of three that may die."""
    own = serving.LocalProcesses(3)
    try:
        with farm.connect(own.sfm) as found:
            yield found
    finally:
        own.close()
