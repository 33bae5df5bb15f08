"""The shared memory of a world in which every process has exchanged messages with every other."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.patterns import WORK

if TYPE_CHECKING:
    from sfm_kernel.endpoint import Endpoint

Files = dict[tuple[int, int], int]
"""Device and inode of a file -> the bytes that it occupies."""


def talk_to_all(sfm: Endpoint) -> int:
    """Exchange a small message with every other process. Rank 0 returns the bytes of the world."""
    others = [rank for rank in range(sfm.size) if rank != sfm.rank]
    for rank in others:
        sfm.send(dest=rank, tag="hello", **WORK)
    for rank in others:
        sfm.recv(src=rank, tag="hello")
    # Counted after all exchanges, and before any process leaves.
    if sfm.rank != 0:
        sfm.send(dest=0, tag="have talked")
        sfm.recv(src=0, tag="count")
        sfm.send(dest=0, tag="counted", files=occupied(sfm.folder))
        sfm.recv(src=0, tag="go home")
        return 0
    for rank in others:
        sfm.recv(src=rank, tag="have talked")
    for rank in others:
        sfm.send(dest=rank, tag="count")
    files = occupied(sfm.folder)
    for rank in others:
        files |= sfm.recv(src=rank, tag="counted").files
    for rank in others:
        sfm.send(dest=rank, tag="go home")
    return sum(files.values())


def occupied(folder: str) -> Files:
    """A world's shared memory as this process sees it: files in the folder, and its mappings.

    A ring no longer has a name when both ends have mapped it, so that the folder alone shows too
    little. The blocks of a ring are counted if the kernel shows them; otherwise its length, which
    is at least as much.
    """
    files: Files = {}
    for entry in os.scandir(folder):
        state = entry.stat()
        files[state.st_dev, state.st_ino] = state.st_blocks * 512
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, _, _, device, number, *path = line.split(maxsplit=5)
        if not path or not path[0].startswith(folder + "/"):
            continue
        major, minor = (int(number, 16) for number in device.split(":"))
        key = (os.makedev(major, minor), int(number))
        try:
            files[key] = os.stat(f"/proc/self/map_files/{addresses}").st_blocks * 512
        except OSError:
            first, last = (int(end, 16) for end in addresses.split("-"))
            files[key] = max(files.get(key, 0), last - first)
    return files
