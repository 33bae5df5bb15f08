"""Processes made to be killed: many, quickly, and at a chosen point of a chosen call."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.fault.tracer import Tracer

NURSERY = """
import os, sys, threading, time
import numpy as np
import sfm_kernel.world  # all of it: what is mapped is looked at before it joins
world, thread, prepare, act = sys.argv[1:]
prepare, act = compile(prepare, "prepare", "exec"), compile(act, "act", "exec")
while word := os.read(0, 1):
    if word == b"G":  # the last victim died before it read it
        continue
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        continue
    exec(prepare)
    tids = [t.native_id for t in threading.enumerate() if thread and t.name.startswith(thread)]
    tid = tids[0] if tids else os.getpid()  # native_id of the main thread is wrong after a fork
    os.write(1, b"%d %d\\n" % (os.getpid(), tid))
    os.read(0, 1)
    exec(act)
    os.kill(os.getpid(), 9)
"""

PATIENCE = 30.0
"""Seconds that a victim may live."""


class Nursery:
    """Forks victims, one at a time: each runs ``prepare``, waits, then runs ``act`` and dies.

    Args:
        thread: how the name of the thread begins that is to be traced; "" is the main thread.
    """

    def __init__(self, world: str, prepare: str, act: str, thread: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", NURSERY, world, thread, prepare, act],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        assert self._process.stdin and self._process.stdout
        self._say, self._hear = self._process.stdin, self._process.stdout

    @contextmanager
    def victim(self) -> Iterator[Tracer]:
        """A victim that is prepared and stands still; it begins its act when it is made to go on.

        At the end it is dead.
        """
        self._say.write(b"S")
        pid, tid = map(int, self._hear.readline().split())
        tracer = Tracer(pid, tid)
        # Not every run takes the way of the first: one that waits for ever ends all the same.
        patience = threading.Timer(PATIENCE, os.kill, (pid, signal.SIGKILL))
        patience.start()
        try:
            self._say.write(b"G")
            yield tracer
        finally:
            patience.cancel()
            patience.join()
            tracer.kill()

    def close(self) -> None:
        """End the nursery and the victim that it may have."""
        self._say.close()
        self._process.wait(20)
        self._hear.close()
