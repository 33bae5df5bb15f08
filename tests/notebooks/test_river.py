"""The notebook of River's layers shows what it promises."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.notebooks.reading import demo, outputs, pictures, text

pytestmark = pytest.mark.timeout(900)


@pytest.mark.fault
def test_the_farm(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    notebook, _ = demo("11-river", 2, tmp_path, capfd)
    assert "[0, 1, 4, 9, 16, 25, 36, 49, 64, 81]" in text(notebook, "lambda x: x * x")
    assert text(notebook, "%sfm status").count("serves farm of home") == 4
    assert len(pictures(notebook, "64 identical tasks")) == 1
    assert len(pictures(notebook, "farm.SCHEDULES")) == 1
    assert re.search(r"^[1-9]\d* tasks were stolen", text(notebook, "farm.SCHEDULES"), re.MULTILINE)
    assert "['farm', 'worm', 'firm', 'warm']" in text(notebook, "workers.inject")
    failed = text(notebook, "import TaskFailed")
    assert "(0) failed on worker" in failed and "12 // x" in failed
    assert "the others: " in failed
    assert "100 tasks are done; there still are the workers [0, 1, 2]" in text(notebook, "Timer")
    poisoned = text(notebook, "import TaskPoisoned")
    assert "died while they ran it" in poisoned
    assert f"done: {[x for x in range(20) if x != 7]}" in poisoned
    assert text(notebook, "as_completed(futures)").count("particles: 0.0") == 4
    assert not any(
        one.output_type == "error"
        for cell in ("Timer", "pool =")
        for one in outputs(notebook, cell)
    )
