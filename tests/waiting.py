"""Waiting for what comes about by itself. The watchdog of each test ends a wait in vain."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(condition: Callable[[], T]) -> T:
    """Look until it is true, and give back what it was then."""
    while not (found := condition()):
        time.sleep(0.01)
    return found
