"""The kernel of a notebook: the commands that it finds, and what others of its machine can read."""

from __future__ import annotations

import sys
from typing import Any

from sfm_kernel.mpi import discovery

_OPEN = """\
sfm: any user of this machine can read what this notebook shows: its kernel uses TCP without \
encryption. Start it by a Jupyter server with sfm-kernel, or with --KernelManager.transport=ipc \
(in Python, KernelManager(transport="ipc"))"""


def prepare(shell: Any) -> None:
    """Let ``!mpiexec`` and ``!mpicc`` find ours if there is no other, and warn if it is open."""
    discovery.offer()
    _warn_if_open(shell)


def _warn_if_open(shell: Any) -> None:
    """Say on stderr that other users can read this kernel's outputs, if they can."""
    app = getattr(getattr(shell, "kernel", None), "parent", None)
    if getattr(app, "transport", "") == "tcp" and not getattr(app, "curve_secretkey", None):
        print(_OPEN, file=sys.stderr)
