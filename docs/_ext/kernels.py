"""Kernels of executed notebooks speak over Unix sockets that only this user can enter.

Jupyter's default is TCP on loopback: other users of the machine can overhear it, and another
process may take a port between the moment it is chosen and the moment the kernel binds it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from typing import Any

from jupyter_client.manager import AsyncKernelManager
from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    folder = tempfile.mkdtemp(prefix="sfm-docs-")  # a socket's path is short
    start = AsyncKernelManager.__init__

    def start_private(self: Any, *args: Any, **settings: Any) -> None:
        settings.setdefault("transport", "ipc")
        settings.setdefault("connection_file", os.path.join(folder, f"{uuid.uuid4().hex[:8]}.json"))
        start(self, *args, **settings)

    def finish(*_: object) -> None:
        AsyncKernelManager.__init__ = start
        shutil.rmtree(folder, ignore_errors=True)

    AsyncKernelManager.__init__ = start_private
    app.connect("build-finished", finish)
    return {"parallel_read_safe": False}
