"""What people, build tools and extensions ask for an MPI, answered with this one.

They look for mpiexec and mpicc on PATH, for pkg-config's description of a library, at
``mpi4py.get_config()``, and with ``ctypes.util.find_library``. The programs that are built are
linked with our libmpi.so.12; in a Python process that name is the core's alias (``alias.py``).
Ranks and engines are answered, ranks in C the first two questions only.

The commands are in a folder of their own, which knows this Python and its compiler. It is put
before PATH, and never into the environment's bin: MPICH's wheel and conda's package have theirs
there. A notebook's kernel finds them if it finds no other mpiexec (``offer``).
"""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from sfm_kernel.c import INCLUDE, LIB, LIBMPI, tools
from sfm_kernel.c.cache import LASTING, Cache, key
from sfm_kernel.errors import CompileError

_NAMES = ("mpi", "mpich")
"""The names by which libraries of MPI are asked for."""

_WRAPPER = """\
#!/bin/sh
# A compiler with the options of sfm-kernel's MPI; -show prints the command.
case " $* " in *" -show "* | *" -compile_info "* | *" -link_info "*)
    echo {words} {libraries}
    exit ;;
esac
exec {words} "$@" {libraries}
"""

_LAUNCHER = """\
#!/bin/sh
# sfm-kernel's launcher of MPI programs.
exec {words} "$@"
"""

LAUNCH = """\
import sys
if not sys.flags.safe_path:
    sys.path[0] = sys.path[1]
import runpy
runpy._run_module_as_main("sfm_kernel.mpi")
"""
"""``python -c LAUNCH`` is ``python -m sfm_kernel.mpi`` without the current folder in sys.path: a
file there could replace one of Python's modules. The program would inherit the option -P."""

_DESCRIPTION = """\
Name: mpi
Description: sfm-kernel's MPI
Version: 4.1
Cflags: {include}
Libs: {libraries}
"""


def install() -> None:
    """Answer Python's questions in this process, and the forks that follow. Idempotent."""
    import ctypes.util  # with subprocess, which the launcher of C does without

    _folder()  # once for all forks
    if not isinstance(ctypes.util.find_library, _Find):
        ctypes.util.find_library = _Find(ctypes.util.find_library)
    if (module := sys.modules.get("mpi4py")) is not None:
        answer(module)


def answer(module: ModuleType) -> None:
    """Have ``mpi4py.get_config`` return our compilers, with what else it knows. Idempotent."""
    known: Callable[[], dict[str, str]] | None = getattr(module, "get_config", None)
    if known is None or getattr(known, "is_ours", False):
        return  # None in a package of that name that is not mpi4py

    @functools.wraps(known)
    def get_config() -> dict[str, str]:
        wrappers = {name: os.path.join(commands(), name) for name in ("mpicc", "mpicxx")}
        return known() | wrappers

    get_config.is_ours = True  # type: ignore[attr-defined]
    module.get_config = get_config  # type: ignore[attr-defined]


def find(name: str, path: Any) -> ModuleSpec | None:
    """The spec of the package mpi4py, which is answered for once it is imported."""
    spec = PathFinder.find_spec(name, path)
    if spec is None or spec.loader is None:
        return None
    execute = spec.loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        answer(module)

    spec.loader.exec_module = exec_module  # type: ignore[method-assign]
    return spec


def commands() -> str:
    """The folder of mpiexec and mpicc.

    Raises:
        OSError: it cannot be written.
    """
    return os.path.join(_folder(), "bin")


def other(name: str) -> str | None:
    """The path of a command on PATH that is not one of ours."""
    ours = Cache().folder + os.sep
    places = os.environ.get("PATH", os.defpath).split(os.pathsep)
    path = os.pathsep.join(place for place in places if not place.startswith(ours))
    return shutil.which(name, path=path)


def offer() -> None:
    """Put our commands first on this process's PATH, unless there is another mpiexec."""
    if other("mpiexec") is None:
        with suppress(OSError):  # without a place for them a notebook goes on
            os.environ["PATH"] = variables()["PATH"]


def variables() -> dict[str, str]:
    """The variables by which commands find our compilers and pkg-config our library."""
    found = {}
    for name, below in {"PATH": "bin", "PKG_CONFIG_PATH": "pkgconfig"}.items():
        ours, others = os.path.join(_folder(), below), os.environ.get(name, "")
        places = [place for place in others.split(os.pathsep) if place and place != ours]
        found[name] = os.pathsep.join([ours, *places])
    return found


class _Find:
    """``ctypes.util.find_library``, which knows our library by its names."""

    def __init__(self, known: Callable[[str], str | None]) -> None:
        self._known = known

    def __call__(self, name: str) -> str | None:
        return os.path.basename(LIBMPI) if name in _NAMES else self._known(name)


@functools.cache
def _folder() -> str:
    """The folder of the commands and descriptions, which the user's cache keeps."""
    include, libraries = f"-I{INCLUDE}", shlex.join([f"-Wl,-rpath,{LIB}", LIBMPI])
    files: dict[str, str] = {}
    for language, usual, names in (("c", "cc", ["mpicc"]), ("c++", "c++", ["mpicxx", "mpic++"])):
        try:
            command = tools.find(language).command
        except CompileError:
            command = (usual,)  # it may be installed later
        words = shlex.join([*command, include])
        text = _WRAPPER.format(words=words, libraries=libraries)
        files |= {f"bin/{name}": text for name in names}
    launcher = _LAUNCHER.format(words=shlex.join([sys.executable, "-c", LAUNCH]))
    files |= {f"bin/{name}": launcher for name in ("mpiexec", "mpirun")}
    description = _DESCRIPTION.format(include=include, libraries=libraries)
    files |= {f"pkgconfig/{name}.pc": description for name in _NAMES}
    cache, entry = Cache(), f"{LASTING}{key(sorted(files.items()))}"
    found = cache.find(entry)
    if found is not None:
        return found[0]
    folder = cache.new()
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o700)
    return cache.keep(folder, entry, ())
