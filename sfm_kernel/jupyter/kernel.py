"""What the kernel of a notebook lets others of its machine read."""

from __future__ import annotations

import sys
from typing import Any

_OPEN = """\
sfm: any user of this machine can read what this notebook shows: its kernel uses TCP without \
encryption. Start it by a Jupyter server with sfm-kernel, or with --KernelManager.transport=ipc \
(in Python, KernelManager(transport="ipc"))"""


def warn_if_open(shell: Any) -> None:
    """Say on stderr that other users can read this kernel's outputs, if they can."""
    app = getattr(getattr(shell, "kernel", None), "parent", None)
    if getattr(app, "transport", "") == "tcp" and not getattr(app, "curve_secretkey", None):
        print(_OPEN, file=sys.stderr)
