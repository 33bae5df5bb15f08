"""Wrong programs in C: what the tool says about them stands in their first comments."""

from __future__ import annotations

import contextlib
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from sfm_kernel.c import INCLUDE
from sfm_kernel.observe import explain
from tests.c.building import PROGRAMS, needs_mpi
from tests.mpi.launching import launched

ZOO = sorted((PROGRAMS.parent / "zoo").glob("*.c"))

pytestmark = needs_mpi


def judged(root: Path, launcher: int, title: str) -> dict[str, Any]:
    """The diagnosis of a launcher's world, once its title begins so; the watchdog ends the wait."""
    while True:
        with contextlib.suppress(FileNotFoundError, StopIteration):
            folder = next(root.glob(f"mpi-{launcher}-*"))
            diagnosis = dict(explain(str(folder)))
            if diagnosis["title"].startswith(title):
                return diagnosis
        time.sleep(0.05)


@pytest.mark.parametrize("source", ZOO, ids=lambda path: path.stem)
def test_the_tool_says_what_is_wrong(source: Path, sfm_dir: Path) -> None:
    assert INCLUDE
    text = source.read_text()
    (size,) = re.findall(r"^/\* (\d) ranks", text)
    titles = re.findall(r"^ \* title: (.*)$", text, re.MULTILINE)
    says = re.findall(r"^ \* says: (.*)$", text, re.MULTILINE)
    never = re.findall(r"^ \* not: (.*)$", text, re.MULTILINE)
    with launched("-n", size, str(source)) as launcher:
        diagnosis = judged(sfm_dir, launcher.pid, (titles or ["Deadlock"])[0])
        launcher.send_signal(signal.SIGTERM)
        launcher.wait()
    said = " ".join(diagnosis["sentences"])
    assert titles in ([], [diagnosis["title"]]), said
    assert bool(diagnosis["stuck"]) == diagnosis["title"].startswith("Deadlock")
    assert all(sentence in said for sentence in says), said
    assert not any(sentence in said for sentence in never), said
