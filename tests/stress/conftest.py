"""The processes of ``sfm_kernel.run`` are forks here: see ``tests.forks``."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _forked(forked: None) -> None:
    pass


@pytest.fixture(params=["shm", pytest.param("tcp", marks=pytest.mark.tcp)])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The transport under test."""
    monkeypatch.setenv("SFM_TRANSPORT", request.param)
    return str(request.param)
