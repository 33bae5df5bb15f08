"""Connects the real mpi4py with this process's core: ``sfm_kernel._native`` has MPI's functions.

mpi4py asks the dynamic linker for MPICH's library, which is loaded already (alias.py). A call that
waits in native code can end only with an error code. This module makes it behave as a call of
Python: an exception of a signal handler is raised in the line that made the call, and observers see
the call as that line has it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import FrameType
from typing import Any

from sfm_kernel._native import set_mpi, set_mpi_buffering
from sfm_kernel.c import LIBMPI, LIBMPI_ABI
from sfm_kernel.errors import SFMError, pip_install
from sfm_kernel.mpi import alias, arguments, discovery
from sfm_kernel.mpi.launch import elf

_FOLDERS = [os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep]
"""Folders whose code does not belong to the program."""


def load() -> None:
    """Load mpi4py's module, so that forked processes need not load it again.

    Raises:
        SFMError: no mpi4py is installed that accepts this library.
    """
    import ctypes

    path, needed = module()
    if LIBMPI_ABI.endswith(needed):  # the core itself has only MPICH's ABI
        ctypes.CDLL(LIBMPI_ABI)
    else:
        alias.load()
    ctypes.CDLL(path)


def module() -> tuple[str, str]:
    """The file of mpi4py's module, and the name of our library that it was linked with."""
    from importlib.util import find_spec

    found = find_spec("mpi4py")
    if found is None or not found.submodule_search_locations:
        raise SFMError(f"mpi4py is not installed: `{pip_install('mpi4py>=4.1')}`")
    for folder in found.submodule_search_locations:
        for name in sorted(os.listdir(folder)):
            if name.startswith("MPI.") and name.endswith(".so"):
                path = os.path.join(folder, name)
                try:
                    needed = elf.read(path).needed
                except (OSError, ValueError):  # the file is damaged
                    continue
                for library in (LIBMPI, LIBMPI_ABI):
                    if os.path.basename(library) in needed:
                        return path, os.path.basename(library)
    raise SFMError(
        "the mpi4py that is installed was built for another MPI; it has to be one for MPICH's ABI, "
        f"as `{pip_install('mpi4py>=4.1')}` brings it, or for that of MPI 5.0"
    )


def is_running() -> bool:
    """Whether this process is between MPI_Init and MPI_Finalize."""
    module = sys.modules.get("mpi4py.MPI")
    return module is not None and module.Is_initialized() and not module.Is_finalized()


def is_lost(error: BaseException) -> bool:
    """Whether a call has failed because another process has ended or has left the call."""
    module = sys.modules.get("mpi4py.MPI")
    if module is None or not isinstance(error, module.Exception):
        return False
    return bool(error.Get_error_class() == module.ERR_PROC_ABORTED)


class Check:
    """Checks mpi4py before an engine imports it: one for another MPI would see only this engine."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Raise ImportError if mpi4py's module is for another MPI."""
        if name == "mpi4py":
            return discovery.find(name, path)
        if name != "mpi4py.MPI":
            return None
        try:
            _, needed = module()
        except SFMError as problem:
            raise ImportError(str(problem), name=name) from None
        if not LIBMPI.endswith(needed):
            raise ImportError(
                "the mpi4py that is installed was built for the ABI of MPI 5.0; engines need one "
                f"for MPICH's: `{pip_install('mpi4py>=4.1')}`. The launcher takes both",
                name=name,
            )
        return None


def install() -> None:
    """Make mpi4py use this process's MPI when it is imported, and no other. Idempotent."""
    connect()
    discovery.install()
    os.environ.update(discovery.variables())
    os.environ["MPI4PY_MPIABI"] = "mpich"
    os.environ.pop("MPI4PY_LIBMPI", None)


def connect() -> None:
    """Load this process's MPI under the name by which mpi4py asks for one. Idempotent."""
    alias.load()
    set_mpi(call_of, site_of, noted, reduction)


def buffering(nbytes: int) -> None:
    """Set the bytes of standard sends that may wait unreceived at one process before a send waits.

    With 0, ``send`` and ``Send`` return, and ``isend`` is complete, only when a receive has
    matched. This reveals programs that are wrong and work only as long as messages are small. The
    setting applies to later sends of this process in all communicators.
    (``from sfm_kernel import mpi``.)

    Raises:
        ValueError: ``nbytes`` is not a number of bytes.
    """
    if type(nbytes) is not int or not 0 <= nbytes < 1 << 63:
        raise ValueError(f"buffering is a number of bytes, 0 or more, not {nbytes!r}")
    set_mpi_buffering(nbytes)


def noted() -> Callable[[str], None] | None:
    """A function that adds a text to the exception that mpi4py is about to raise for its caller.

    None if the program pickles in a way of its own, so that nobody knows what mpi4py can read.
    """
    if not sys.modules["mpi4py.MPI"].pickle.dumps(None).startswith(b"\x80"):
        return None
    frame = _innermost()

    def add(text: str) -> None:
        if frame is None:
            return
        local, everywhere = frame.f_trace, sys.gettrace()

        def note(frame: FrameType, event: str, about: Any) -> Any:
            if event == "exception" and isinstance(about[1], Exception):
                about[1].add_note(text)
            frame.f_trace = local
            sys.settrace(everywhere)
            return local

        frame.f_trace = note
        sys.settrace(lambda *_: None)

    return add


def _innermost() -> FrameType | None:
    """The program's innermost frame."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_hidden(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def call_of() -> tuple[str, list[tuple[str, str]]] | None:
    """The call in the program's innermost frame, as its source has it: ``comm.recv``.

    With those of its arguments that MPI does not get, since mpi4py uses them itself.
    """
    frame = _innermost()
    if frame is None or (text := called(frame)) is None:
        return None
    return text, arguments.given(frame)


def reduction() -> tuple[str, str | None, int | None, bool] | None:
    """The reduction of objects in the program's innermost frame: see ``arguments.reduction``."""
    frame = _innermost()
    return None if frame is None else arguments.reduction(frame)


def site_of(frame: FrameType) -> tuple[str | None, str, int] | None:
    """A frame's call, its code for observers, and its line; None if the frame is not the program's.

    It is asked once about each call; operations that were begun there and not ended are reported
    with it at the end of the program.
    """
    from sfm_kernel.endpoint.seen import locate

    code = frame.f_code
    if _is_hidden(code.co_filename):
        return None
    location = locate(code.co_filename, code.co_name, always=True) or ""
    return called(frame), location, frame.f_lineno


def _is_hidden(filename: str) -> bool:
    if len(_FOLDERS) == 1 and (module := sys.modules.get("mpi4py")) is not None:
        _FOLDERS.append(os.path.dirname(str(module.__file__)) + os.sep)
    return filename.startswith(tuple(_FOLDERS))


def called(frame: FrameType) -> str | None:
    """The call that a frame is making; None if its source is unavailable or has no call there."""
    node = arguments.call_in(frame)
    return None if node is None else arguments.name_of(node.func, frame)
