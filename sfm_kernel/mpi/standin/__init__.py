"""What ``import mpi4py`` gives where ``sfm_kernel.mpi.launch.standin.install()`` was called.

    MPI       sfm_kernel.mpi.MPI
    util      sfm_kernel.mpi.util: dtlib, pkl5, pool, sync
    futures   sfm_kernel.mpi.futures
    rc        the options that programs set before they import MPI
    run       runs a program, and aborts all ranks when one raises
    bench     small programs: helloworld, ringtest
    typing    the types of arguments

Nothing here is compiled: there is no C interface, so no include folder either.
"""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Iterable
from typing import Any, NoReturn

__version__ = "4.1.2"
"""The version of mpi4py whose interface is offered."""

__author__ = "the sfm-kernel developers"
__credits__ = "Lisandro Dalcin, who designed the interface"

__all__ = ["MPI"]

_OWN = ("bench", "run", "typing")
_ELSEWHERE = ("MPI", "futures", "util")


class Rc:
    """The options of MPI in this process. They are read when MPI is imported, and by its calls.

    Attributes:
        initialize: join the world when MPI is imported.
        threads, thread_level: the level that ``MPI.Query_thread`` tells.
        finalize: leave the world at the end of the program; None: if it was joined at import.
        fast_reduce, recv_mprobe, irecv_bufsz: there for programs that set them. Reductions of
            objects are fast and receives of objects have no size in any case.
        errors: "exception", "default", "abort" or "fatal": what errors do.
    """

    initialize: bool = True
    threads: bool = True
    thread_level: str = "multiple"
    finalize: bool | None = None
    fast_reduce: bool = True
    recv_mprobe: bool = True
    irecv_bufsz: int = 32768
    errors: str = "exception"

    def __init__(self, **options: Any) -> None:
        self(**options)

    def __call__(self, **options: Any) -> None:
        """Set options.

        Raises:
            TypeError: there is no such option; none was set.
        """
        for name in options:
            _check_option(name)
        for name, value in options.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        _check_option(name)
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        return "<mpi4py.rc>"


def _check_option(name: str) -> None:
    if name not in Rc.__annotations__:
        raise TypeError(f"mpi4py.rc has no option {name!r}, only {', '.join(Rc.__annotations__)}")


rc = Rc()


def get_include() -> NoReturn:
    """There is no C interface.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        "this mpi4py is sfm_kernel's, in Python: it has no C headers. A compiled extension that "
        "calls MPI itself needs an MPI library and the mpi4py that is built on it"
    )


def get_config() -> dict[str, str]:
    """How MPI was built: nothing was."""
    return {}


def profile(name: str, *, path: str | os.PathLike[str] | Iterable[Any] | None = None) -> None:
    """Warn that a profiler sees nothing: no MPI library is called.

    Raises:
        ValueError: there is no such file.
    """
    if path is None:
        folders: list[Any] = [""]
    elif isinstance(path, (str, bytes)):
        folders = os.fsdecode(path).split(os.pathsep)
    else:
        folders = [path] if isinstance(path, os.PathLike) else list(path)
    for folder in folders:
        for file in (os.fsdecode(name), f"lib{os.fsdecode(name)}.so"):
            if os.path.isfile(found := os.path.join(os.fsdecode(folder), file)):
                text = f"{found} is not loaded: a profiler of MPI's C calls would see none here"
                warnings.warn(text, stacklevel=2)
                return
    raise ValueError(f"profiler {name!r} was not found")


def __getattr__(name: str) -> Any:
    # `from mpi4py import x` asks here, since the import system takes this module's own name.
    if name in _OWN:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _ELSEWHERE:
        return importlib.import_module(f"sfm_kernel.mpi.{name}")
    raise AttributeError(f"module 'mpi4py' has no attribute {name!r}")
