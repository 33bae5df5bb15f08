"""What the keepers of counters, mutexes and conditions have; see ``shared``."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from sfm_kernel.mpi.util.shared import LATER, Asker, Kept


class Number(Kept):
    """A number to which is added."""

    def __init__(self, start: Any, typecode: str) -> None:
        self._value = np.array([start], typecode)

    def add(self, asker: Asker, increment: Any) -> Any:
        before = self._value[0].item()
        self._value += np.array([increment], self._value.dtype)
        return before


class Lock(Kept):
    """Who holds a lock, and who waits for it."""

    def __init__(self) -> None:
        self._owner: Asker | None = None
        self._waiting: deque[Asker] = deque()

    def acquire(self, asker: Asker, blocking: bool) -> Any:
        if self._owner is None:
            self._owner = asker
            return True
        if not blocking:
            return False
        self._waiting.append(asker)
        return LATER

    def release(self, asker: Asker) -> None:
        self._owner = self._waiting.popleft() if self._waiting else None
        if self._owner is not None:
            self.keeper.answer(self._owner, True)

    def forget(self, asker: Asker) -> None:
        if asker == self._owner:
            self.release(asker)
        elif asker in self._waiting:
            self._waiting.remove(asker)

    def look(self) -> None:
        if self._owner is None or not self._waiting or self.keeper.is_alive(self._owner.name):
            return
        for asker in self._waiting:  # what it guards may be half done
            why = "while it held a mutex for which this process waits"
            self.keeper.answer(asker, why, lost=self._owner.name)
        self._waiting.clear()


class Sleepers(Kept):
    """Who waits to be woken."""

    def __init__(self) -> None:
        self._sleeping: deque[Asker] = deque()

    def sleep(self, asker: Asker) -> bool:
        self._sleeping.append(asker)
        return False  # and true when it is woken

    def forget(self, asker: Asker) -> None:
        if asker in self._sleeping:
            self._sleeping.remove(asker)

    def wake(self, asker: Asker, most: int) -> int:
        number = max(0, min(most, len(self._sleeping)))
        for _ in range(number):
            self.keeper.answer(self._sleeping.popleft(), True)
        return number
