"""The notebook of River's layers shows what it promises."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.notebooks.reading import demo, outputs, pictures, text

pytestmark = pytest.mark.timeout(900)


@pytest.mark.fault
def test_river(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    notebook, _ = demo("11-river", 2, tmp_path, capfd)
    the_farm(notebook)
    remote_objects_and_mapreduce(notebook)


def the_farm(notebook: Any) -> None:
    assert "[0, 1, 4, 9, 16, 25, 36, 49, 64, 81]" in text(notebook, "lambda x: x * x")
    assert "serves farm of home" in text(notebook, "%sfm status")  # one may have just begun
    assert len(pictures(notebook, "64 identical tasks")) == 1
    assert len(pictures(notebook, "farm.SCHEDULES")) == 1
    assert re.search(r"^[1-9]\d* tasks were stolen", text(notebook, "farm.SCHEDULES"), re.MULTILINE)
    assert "['farm', 'worm', 'firm', 'warm']" in text(notebook, "workers.inject")
    failed = text(notebook, "import TaskFailed")
    assert "(0) failed on worker" in failed and "12 // x" in failed
    assert "the others: " in failed
    assert "100 tasks are done; there still are the workers [0, 1, 2]" in text(notebook, "Timer")
    poisoned = text(notebook, "import TaskPoisoned")
    assert "ended while they ran it" in poisoned
    assert f"done: {[x for x in range(20) if x != 7]}" in poisoned
    assert text(notebook, "as_completed(futures)").count("particles: 0.0") == 4
    assert not any(
        output.output_type == "error"
        for cell in ("Timer", "pool =")
        for output in outputs(notebook, cell)
    )


def remote_objects_and_mapreduce(notebook: Any) -> None:
    for source, printed in {
        "print(a.account.deposit(5), a": "105 105 100",
        "'a gift'": "[5, 'a gift']",
        "a.acount": "Do you mean 'account'?",
        "audit.future(0.5)": "['A has 50', 'B has 100', 'C has 100', 'D has 100']",
        "b.account.pay(": "80 70\n<dict(euros=1000) on C> 1000",
        "a.ping(": "'A → B → A → B → A → B'",
        "%sfm why": "D is in account.audit(3) on A and waits for A",
        "counted = mapreduce.run": "('self', ",
        "combined = mapreduce.run": "True",
        "small = mapreduce.run": "True",
        "index['deadlock']": "('threading', ",
        "linked = mapreduce.run": "queue imports ['collections', 'heapq', 'threading', 'time'",
        "def share(page)": "sum up to 1.0\nsys ",
        "become_dask": "the same on Dask: True",
    }.items():
        assert printed in text(notebook, source), source
    pairs, shuffled, less = (
        int(number.replace(",", ""))
        for number in re.findall(r"[\d,]+\d", text(notebook, "combined = mapreduce.run"))
    )
    assert pairs > 100_000 and less < shuffled / 2
    assert int(re.findall(r"([\d,]+) bytes went", text(notebook, "small ="))[0].replace(",", ""))
    drawn = [
        output
        for cell in notebook.cells
        if cell.source == "%sfm timeline"
        for output in cell.outputs
        if "image/svg+xml" in output.get("data", {})
    ]
    assert len(drawn) == 4
    assert not [
        output for output in outputs(notebook, "become_dask") if output.output_type == "error"
    ]
