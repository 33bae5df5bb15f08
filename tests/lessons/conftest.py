"""Students' cells are tried in one process for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sfm_kernel.lessons.examine.examiner import Examiner


@pytest.fixture(scope="module")
def examiner() -> Iterator[Examiner]:
    with Examiner() as started:
        yield started
