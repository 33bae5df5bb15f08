"""A rank that runs a compiled program, or a program that a rank has spawned.

It joins the world through our libmpi.so.12 or libmpi_abi.so.1, which read its environment (SFM_DIR,
SFM_MPI_WORLD, SFM_MPI_RANK, SFM_MPI_SIZE), and reports on the socket whose descriptor is
SFM_MPI_REPORTS, as ``rank`` does for Python.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, NoReturn

from sfm_kernel.c import LIB, LIBMPI, LIBMPI_ABI
from sfm_kernel.errors import SFMError
from sfm_kernel.mpi.launch import elf, reports
from sfm_kernel.spawn.forked import take_signals
from sfm_kernel.spawn.lifeline import die_with

_NOT_STARTED = 127
"""The exit status, as in shells, of a process that could not become its program."""


class WrongProgram(SFMError):
    """A compiled program that cannot run here, or not with our MPI; the text says why."""


class Native(NamedTuple):
    """A program that the system runs.

    Attributes:
        path: the program's file.
        words: its arguments; the first is its name.
        folder: its working folder; "": the launcher's.
        environment: variables in addition to those of all ranks.
        temporary: a temporary folder of this run.
    """

    path: str
    words: tuple[str, ...]
    folder: str = ""
    environment: Mapping[str, str] = MappingProxyType({})
    temporary: str = ""


def compiled(words: Sequence[str]) -> Native:
    """A compiled program with its arguments.

    Raises:
        WrongProgram: the program is for another machine, or was linked with another MPI.
    """
    path, *arguments = words
    if problem := unfit(path):
        raise WrongProgram(problem)
    return Native(os.path.abspath(path), (path, *arguments), environment=_libraries(path))


def execute(program: Native, environment: Mapping[str, str], launcher: int, fd: int) -> NoReturn:
    """Become the program, in a new process.

    Args:
        environment: the environment, without the program's own variables.
        launcher: the launcher's process id; this process dies with it.
        fd: the descriptor of the socket for reports.
    """
    try:
        die_with(launcher)
        os.set_inheritable(fd, True)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
            signal.signal(number, signal.SIG_DFL)
        take_signals()
        if program.folder:
            os.chdir(program.folder)
        complete = {**environment, **program.environment, "SFM_MPI_REPORTS": str(fd)}
        complete["SFM_MPI_PID"] = str(os.getpid())  # its children are not ranks
        os.execve(program.path, list(program.words), complete)
    except BaseException as problem:  # noqa: BLE001 - this process is the launcher's copy
        text = f"{program.words[0]} cannot be started: {getattr(problem, 'strerror', problem)}\n"
        os.write(fd, json.dumps([reports.EXITED, _NOT_STARTED, text]).encode())
    finally:
        os._exit(_NOT_STARTED)


def unfit(path: str) -> str:
    """The reason why a compiled program cannot run on this machine with our MPI; "" if it can."""
    try:
        about = elf.read(path)
    except (OSError, ValueError) as problem:
        return f"{path} cannot be run: {problem}"
    here = os.uname().machine
    if not about.program:
        return f"{path} is a library, not a program"
    if about.machine != here and (about.machine, here) != ("i386", "x86_64"):
        return (
            f"{path} was compiled for {about.machine}, and this machine is {here}: compile it here"
        )
    if about.bits == 32 and _mpi(about):
        return f"{path} is a program of 32 bits, and our MPI has 64: compile it without -m32"
    if not os.access(path, os.X_OK):
        return f"{path} may not be run: chmod +x {path}"
    if foreign := [name for name in _mpi(about) if not name.startswith((*_OURS, *_KIN))]:
        return (
            f"{path} was linked with {_maker(foreign[0])} ({foreign[0]}); our library has the ABI "
            f"of MPICH, Intel MPI and MVAPICH (libmpi.so.12), and that of MPI 5.0 "
            f"(libmpi_abi.so.1). Give the launcher the source, which "
            f"it compiles itself, or compile it with `cc prog.c $(sfm-config --cflags --libs)`"
        )
    if _mpi(about) and not os.path.exists(_ours(about)):
        name = os.path.basename(_ours(about))
        return f"{path} needs {name}, which is missing here: install sfm-kernel again"
    return ""


_OURS = ("libmpi.so.12", "libmpi_abi.so.1")
_KIN = ("libmpicxx.so.12", "libmpifort.so.12", "libmpichcxx", "libmpichfort")
"""Layers above MPICH's library, for other languages."""


def _mpi(about: elf.Binary) -> list[str]:
    return [name for name in about.needed if name.startswith(("libmpi", "libmpich"))]


def _ours(about: elf.Binary) -> str:
    """Our library in the ABI that a program was compiled for."""
    is_abi = any(name.startswith("libmpi_abi") for name in about.needed)
    return LIBMPI_ABI if is_abi else LIBMPI


def _maker(library: str) -> str:
    if library.startswith("libmpi_abi"):
        return "a library of another version of MPI's common ABI"
    if library.startswith(("libmpi.so.40", "libmpi.so.20", "libmpi_")):
        return "Open MPI"
    return "another MPI"


def _libraries(path: str) -> dict[str, str]:
    """The variables that make the loader use our library for the one that a program names."""
    about = elf.read(path)
    if not _mpi(about):
        return {}
    if about.old_path:  # the loader then searches the program's own path first
        return {"LD_PRELOAD": ":".join(filter(None, (_ours(about), os.environ.get("LD_PRELOAD"))))}
    return {"LD_LIBRARY_PATH": _with_ours()}


def with_library() -> dict[str, str]:
    """The variables that make the loader use our library in a process and its children."""
    return {"LD_LIBRARY_PATH": _with_ours(), "MPI4PY_MPIABI": "mpich"}


def _with_ours() -> str:
    return ":".join(filter(None, (LIB, os.environ.get("LD_LIBRARY_PATH"))))
