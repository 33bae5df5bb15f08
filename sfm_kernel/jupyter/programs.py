"""Programs in processes of their own, whose output comes into the cell that started them."""

from __future__ import annotations

import codecs
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from sfm_kernel.jupyter.cell import CellFailed, CellInterrupted
from sfm_kernel.jupyter.keyboard import Keyboard

# `python -m sfm_kernel.mpi`, but for the first folder of sys.path, the current one: a file there
# could take the place of one of Python's own modules. -P would be the program's, too.
_LAUNCHER = """\
import sys
if not sys.flags.safe_path:
    sys.path[0] = sys.path[1]
import runpy
runpy._run_module_as_main("sfm_kernel.mpi")
"""


def run(
    words: list[str],
    *,
    stdin: Any = subprocess.DEVNULL,
    ask: bool = False,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Run the launcher with these words.

    Args:
        stdin: what the launcher, and so rank 0, reads.
        ask: have the notebook ask the user when rank 0 reads; instead of ``stdin``.
        environment: what is set beside this process's.
    Blocks: until it has ended. Stop ends it; a second Stop kills it.
    Raises:
        CellFailed: the exit status is not 0.
        CellInterrupted: it was stopped.
    """
    lifeline, held = os.pipe()  # if this kernel is killed, its end is closed
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCHER, "--lifeline", str(lifeline), *words],
            stdin=subprocess.PIPE if ask else stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(environment or {})},
            pass_fds=(lifeline,),
            start_new_session=True,  # Stop signals this kernel's group, and the launcher but once
        )
    finally:
        os.close(lifeline)
    keyboard = Keyboard(process) if ask else None
    stopped = False
    try:
        with process:
            shown = _Shown(process)
            while True:
                try:
                    shown.pass_on(keyboard)
                    status = process.wait()
                    break
                except KeyboardInterrupt:
                    stopped, keyboard = True, None
                    process.send_signal(signal.SIGINT)
    finally:
        os.close(held)
    if stopped:
        raise CellInterrupted("the program was stopped")
    if status:
        raise CellFailed(f"the program ended with exit status {status}")


class _Shown:
    """The output of a process, which comes into the cell."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._selector = selectors.DefaultSelector()
        decoder = codecs.getincrementaldecoder("utf-8")
        pipes: tuple[Any, Any] = (process.stdout, process.stderr)
        for pipe, stream in zip(pipes, (sys.stdout, sys.stderr), strict=True):
            self._selector.register(pipe, selectors.EVENT_READ, (stream, decoder("replace")))

    def pass_on(self, keyboard: Keyboard | None) -> None:
        """Show what comes until nothing can come any more; goes on after an interrupt."""
        while self._selector.get_map():
            ready = self._selector.select(keyboard.pause if keyboard is not None else None)
            for key, _ in ready:
                stream, decoder = key.data
                data = os.read(key.fd, 1 << 16)
                stream.write(decoder.decode(data, not data))
                if not data:
                    self._selector.unregister(key.fileobj)
            if keyboard is not None and not ready:
                keyboard.ask_if_wanted()
        self._selector.close()
