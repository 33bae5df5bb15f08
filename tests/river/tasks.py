"""Functions that the workers of these tests run."""

from __future__ import annotations

import os
import time


def square(x: int) -> int:
    return x * x


def nap(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def die_at(x: int, deadly: int) -> int:
    if x == deadly:
        os._exit(3)
    return x


def fail_at(x: int, bad: int) -> int:
    if x == bad:
        raise ValueError(f"no {x}")
    return x
