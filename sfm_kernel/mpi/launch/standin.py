"""Makes ``import mpi4py`` give ``sfm_kernel.mpi`` in this process.

Every module has one name of its own; a name of mpi4py is a second way to the same module:

    mpi4py, mpi4py.run, …               sfm_kernel.mpi.standin, sfm_kernel.mpi.standin.run, …
    mpi4py.MPI, .util(.…), .futures(.…)  sfm_kernel.mpi.MPI, .util(.…), .futures(.…)

So classes are pickled by their own names, and reach processes that use either.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import CodeType, ModuleType
from typing import Any

_THEIRS = "mpi4py"
_OURS = "sfm_kernel.mpi"
_PARTS = ("MPI", "util", "futures")
"""What lies in ``sfm_kernel.mpi`` itself, the rest in its package ``standin``."""

_hidden: dict[str, ModuleType] = {}
"""Modules of the real mpi4py's package that were loaded before."""


def install() -> None:
    """``import mpi4py``, and of anything inside it, gives ours. Harmless when repeated.

    Raises:
        ImportError: the real ``mpi4py.MPI`` is loaded, and so MPI is running. Nothing is changed.
    """
    if installed():
        return
    if f"{_THEIRS}.MPI" in sys.modules:
        raise ImportError(
            "the real mpi4py.MPI is loaded in this process, and MPI cannot be taken back. Restart "
            "the process (an engine: %sfm restart), and do this before the first `import mpi4py`"
        )
    _hidden.update(_forget())
    sys.meta_path.insert(0, _FINDER)
    from sfm_kernel.mpi.standin import rc

    sys.modules[f"{_THEIRS}.rc"] = rc  # type: ignore[assignment]  # programs import it as a module


def remove() -> None:
    """``import mpi4py`` gives what it gave before. What was imported meanwhile goes on working."""
    if installed():
        sys.meta_path.remove(_FINDER)
        _forget()
        sys.modules.update(_hidden)
        _hidden.clear()


def installed() -> bool:
    """Whether ``import mpi4py`` gives ours."""
    return _FINDER in sys.meta_path


def own_name(name: str) -> str:
    """The name of the module that ``import name`` gives: "sfm_kernel.mpi.MPI" for mpi4py.MPI."""
    first = name.split(".")[1:2]
    package = _OURS if first and first[0] in _PARTS else f"{_OURS}.standin"
    return package + name.removeprefix(_THEIRS)


def _forget() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if f"{name}.".startswith(f"{_THEIRS}.")]
    return {name: sys.modules.pop(name) for name in names}


class _Finder(MetaPathFinder):
    """Finds mpi4py's names before anything else does."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not f"{fullname}.".startswith(f"{_THEIRS}."):
            return None
        own = find_spec(own_name(fullname))
        if own is None:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        spec = ModuleSpec(fullname, _Loader(own), origin=own.origin)
        spec.submodule_search_locations = own.submodule_search_locations
        return spec


class _Loader(InspectLoader):
    """Gives the module with our name; its code, where it is run with ``python -m``."""

    def __init__(self, own: ModuleSpec) -> None:
        self._own = own

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return importlib.import_module(self._own.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._own  # the import system has put the other name's there

    def get_code(self, fullname: str) -> CodeType | None:
        loader: Any = self._own.loader
        code: CodeType | None = loader.get_code(self._own.name)
        return code

    def get_source(self, fullname: str) -> str | None:
        loader: Any = self._own.loader
        source: str | None = loader.get_source(self._own.name)
        return source

    def is_package(self, fullname: str) -> bool:
        return self._own.submodule_search_locations is not None


_FINDER = _Finder()
