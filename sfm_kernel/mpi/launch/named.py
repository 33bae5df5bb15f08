"""Checks the program that a command line names, before anything is started."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import takewhile

from sfm_kernel.mpi.launch import archives, sources


def missing(words: Sequence[str]) -> str:
    """The error in the words of a program; "" if they are correct."""
    if not words:
        return "no program: give a script, -m MODULE or -c TEXT"
    if words[0] in ("-m", "-c") and len(words) < 2:
        return f"{words[0]} needs {'the name of a module' if words[0] == '-m' else 'a text'}"
    if words[0].startswith("-") and words[0] not in ("-m", "-c", "-"):
        return f"there is no option {words[0]}"
    if words[0].startswith("-"):
        return ""
    if not os.path.exists(words[0]):
        note = "" if _is_path(words[0]) else ", and no program of that name on PATH"
        return f"there is no file {words[0]!r}{note}"
    is_native = sources.is_native(words)
    if not is_native and _is_other(words[0]):
        return (
            f"{words[0]} is neither a Python program nor a compiled one, and ranks run nothing "
            f"else; a file of this folder is named with its path"
        )
    has_main = os.path.exists(os.path.join(words[0], "__main__.py"))
    if os.path.isdir(words[0]) and not is_native and not has_main:
        command = "" if _is_path(words[0]) else _on_path(words[0])
        note = f"; the command of that name is run as {command}" if command else ""
        return f"the folder {words[0]} has no __main__.py, and no program in C or C++{note}"
    files = list(takewhile(sources.is_source, words))
    lacking = [name for name in files if not os.path.isfile(name)]
    return f"there is no file {lacking[0]!r}" if lacking else ""


def found(words: Sequence[str]) -> list[str]:
    """The same words, with a program's bare name replaced by its path if it is on PATH.

    mpiexec finds programs in the same way. A name with a slash or a suffix such as ".py" names a
    file, and so does a bare name that is not on PATH. What stands in the current folder as a folder
    or an archive comes before a command of the same name.
    """
    name, *arguments = words or [""]
    path = "" if _is_path(name) or archives.is_archive(name) else _on_path(name)
    return [path, *arguments] if path and not os.path.isdir(name) else list(words)


def _on_path(name: str) -> str:
    """The path of a command; "" if there is none of this name."""
    if not name or name.startswith("-"):
        return ""
    import shutil

    return shutil.which(name) or ""


def _is_path(name: str) -> bool:
    return os.sep in name or name.endswith((".py", *sources.SUFFIXES))


def _is_other(path: str) -> bool:
    """Whether a file is a script for another interpreter than Python."""
    if os.path.isdir(path):
        return False
    try:
        with open(path, "rb") as file:
            start = file.read(512)
    except OSError:  # the error is reported when the file is read
        return False
    if not start.startswith(b"#!") or path.endswith(".py"):
        return False
    first, _, second = start.partition(b"\n")
    # If Python's path is long, pip's scripts start it with the shell.
    return b"python" not in first and b"pypy" not in first and not second.startswith(b"'''exec'")
