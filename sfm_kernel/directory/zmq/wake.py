"""A descriptor that wakes a thread from poll."""

from __future__ import annotations

import os
import threading


class Wake:
    """A descriptor that ``ring`` makes readable. After ``close``, ``ring`` does nothing."""

    def __init__(self) -> None:
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._lock = threading.Lock()  # or ``ring`` could write to a reused descriptor

    def ring(self) -> None:
        """Make ``fd`` readable until ``clear``."""
        with self._lock:
            if self.fd >= 0:
                os.eventfd_write(self.fd, 1)

    def clear(self) -> None:
        """Make ``fd`` quiet again."""
        try:
            os.eventfd_read(self.fd)
        except BlockingIOError:
            pass

    def close(self) -> None:
        """Release the descriptor. Idempotent."""
        with self._lock:
            if self.fd >= 0:
                os.close(self.fd)
                self.fd = -1
