"""Farms."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from sfm_kernel import farm, serving


@pytest.fixture(scope="module")
def three() -> Iterator[serving.LocalProcesses]:
    """Processes that serve one farm after the other."""
    with closing(serving.LocalProcesses(3)) as started:
        yield started


@pytest.fixture
def workers(three: serving.LocalProcesses) -> Iterator[farm.Farm]:
    """A farm of theirs."""
    with farm.connect(three.sfm) as found:
        yield found


@pytest.fixture
def mortals() -> Iterator[farm.Farm]:
    """A farm of three that may die."""
    with closing(serving.LocalProcesses(3)) as started, farm.connect(started.sfm) as found:
        yield found
