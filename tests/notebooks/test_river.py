"""The notebook of River's layers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.notebooks.reading import demo, outputs, text

pytestmark = pytest.mark.timeout(900)


def test_remote_objects_and_mapreduce(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    notebook, _ = demo("11-river", 0, tmp_path, capfd)
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
        int(one.replace(",", ""))
        for one in re.findall(r"[\d,]+\d", text(notebook, "combined = mapreduce.run"))
    )
    assert pairs > 100_000 and less < shuffled / 2
    assert int(re.findall(r"([\d,]+) bytes went", text(notebook, "small ="))[0].replace(",", ""))
    drawn = [
        one
        for cell in notebook.cells
        if cell.source == "%sfm timeline"
        for one in cell.outputs
        if "image/svg+xml" in one.get("data", {})
    ]
    assert len(drawn) == 2
    assert not [one for one in outputs(notebook, "become_dask") if one.output_type == "error"]
