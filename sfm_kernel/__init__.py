"""sfm-kernel: message passing for notebooks.

    >>> import sfm_kernel
    >>> with sfm_kernel.join("demo", name="A") as sfm:
    ...     sfm.send(dest="A", tag="input", data=[1, 2, 3])
    ...     sfm.recv(tag="input").data
    [1, 2, 3]

In a notebook: ``%load_ext sfm_kernel``, then ``%sfm start 4``.

CONTRIBUTING.md says which module may import which.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from sfm_kernel.collectives import Group
    from sfm_kernel.endpoint import Callback, Context, Endpoint
    from sfm_kernel.errors import (
        AddressError,
        BadName,
        CollectiveError,
        CollectiveMismatch,
        CompileError,
        DeadlockDetected,
        EncodeError,
        EndpointClosed,
        JobFailed,
        MatchError,
        MessagesLost,
        MessageTooLarge,
        NameInUse,
        PacketError,
        PeerLost,
        ProcessFailed,
        RecvTimeout,
        RemoteError,
        SegmentFull,
        SFMError,
        SpillError,
        TaskFailed,
        TaskPoisoned,
        TransferError,
        UnknownName,
        WorkersLost,
        WorldAccess,
        WorldError,
        WorldFull,
        WorldGone,
        WouldBlock,
    )
    from sfm_kernel.message import Message, decode, encode
    from sfm_kernel.spawn.job import run
    from sfm_kernel.world import join

__all__ = [
    "AddressError",
    "BadName",
    "Callback",
    "CollectiveError",
    "CollectiveMismatch",
    "CompileError",
    "Context",
    "DeadlockDetected",
    "EncodeError",
    "Endpoint",
    "EndpointClosed",
    "Group",
    "JobFailed",
    "MatchError",
    "Message",
    "MessageTooLarge",
    "MessagesLost",
    "NameInUse",
    "PacketError",
    "PeerLost",
    "ProcessFailed",
    "RecvTimeout",
    "RemoteError",
    "SFMError",
    "SegmentFull",
    "SpillError",
    "TaskFailed",
    "TaskPoisoned",
    "TransferError",
    "UnknownName",
    "WorkersLost",
    "WorldAccess",
    "WorldError",
    "WorldFull",
    "WorldGone",
    "WouldBlock",
    "decode",
    "encode",
    "join",
    "run",
]


_MODULES = {
    "sfm_kernel.collectives": ["Group"],
    "sfm_kernel.endpoint": ["Callback", "Context", "Endpoint"],
    "sfm_kernel.message": ["Message", "decode", "encode"],
    "sfm_kernel.spawn.job": ["run"],
    "sfm_kernel.world": ["join"],
}
"""The public names of each module except ``errors``."""

_MODULE = {name: module for module, names in _MODULES.items() for name in names}
_SUBMODULES = ("collectives", "directory", "endpoint", "errors", "message", "spawn",
          "transport", "watching", "world")  # fmt: skip
"""Modules that ``import sfm_kernel`` makes available as attributes."""


_OF_CELLS = ("send", "recv", "recv_nb", "peek", "regcb", "rank", "size")
"""Names that ``%sfm start`` gives to cells."""


def __getattr__(name: str) -> Any:
    """Import a public name's module when the name is first used.

    So a command that needs little of the package (the launcher of C programs) starts quickly.
    """
    if name == "__version__":
        from importlib.metadata import version

        return version("sfm-kernel")
    if name in _SUBMODULES:
        return importlib.import_module(f"sfm_kernel.{name}")
    if name not in __all__:
        text = f"module 'sfm_kernel' has no attribute {name!r}"
        if name in _OF_CELLS:
            text = (
                f"{name} is no name of sfm_kernel: cells know it after `%sfm start 4`, and a "
                f'program writes `sfm = sfm_kernel.join("demo")`, then `sfm.{name}`'
            )
            # Python would replace the text of an AttributeError by its own.
            if sys._getframe(1).f_code.co_name == "_handle_fromlist":
                raise ImportError(text)
        raise AttributeError(text)
    value = getattr(importlib.import_module(_MODULE.get(name, "sfm_kernel.errors")), name)
    globals()[name] = value
    return value


class _OfferMPI:
    """Offers mpi4py this package's MPI when it is imported: ``sfm_kernel/mpi/alone.py``."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Find nothing: the finders that follow find mpi4py's module."""
        if name == "mpi4py.MPI":
            importlib.import_module("sfm_kernel.mpi.alone").offer()


sys.meta_path.insert(0, _OfferMPI)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBMODULES})


def load_ipython_extension(shell: InteractiveShell) -> None:
    """``%load_ext sfm_kernel``: adds ``%sfm`` and ``%%sfm``."""
    from sfm_kernel.jupyter.magics import load

    load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """``%unload_ext sfm_kernel``: leaves the world; stops a cluster that this kernel started."""
    from sfm_kernel.jupyter.magics import unload

    unload(shell)
