"""The memory of a server and of all processes that it starts, each page counted once.

The kernel's PSS divides a page among all processes that map it: processes of other programs make a
program look smaller. This module finds the physical pages one by one (/proc/PID/pagemap, which
needs root), and divides them only among the processes in question.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import Any

import numpy as np
import psutil

PAGE = os.sysconf("SC_PAGE_SIZE")


def pages_of(pid: int) -> np.ndarray[Any, Any]:
    """The physical pages that a process has mapped."""
    found = []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/pagemap", "rb", 0) as pagemap:
        for line in maps:
            first, last = (int(word, 16) // PAGE for word in line.split(" ", 1)[0].split("-"))
            if first >= 1 << 51:  # vsyscall
                continue
            pagemap.seek(first * 8)
            entries = np.frombuffer(pagemap.read((last - first) * 8), np.uint64)
            entries = entries[entries >> np.uint64(63) == 1]  # in memory
            found.append(entries & np.uint64((1 << 55) - 1))
    return np.unique(np.concatenate(found)) if found else np.empty(0, np.uint64)


def memory(server: int) -> dict[str, float]:
    """MB of the server and of all its descendants, by kind; ``all``: together.

    A page that several of them have mapped is divided among them.
    """
    processes = psutil.Process(server)
    mapped: list[tuple[str, np.ndarray[Any, Any]]] = []
    for process in (processes, *processes.children(recursive=True)):
        with suppress(psutil.Error, OSError, ValueError):
            mapped.append((kind(process, server), pages_of(process.pid)))
    every = np.concatenate([pages for _, pages in mapped])
    pages, counts = np.unique(every, return_counts=True)
    found = {"all": len(pages) * PAGE / 1e6}
    for name, its_pages in mapped:
        share = float((1 / counts[np.searchsorted(pages, its_pages)]).sum()) * PAGE / 1e6
        found[name] = found.get(name, 0.0) + share
    return found


def kind(process: psutil.Process, server: int) -> str:
    words = " ".join(process.cmdline())
    if process.pid == server:
        return "server"
    for word, name in (
        ("ipykernel_launcher", "kernel"),
        ("jupyter.supervisor", "engines"),
        ("ipyparallel.controller", "controller"),
    ):
        if word in words:
            return name
    return "programs"


class Watch:
    """Records the largest memory while the block runs."""

    def __init__(self, server: int) -> None:
        self._server, self._over = server, threading.Event()
        self.peak: dict[str, float] = {"all": 0.0}

    def __enter__(self) -> Watch:
        self._thread = threading.Thread(target=self._measure)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _measure(self) -> None:
        while not self._over.wait(0.5):
            now = memory(self._server)
            if now["all"] > self.peak["all"]:
                self.peak = now
