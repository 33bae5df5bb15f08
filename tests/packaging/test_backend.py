"""The build's backend, without what it compiles."""

from __future__ import annotations

import importlib.util
import sys
import threading
from types import ModuleType
from unittest.mock import MagicMock

import pytest

from tests.unit.test_packaging import ROOT


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The backend with a maturin, and a cargo, that do nothing."""
    monkeypatch.setitem(sys.modules, "maturin", MagicMock())
    spec = importlib.util.spec_from_file_location("backend", ROOT / "tools/backend.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "build_libraries", lambda *_: None)
    monkeypatch.setattr(module, "remove_twins", lambda _: None)
    return module


@pytest.mark.parametrize("call", ["build_editable", "build_wheel"])
def test_two_builds_of_a_folder_do_not_meet(call: str, backend: ModuleType) -> None:
    """maturin moves what cargo has compiled, and another maturin would not find it."""
    first, go_on, second = threading.Event(), threading.Event(), threading.Event()

    def build(*_: object) -> str:
        if first.is_set():
            second.set()
        else:
            first.set()
            assert go_on.wait(60)
        return "name.whl"

    setattr(backend.maturin, call, build)
    builds = [threading.Thread(target=getattr(backend, call), args=("dist",)) for _ in range(2)]
    for thread in builds:
        thread.start()
        assert first.wait(60)
    met = second.wait(0.3)
    go_on.set()
    for thread in builds:
        thread.join()
    assert second.is_set() and not met
