"""Waiting for what comes about by itself. The watchdog of each test ends a wait in vain."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], object]) -> None:
    """Look until it is true."""
    while not condition():
        time.sleep(0.01)
