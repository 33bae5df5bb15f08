"""Arrays that fill the memory: 4 GB in the long version, with nothing to spare."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel import Endpoint

pytestmark = pytest.mark.timeout(1800)

ALLOWANCE = 96 << 20
"""Bytes beyond source and destination, at the peak: chunks on their way, Python's own."""


class Growth(threading.Thread):
    """Watches the growth, in bytes, of this process's private memory and of the shared folder."""

    def __init__(self, folder: str) -> None:
        super().__init__(daemon=True)
        self._folder = folder
        self._over = threading.Event()
        self._before = self._now()
        self.private = self.shared = 0
        self.start()

    def run(self) -> None:
        while not self._over.wait(0.002):
            self.measure()

    def measure(self) -> None:
        private, shared = self._now()
        self.private = max(self.private, private - self._before[0])
        self.shared = max(self.shared, shared - self._before[1])

    def _now(self) -> tuple[int, int]:
        with open("/proc/self/status") as status:
            private = next(line for line in status if line.startswith("RssAnon"))
        room = os.statvfs(self._folder)
        return int(private.split()[1]) << 10, (room.f_blocks - room.f_bfree) * room.f_frsize

    def end(self) -> tuple[int, int]:
        self.measure()
        self._over.set()
        self.join()
        return self.private, self.shared


def work(sfm: Endpoint, size: int) -> tuple[int, int]:
    """Send one array of ``size`` bytes; the growth of each process, and of shared memory."""
    if sfm.rank:
        x = np.arange(size // 8, dtype=np.int64)
        sfm.send(dest=0, ready=True)
        growth = Growth(sfm.folder)
        sfm.send(dest=0, x=x)
        assert sfm.recv(600, src=0).done
        return growth.end()
    assert sfm.recv(600, src=1).ready
    growth = Growth(sfm.folder)
    x = sfm.recv(600, src=1).x
    assert x.nbytes == size
    assert all(x[index] == index for index in range(0, len(x), 1 << 20)) and x[-1] == len(x) - 1
    result = growth.end()
    x += 1
    sfm.send(dest=1, done=True)
    return result


def test_a_huge_array(kind: str, effort: int) -> None:
    size = 4 << 30 if effort > 1 else 320 << 20
    (receiver, shared), (sender, _) = sfm_kernel.run(work, 2, size, timeout=1500)
    # The destination is the receiver's own memory or lent from the shared one.
    assert sender + receiver + shared - size < ALLOWANCE, (sender, receiver, shared)
