"""The cells that the README and the documentation show do what stands below them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.jupyter.notebook import notebook, wait_until_blocked

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(ipython3|text)\n(.*?)^```$", re.M | re.S)


@pytest.mark.parametrize(
    "name", ["README", "tour", "observe", "from-ipyparallel", "from-mpi4py", "from-dask"]
)
def test_cells(name: str) -> None:
    page = ROOT / f"{'' if name == 'README' else 'docs/'}{name}.md"
    blocks = BLOCK.findall(page.read_text())
    assert {kind for kind, _ in blocks} == {"ipython3", "text"}
    with notebook() as book:
        shown = ""
        for kind, text in blocks:
            if kind == "text":
                assert shown.split() == text.split()
                continue
            if text == "%sfm why\n":
                wait_until_blocked(2)
            # A deadlock that a page asks about would be over after two seconds.
            shown = book.text(text.replace("--noblock", "--noblock --no-detect"))
        book.run("%sfm stop").ok()
