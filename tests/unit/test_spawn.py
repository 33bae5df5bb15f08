"""Processes are asked to end, or are killed together with the processes that they started."""

from __future__ import annotations

import signal
import subprocess

import pytest

from sfm_kernel.spawn import process
from tests.mpi.launching import lives
from tests.waiting import wait_until


@pytest.mark.parametrize("grace", [0, 0.1])
def test_a_process_that_does_not_end_is_killed_with_its_group(grace: float) -> None:
    script = "trap '' TERM; sleep 1000 & echo $!; wait"
    stubborn = process.start(["sh", "-c", script], stdout=subprocess.PIPE, text=True)
    child = int(stubborn.stdout.readline())
    process.end([stubborn], grace)
    assert stubborn.returncode == -signal.SIGKILL and stubborn.stdout.closed
    wait_until(lambda: not lives(child))
    process.end([stubborn], grace)


def test_a_process_that_is_asked_ends_by_itself() -> None:
    script = "trap 'exit 3' TERM; echo ready; while true; do sleep 0.01; done"
    willing = process.start(["sh", "-c", script], stdout=subprocess.PIPE, text=True)
    willing.stdout.readline()
    process.end([willing], 60)
    assert willing.returncode == 3
