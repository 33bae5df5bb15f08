"""Programs in C: compiled once, then started on SFM's library or on MPICH's.

Each start is a job of its own that prints lines of JSON. So a library whose ranks keep a core busy
while they wait does so only while it is measured.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sfm_kernel.errors import SFMError
from sfm_kernel.lessons.measure.rows import Row
from sfm_kernel.spawn.process import end, start

SOURCES = Path(__file__).with_name("sources")
FLAGS = ("-O2", "-std=gnu11", "-Wall")

SFM, MPICH = "SFM", "MPICH"
"""The libraries. Programs for each are compiled with its own header, by the same compiler."""

LONGEST = 300.0
"""Seconds after which a program is ended: one that has taken so long hangs."""

_GRACE = 5.0
"""Seconds between asking a program to end and killing it."""


def beside(tool: str) -> str | None:
    """A command of this Python's environment, or else of the PATH."""
    own = Path(sys.executable).with_name(tool)
    return str(own) if own.exists() else shutil.which(tool)


def compiler() -> list[str] | None:
    """The C compiler that all programs are compiled with; None where there is none."""
    for name in (os.environ.get("CC"), "gcc", "cc", "clang"):
        if name and (found := shutil.which(name)):
            return [found]
    return [sys.executable, "-m", "ziglang", "cc"] if find_spec("ziglang") else None


def absent(library: str) -> str | None:
    """Why programs cannot run on this library here, and how to get it; None if they can."""
    if compiler() is None:
        return "C is left out, there is no C compiler: pip install 'sfm-kernel[c]' brings one"
    if library == SFM and not _is_built():
        return "C is left out, libmpi.so.12 was not built: install sfm-kernel again"
    if library == MPICH and not (beside("mpicc") and beside("mpiexec") and _is_mpich()):
        return "MPICH is left out, there is no mpicc of it: pip install 'sfm-kernel[bench]'"
    return None


def _is_built() -> bool:
    try:
        return all(Path(word).exists() for word in _said_by_sfm("--libs") if word[0] != "-")
    except SFMError:
        return False


def _is_mpich() -> bool:
    said = subprocess.run([str(beside("mpicc")), "-show"], capture_output=True, text=True)
    version = [str(beside("mpiexec")), "--version"]
    return (
        said.returncode == 0
        and "HYDRA" in subprocess.run(version, capture_output=True, text=True).stdout
    )


class Programs:
    """Compiled programs in a folder of their own; a context manager that removes it.

    Args:
        sources: the folder of their sources, which may include ``measure.h``.
    """

    def __init__(self, sources: Path = SOURCES) -> None:
        self._sources = sources
        self._stack = ExitStack()
        folder = tempfile.TemporaryDirectory(prefix="sfm-bench-c-")
        self.folder = Path(self._stack.enter_context(folder))

    def compiled(self, name: str, library: str | None = SFM) -> Path:
        """The file of a program; ``library`` is None for one that needs neither.

        Raises:
            SFMError: it cannot be compiled; the compiler's words are in the message.
        """
        program = self.folder / f"{name}-{library}"
        if not program.exists():
            command = _compiling(library)
            command += [*FLAGS, f"-I{SOURCES}", str(self._sources / f"{name}.c")]
            command += ["-o", str(program)]
            command += [*(_linking() if library == SFM else ()), "-lm"]
            said = subprocess.run(command, capture_output=True, text=True)
            if said.returncode != 0:
                raise SFMError(f"{name}.c cannot be compiled for {library}:\n{said.stderr.strip()}")
        return program

    def run(self, name: str, library: str, n: int, *arguments: object) -> Iterator[Row]:
        """Run a program on ``n`` ranks; yield each line of JSON that it prints, as it comes.

        Raises:
            SFMError: it failed, or took ``LONGEST`` seconds; what it wrote is in the message.
        """
        program = [str(self.compiled(name, library)), *map(str, arguments)]
        if library == SFM:
            command = [sys.executable, "-m", "sfm_kernel.mpi", "-n", str(n), *program]
        else:
            command = [str(beside("mpiexec")), "-n", str(n), *program]
        yield from rows_of(command, f"{name} on {library}", self.folder)

    def close(self) -> None:
        """Remove the folder."""
        self._stack.close()

    def __enter__(self) -> Programs:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _compiling(library: str | None) -> list[str]:
    chosen = compiler()
    if chosen is None:
        raise SFMError(str(absent(SFM)))
    if library == MPICH:  # its wrapper asks for the compiler that it was built with
        return [str(beside("mpicc")), f"-cc={' '.join(chosen)}"]
    return [*chosen, *(_said_by_sfm("--cflags") if library == SFM else ())]


def _linking() -> list[str]:
    return _said_by_sfm("--libs")


def _said_by_sfm(what: str) -> list[str]:
    command = [sys.executable, "-m", "sfm_kernel.c", what]
    said = subprocess.run(command, capture_output=True, text=True)
    if said.returncode != 0:
        raise SFMError(f"{' '.join(command[1:])} failed: {said.stderr.strip()}")
    return said.stdout.split()


def rows_of(command: Sequence[str], what: str, folder: Path) -> Iterator[Row]:
    """Run a command in a folder; yield the lines of JSON that it prints, as they come.

    It is ended when the caller wants no more rows.
    """
    with tempfile.TemporaryFile("w+", dir=folder) as stderr:
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": stderr}
        process = start(command, cwd=folder, text=True, **streams)
        said = []
        late = threading.Timer(LONGEST, end, [[process], _GRACE])
        late.daemon = True
        late.start()
        try:
            assert process.stdout is not None
            for line in process.stdout:
                row = _row(line)
                if row is None:
                    said.append(line)
                else:
                    yield row
            status = process.wait()
        finally:
            late.cancel()
            end([process], _GRACE)
        if status != 0:
            stderr.seek(0)
            words = "".join([*said, stderr.read()]).strip()[-2000:]
            raise SFMError(f"{what} ended with status {status}" + (f":\n{words}" if words else ""))


def rows_in(text: str) -> Iterator[Row]:
    """The lines of JSON in a text, whatever stands before each of them (a rank, say)."""
    for line in text.splitlines():
        row = _row(line[line.find("{") :]) if "{" in line else None
        if row is not None:
            yield row


def _row(line: str) -> Row | None:
    try:
        found: Any = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
