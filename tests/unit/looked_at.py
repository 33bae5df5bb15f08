"""A program that another thread looks at (``test_bystanders``): prints who runs its finalizers.

Its functions return meanwhile. Its frames differ in size, so that memory of an ended one is soon
another's; and a hook of the garbage collector gives the interpreter to the program in the middle
of each collection that a look has caused.
"""

from __future__ import annotations

import gc
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from sfm_kernel.endpoint.bystanders import bystanders
from sfm_kernel.endpoint.main_thread import main_line

LOOKS = 150

_finalizing: set[str] = set()
_over = threading.Event()


class Local:
    """The value of a variable."""

    def __del__(self) -> None:
        _finalizing.add(threading.current_thread().name)


def _function(nvariables: int) -> Callable[[int], object]:
    variables = "".join(f"; v{number} = Local(), {number}" for number in range(nvariables))
    scope: dict[str, Any] = {"Local": Local, "called": _called}
    exec(f"def function(depth):\n pass{variables}\n return called(depth)", scope)
    function: Callable[[int], object] = scope["function"]
    return function


def _called(depth: int) -> object:
    if depth == 0:
        return None
    return list(_generated(depth)) if depth % 3 == 0 else _choice(_functions)(depth - 1)


def _generated(depth: int) -> Iterator[object]:
    yield _choice(_functions)(depth - 1)
    yield None


def _look() -> None:
    try:
        for _ in range(LOOKS):
            main_line()
            bystanders()
    finally:
        _over.set()


def _collecting(phase: str, _info: object) -> None:
    if threading.current_thread() is not threading.main_thread():
        for _ in range(5):
            time.sleep(0)


_choice = random.Random(5).choice
_functions = [_function(nvariables) for nvariables in range(0, 36, 3)]

if __name__ == "__main__":
    sys.setswitchinterval(1e-6)
    gc.callbacks.append(_collecting)
    gc.set_threshold(10, 1000, 1000)
    threading.Thread(target=_look, name="observer").start()
    while not _over.is_set():
        _called(12)
    print(*_finalizing)
