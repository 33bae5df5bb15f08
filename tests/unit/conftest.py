"""Fixtures of the unit tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def own_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root of the test's own."""
    monkeypatch.setenv("SFM_DIR", str(tmp_path / "root"))
    return tmp_path / "root"
