"""A library called libmpi.so.12 that leads to the core of this process.

The compiled core has MPI's functions. mpi4py asks the dynamic linker for libmpi.so.12, and other
extensions look for a mapped file of that name and call it through ctypes. The alias is such a file:
it has no code, and needs the core, so that the linker finds all functions there. Only a process
that is to use this MPI loads it; elsewhere another MPI can be loaded beside the core.
"""

from __future__ import annotations

import os
import struct

from sfm_kernel import _native
from sfm_kernel.c import LIBMPI
from sfm_kernel.c.cache import Cache, key
from sfm_kernel.mpi.launch import elf

_CORE = "sfm_kernel._native"
"""The name that the core gives itself: native/python/build.rs."""

_loaded = ""


def load() -> str:
    """Load the alias; returns its path. Idempotent.

    Raises:
        OSError: it cannot be written or loaded.
    """
    global _loaded
    if not _loaded:
        import ctypes

        path = _file(_library(os.path.basename(LIBMPI), _CORE))
        ctypes.CDLL(path)
        _loaded = path
    return _loaded


def _file(contents: bytes) -> str:
    """The path of the alias, which the user's cache keeps."""
    name, cache = os.path.basename(LIBMPI), Cache()
    entry = key("alias", contents)
    found = cache.find(entry)
    if found is not None:
        return os.path.join(found[0], name)
    folder = cache.new()
    with open(os.path.join(folder, name), "wb") as file:
        file.write(contents)
    return os.path.join(cache.keep(folder, entry, ()), name)


def _library(name: str, needed: str) -> bytes:
    """An empty shared library of this machine, as the ELF specification describes it."""
    machine = elf.machine(os.uname().machine)
    strings = f"\0{name}\0{needed}\0".encode()
    dynamic_at, count = 64 + 3 * 56, 8
    symbols_at = dynamic_at + count * 16
    hash_at = symbols_at + 24
    strings_at = hash_at + 16
    size = strings_at + len(strings)
    dynamic = [
        (elf.NEEDED, 2 + len(name)), (elf.NAMED, 1), (elf.HASH, hash_at),
        (elf.STRINGS, strings_at), (elf.SIZE_OF_STRINGS, len(strings)),
        (elf.SYMBOLS, symbols_at), (elf.SIZE_OF_SYMBOL, 24), (0, 0),
    ]  # fmt: skip
    read_write = 6
    segments = [
        (elf.LOADED, read_write, 0, size, 1 << 16),
        (elf.DYNAMIC, read_write, dynamic_at, count * 16, 8),
        (elf.STACK, read_write, 0, 0, 16),
    ]
    header = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\2\1\1", elf.SHARED, machine, 1, 0, 64, 0, 0, 64, 56, len(segments), 64, 0, 0,
    )  # fmt: skip
    parts = [header]
    for kind, flags, at, length, align in segments:
        parts.append(struct.pack("<IIQQQQQQ", kind, flags, at, at, at, length, length, align))
    parts += [struct.pack("<qQ", *entry) for entry in dynamic]
    parts += [bytes(24), struct.pack("<IIII", 1, 1, 0, 0), strings]  # no symbol
    return b"".join(parts)


assert _native.__name__ == _CORE  # it is loaded: the linker finds it by its name
