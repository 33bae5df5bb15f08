"""The shared memory of a world in which everybody has talked to everybody."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.patterns import WORK

if TYPE_CHECKING:
    from sfm_kernel.endpoint import Endpoint

Files = dict[tuple[int, int], int]
"""Device and number of a file -> the bytes that it occupies."""


def talk_to_all(sfm: Endpoint) -> int:
    """Exchange a small message with everybody. Rank 0 returns the bytes that the world occupies."""
    others = [rank for rank in range(sfm.size) if rank != sfm.rank]
    for rank in others:
        sfm.send(dest=rank, tag="hello", **WORK)
    for rank in others:
        sfm.recv(src=rank, tag="hello")
    # Counted when all have talked, and before anybody leaves.
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
    """What this process sees of a world's shared memory: files in its folder, and its mappings.

    Rings have no name any more once both ends have them, so that the folder alone shows too
    little. Their blocks can be asked for where the kernel allows it; otherwise their length,
    which is at least as much, is taken.
    """
    files: Files = {}
    for entry in os.scandir(folder):
        state = entry.stat()
        files[state.st_dev, state.st_ino] = state.st_blocks * 512
    for line in Path("/proc/self/maps").read_text().splitlines():
        where, _, _, device, number, *path = line.split(maxsplit=5)
        if not path or not path[0].startswith(folder + "/"):
            continue
        major, minor = (int(part, 16) for part in device.split(":"))
        key = (os.makedev(major, minor), int(number))
        try:
            files[key] = os.stat(f"/proc/self/map_files/{where}").st_blocks * 512
        except OSError:
            first, last = (int(end, 16) for end in where.split("-"))
            files[key] = max(files.get(key, 0), last - first)
    return files
