"""What build tools and extensions ask for an MPI, answered with this one in ranks and engines.

They look for mpicc on PATH, for pkg-config's description of a library, at ``mpi4py.get_config()``,
and with ``ctypes.util.find_library``. The programs that they build are linked with our
libmpi.so.12; in a Python process that name is the core's alias (``alias.py``). Ranks in C are asked
for the first two only.
"""

from __future__ import annotations

import functools
import os
import shlex
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from sfm_kernel.c import INCLUDE, LIB, LIBMPI, tools
from sfm_kernel.c.cache import Cache, key
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
        bin_folder = os.path.join(_folder(), "bin")
        wrappers = {name: os.path.join(bin_folder, name) for name in ("mpicc", "mpicxx")}
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
    """The folder of the wrappers and descriptions, which the user's cache keeps."""
    include, libraries = f"-I{INCLUDE}", shlex.join([f"-Wl,-rpath,{LIB}", LIBMPI])
    files = {}
    for name, language, usual in (("mpicc", "c", "cc"), ("mpicxx", "c++", "c++")):
        try:
            command = tools.find(language).command
        except CompileError:
            command = (usual,)  # it may be installed later
        words = shlex.join([*command, include])
        files[f"bin/{name}"] = _WRAPPER.format(words=words, libraries=libraries)
    description = _DESCRIPTION.format(include=include, libraries=libraries)
    files |= {f"pkgconfig/{name}.pc": description for name in _NAMES}
    cache, entry = Cache(), key("discovery", sorted(files.items()))
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
