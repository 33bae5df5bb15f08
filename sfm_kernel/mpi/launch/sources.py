"""Makes programs that can be started from C sources, folders, archives and compiled programs.

Each is compiled or checked before the first process is started. Python programs stay as they are.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sfm_kernel.errors import CompileError, SFMError
from sfm_kernel.mpi.launch import archives, elf

if TYPE_CHECKING:
    from sfm_kernel.mpi.launch.native import Native

SUFFIXES = (".c", ".cc", ".cpp", ".cxx", ".c++", ".C")
_HEADERS = (".h", ".hh", ".hpp", ".hxx", ".H")
_SKIPPED = ("__MACOSX", "__pycache__")

Programs = list[tuple[int, "list[str] | Native"]]
"""The number of ranks, and their program: words for ``program.run``, or a compiled program."""


class WrongSources(SFMError):
    """A folder or an archive has no program, or several."""


def is_source(word: str) -> bool:
    """Whether a word is the name of a C or C++ source."""
    return word.endswith(SUFFIXES)


def is_native(words: Sequence[str]) -> bool:
    """Whether the program is compiled, or has to be: it is not a Python program."""
    first = words[0]
    if is_source(first) or elf.is_elf(first):
        return True
    if os.path.isdir(first):
        return not os.path.exists(os.path.join(first, "__main__.py")) and bool(_walk(first))
    return archives.is_archive(first) and not archives.holds(first, "__main__.py")


@contextmanager
def prepared(
    programs: Sequence[tuple[int, list[str]]], fast: bool, asan: bool
) -> Iterator[Programs]:
    """Make programs that can be started, until the end of the block.

    Args:
        programs: for each program the number of ranks and its words.
        fast: compile without checks.
        asan: compile with AddressSanitizer.
    Raises:
        CompileError: a source does not compile.
        WrongSources, BadArchive, WrongProgram: a program cannot be started for another reason.
    """
    if not any(is_native(words) for _, words in programs):
        yield list(programs)
        return
    from sfm_kernel.mpi.launch import native

    owner, folders = os.getpid(), _Folders()
    try:
        ready: Programs = []
        for size, words in programs:
            if not is_native(words):
                ready.append((size, words))
            elif elf.is_elf(words[0]):
                ready.append((size, native.compiled(words)))
            else:
                ready.append((size, _built(words, fast, asan, folders)))
        yield ready
    finally:
        if os.getpid() == owner:
            folders.remove()


class _Folders:
    """The folders that archives were unpacked into."""

    def __init__(self) -> None:
        self._folders: list[tuple[str, str, dict[str, tuple[int, int]]]] = []

    @property
    def newest(self) -> str:
        """The path of the last folder; "" if there is none."""
        return self._folders[-1][1] if self._folders else ""

    def unpacked(self, archive: str) -> str:
        """Unpack an archive into a new folder. Returns that folder, or the only folder in it."""
        import tempfile

        folder = tempfile.mkdtemp(prefix="sfm-program-")
        self._folders.append((archive, folder, {}))
        archives.unpack(archive, folder)
        self._folders[-1] = archive, folder, _files(folder)
        names = [name for name in os.listdir(folder) if name[0] != "." and name not in _SKIPPED]
        only = os.path.join(folder, names[0]) if len(names) == 1 else folder
        return only if os.path.isdir(only) else folder

    def remove(self) -> None:
        """Remove the folders. A folder in which the program has written stays, and stderr has its
        path."""
        for archive, folder, before in self._folders:
            written = [name for name, about in _files(folder).items() if before.get(name) != about]
            if before and written:
                more = f" and {len(written) - 3} more" if len(written) > 3 else ""
                names = ", ".join(sorted(written)[:3])
                print(f"sfm: {archive} wrote {names}{more}: in {folder}", file=sys.stderr)
            else:
                import shutil

                shutil.rmtree(folder, ignore_errors=True)


def _files(folder: str) -> dict[str, tuple[int, int]]:
    found = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            about = os.lstat(path)
            found[os.path.relpath(path, folder)] = about.st_size, about.st_mtime_ns
    return found


def _built(words: list[str], fast: bool, asan: bool, folders: _Folders) -> Native:
    from sfm_kernel.c import compiler
    from sfm_kernel.mpi.launch.native import Native

    first, private, folder = words[0], False, ""
    if is_source(first):
        names = list(itertools.takewhile(is_source, words))
        arguments = words[len(names) :]
        beside: list[str] = []
    else:
        private = not os.path.isdir(first)
        folder = folders.unpacked(first) if private else first
        names, beside = _program_of(first, folder)
        arguments = words[1:]
    files = [compiler.file(name) for name in names]
    built = compiler.build(
        files, fast=fast, asan=asan, folder=folder, beside=beside if private else (), headers=beside
    )
    if built.compiled and built.warnings:
        print(built.warnings, end="", file=sys.stderr, flush=True)
    called = os.path.splitext(names[0] if not folder else os.path.basename(names[0]))[0]
    runs_in = os.path.abspath(folder) if folder else ""
    return Native(built.path, (called, *arguments), folder=runs_in, temporary=folders.newest)


def _program_of(name: str, folder: str) -> tuple[list[str], list[str]]:
    """The sources of the only program in a folder, and its headers; relative to the folder."""
    found = _walk(folder)
    sources = [path for path in found if is_source(path)]
    mains = [path for path in sources if _has_main(os.path.join(folder, path))]
    if not sources:
        raise WrongSources(f"{name} holds no C or C++ source ({', '.join(SUFFIXES)})")
    if not mains:
        raise WrongSources(f"{name}: no source in it has a main, where a program begins")
    if len(mains) > 1:
        listed = ", ".join(mains[:5]) + (", …" if len(mains) > 5 else "")
        raise WrongSources(
            f"{name} holds {len(mains)} programs ({listed}): name the source files of one"
            + ("" if os.path.isdir(name) else ", after unpacking it")
        )
    others = [path for path in sources if path not in mains]
    return [*mains, *others], [path for path in found if path.endswith(_HEADERS)]


def _walk(folder: str) -> list[str]:
    """The sources and headers below a folder, relative to the folder."""
    found = []
    for parent, below, names in os.walk(folder):
        below[:] = sorted(name for name in below if name[0] != "." and name not in _SKIPPED)
        sources = [name for name in names if name.endswith((*SUFFIXES, *_HEADERS))]
        found += [os.path.relpath(os.path.join(parent, name), folder) for name in sorted(sources)]
    return found


def _has_main(path: str) -> bool:
    from sfm_kernel.c.text import defines_main

    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return defines_main(file.read())
    except OSError as problem:
        raise CompileError(f"{path} cannot be read: {problem.strerror}") from None
