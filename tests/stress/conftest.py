"""The processes of ``sfm_kernel.run`` are forks here: see ``tests.forks``."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _forked(forked: None) -> None:
    pass
