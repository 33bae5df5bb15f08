"""Programs in C: compiled once, then started on SFM's library or on MPICH's.

Each start is a separate job, which prints lines of JSON. So a library whose waiting ranks keep a
core busy does so only while it is measured.
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
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sfm_kernel.errors import SFMError, pip_install
from sfm_kernel.lessons.measure.launched import beside
from sfm_kernel.lessons.measure.rows import Row
from sfm_kernel.spawn.process import end, start

SOURCES = Path(__file__).with_name("sources")
FLAGS = ("-O2", "-std=gnu11", "-Wall")

SFM, MPICH = "SFM", "MPICH"
"""The libraries. Programs are compiled with the header of their library, by the same compiler."""

LONGEST = 300.0
"""Seconds after which a program is assumed to hang, and ended."""

_GRACE = 5.0
"""Seconds between asking a program to end and killing it."""


def compiler() -> list[str] | None:
    """The C compiler for all programs; None if there is none."""
    for name in (os.environ.get("CC"), "gcc", "cc", "clang"):
        if name and (found := shutil.which(name)):
            return [found]
    return [sys.executable, "-m", "ziglang", "cc"] if find_spec("ziglang") else None


def absent(library: str) -> str | None:
    """Why programs cannot run on this library here, and what to install; None if they can."""
    if compiler() is None:
        return f"C is left out, there is no C compiler: {pip_install('ziglang>=0.14')} brings one"
    if library == SFM and not _is_built():
        return "C is left out, libmpi.so.12 was not built: install sfm-kernel again"
    if library == MPICH and not (beside("mpicc") and beside("mpiexec") and _is_mpich()):
        return f"MPICH is left out, there is no mpicc of it: {pip_install('mpich>=5')}"
    return None


def _is_built() -> bool:
    try:
        return all(Path(word).exists() for word in _sfm_c("--libs") if word[0] != "-")
    except SFMError:
        return False


def _is_mpich() -> bool:
    shown = subprocess.run([str(beside("mpicc")), "-show"], capture_output=True, text=True)
    version = [str(beside("mpiexec")), "--version"]
    return (
        shown.returncode == 0
        and "HYDRA" in subprocess.run(version, capture_output=True, text=True).stdout
    )


class Programs:
    """Compiled programs in a temporary folder; a context manager that removes it.

    Args:
        sources: the folder of the sources, which may include ``measure.h``.
    """

    def __init__(self, sources: Path = SOURCES) -> None:
        self._sources = sources
        self._folder = tempfile.TemporaryDirectory(prefix="sfm-bench-c-")
        self.folder = Path(self._folder.name)

    def compiled(self, name: str, library: str | None = SFM) -> Path:
        """The file of a program; ``library`` is None for a program without messages.

        Raises:
            SFMError: it cannot be compiled; the message has the compiler's errors.
        """
        program = self.folder / f"{name}-{library}"
        if not program.exists():
            command = _compiling(library)
            command += [*FLAGS, f"-I{SOURCES}", str(self._sources / f"{name}.c")]
            command += ["-o", str(program)]
            command += [*(_sfm_c("--libs") if library == SFM else ()), "-lm"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                raise SFMError(f"{name}.c cannot be compiled for {library}:\n{done.stderr.strip()}")
        return program

    def run(self, name: str, library: str, n: int, *arguments: object) -> Iterator[Row]:
        """Run a program on ``n`` ranks; yield each line of JSON that it prints, as it comes.

        Raises:
            SFMError: it failed, or took ``LONGEST`` seconds; the message has its output.
        """
        program = [str(self.compiled(name, library)), *map(str, arguments)]
        if library == SFM:
            command = [sys.executable, "-m", "sfm_kernel.mpi", "-n", str(n), *program]
        else:
            command = [str(beside("mpiexec")), "-n", str(n), *program]
        yield from rows_of(command, f"{name} on {library}", self.folder)

    def __enter__(self) -> Programs:
        return self

    def __exit__(self, *error: object) -> None:
        self._folder.cleanup()


def _compiling(library: str | None) -> list[str]:
    chosen = compiler()
    if chosen is None:
        raise SFMError(str(absent(SFM)))
    if library == MPICH:  # its wrapper would use the compiler that MPICH was built with
        return [str(beside("mpicc")), f"-cc={' '.join(chosen)}"]
    return [*chosen, *(_sfm_c("--cflags") if library == SFM else ())]


def _sfm_c(option: str) -> list[str]:
    command = [sys.executable, "-m", "sfm_kernel.c", option]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SFMError(f"{' '.join(command[1:])} failed: {done.stderr.strip()}")
    return done.stdout.split()


def rows_of(command: Sequence[str], name: str, folder: Path) -> Iterator[Row]:
    """Run a command in a folder; yield the lines of JSON that it prints, as they come.

    The command is ended when the caller closes the generator.
    """
    with tempfile.TemporaryFile("w+", dir=folder) as stderr:
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": stderr}
        process = start(command, cwd=folder, text=True, **streams)
        printed = []
        late = threading.Timer(LONGEST, end, [[process], _GRACE])
        late.daemon = True
        late.start()
        try:
            assert process.stdout is not None
            for line in process.stdout:
                row = _row(line)
                if row is None:
                    printed.append(line)
                else:
                    yield row
            status = process.wait()
        finally:
            late.cancel()
            end([process], _GRACE)
        if status != 0:
            stderr.seek(0)
            words = "".join([*printed, stderr.read()]).strip()[-2000:]
            raise SFMError(f"{name} ended with status {status}" + (f":\n{words}" if words else ""))


def rows_in(text: str) -> Iterator[Row]:
    """The lines of JSON in a text; each may have a prefix, for example a rank."""
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
