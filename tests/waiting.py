"""Waiting for a condition. If it never comes, the test's watchdog ends the wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(condition: Callable[[], T]) -> T:
    """Poll until the value is true, and return it."""
    while not (found := condition()):
        time.sleep(0.01)
    return found
