"""Processes are asked to end, or are killed together with the processes that they started."""

from __future__ import annotations

import signal
import subprocess
import sys

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


STOPPED_AT_A_FORK = """
import os, signal, threading
from sfm_kernel.spawn.forked import Fork
signal.signal(signal.SIGTERM, signal.default_int_handler)
os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGTERM))
threading.Thread(target=threading.Event().wait, daemon=True).start()
try:
    Fork(lambda: None)
except KeyboardInterrupt:
    print("stopped")
"""


def test_an_owner_that_is_asked_to_end_while_it_forks_hears_it() -> None:
    """Python ignores errors in functions that os.fork calls; logging has such a function.

    Nor does it warn of the threads that libraries have begun.
    """
    command = [sys.executable, "-W", "always", "-c", STOPPED_AT_A_FORK]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("stopped\n", "")
