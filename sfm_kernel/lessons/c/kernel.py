"""A notebook's kernel; measures the time of a cell from Shift-Enter to its output."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty
from typing import TYPE_CHECKING, Any

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager

from sfm_kernel.errors import SFMError

if TYPE_CHECKING:
    from jupyter_client.blocking.client import BlockingKernelClient

LONGEST = 300.0
"""Seconds that a cell may take; the very first may have to build the compiler's libraries."""


class Notebook:
    """A kernel that has loaded SFM's extension, and its only client."""

    def __init__(self, client: BlockingKernelClient) -> None:
        self._client = client

    def run(self, cell: str, until: Callable[[str], bool] | None = None) -> tuple[str, float]:
        """Execute a cell; return its output, and the seconds until the output was sufficient.

        ``until(output)`` is called with the complete output so far, whenever more comes, and says
        whether it is sufficient. Without it the time ends when the kernel says that it is idle.

        Raises:
            SFMError: the cell failed, or its output was never sufficient.
        """
        started = time.perf_counter()
        request = self._client.execute(cell)
        printed, seconds = "", None
        while True:
            try:
                message: Any = self._client.get_iopub_msg(timeout=LONGEST)
            except Empty:
                raise SFMError(f"a cell has printed nothing for {LONGEST:.0f} s") from None
            now = time.perf_counter() - started
            if message["parent_header"].get("msg_id") != request:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                printed += content["text"]
                if seconds is None and until is not None and until(printed):
                    seconds = now
            elif kind == "error":
                words = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(content["traceback"]))
                raise SFMError(f"a cell failed:\n{words}\n{printed}"[-2000:])
            elif kind == "status" and content["execution_state"] == "idle":
                if until is not None and seconds is None:
                    raise SFMError(f"a cell did not print what it should:\n{printed[-2000:]}")
                return printed, now if seconds is None else seconds


@contextmanager
def notebook() -> Iterator[Notebook]:
    """A kernel of this process's Python, with SFM's extension; it ends with the block."""
    manager = KernelManager(transport="ipc")  # over TCP it warns of eavesdroppers
    # Not the installed kernel of this name, which may belong to another environment.
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager._kernel_spec = KernelSpec(argv=command, display_name="bench", language="python")
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        opened = Notebook(client)
        opened.run("%load_ext sfm_kernel")
        yield opened
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=False)
