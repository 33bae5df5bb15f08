"""Waiting for a condition or a line. If it never comes, the test's watchdog ends the wait."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(condition: Callable[[], T]) -> T:
    """Poll until the value is true, and return it."""
    while not (found := condition()):
        time.sleep(0.01)
    return found


def next_line(process: subprocess.Popen[str]) -> str:
    """The next line of its stdout, without the spaces around it."""
    assert process.stdout is not None
    return process.stdout.readline().strip()
