"""The event that signals set."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from sfm_kernel.directory.signals import Ending

WAITS = """
import signal, sys
from sfm_kernel.directory.signals import ending
end = ending()
print("waits", flush=True)
while not end.wait(0.0):
    pass
while not end.wait(1e-7):
    pass
print("ended", end.wait(), end.is_set(), flush=True)
"""


def test_it_stays_set() -> None:
    end = Ending()
    assert not end.wait(0.0) and not end.wait(0.01) and not end.is_set()
    end.set()
    for _ in range(3):
        assert end.wait() and end.wait(0.0) and end.is_set()


@pytest.mark.fault
def test_a_signal_at_any_instruction_of_a_wait_sets_it() -> None:
    """With an event that has a lock, some of these would wait for ever."""
    for _ in range(12):
        with subprocess.Popen(
            [sys.executable, "-c", WAITS], stdout=subprocess.PIPE, text=True
        ) as waiting:
            assert waiting.stdout is not None and waiting.stdout.readline() == "waits\n"
            time.sleep(ord(os.urandom(1)) / 1e5)
            waiting.terminate()
            assert waiting.stdout.readline() == "ended True True\n"
