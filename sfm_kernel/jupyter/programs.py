"""Programs in processes of their own, whose output comes into the cell that started them."""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
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


def run(words: list[str]) -> None:
    """Run the launcher with these words; the program reads nothing.

    Blocks: until it has ended. Stop ends it; a second Stop kills it.
    Raises:
        CellFailed: the exit status is not 0.
        CellInterrupted: it was stopped.
    """
    with launcher() as start:
        start(words)


@contextmanager
def launcher(
    *,
    stdin: Any = subprocess.DEVNULL,
    ask: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Callable[[list[str]], None]]:
    """Begin to start the launcher; yields what runs it, as ``run`` does, once its words are known.

    Half of the time that a small program takes is the launcher's own start: the compiler works
    meanwhile. One that was given no words ends with the block.

    Args:
        stdin: what the launcher, and so rank 0, reads.
        ask: have the notebook ask the user when rank 0 reads; instead of ``stdin``.
        environment: what is set beside this process's.
    """
    lifeline, held = os.pipe()  # if this kernel is killed, its end is closed
    told, tells = os.pipe()
    options = ["--words", str(told), "--lifeline", str(lifeline)]
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCHER, *options],
            stdin=subprocess.PIPE if ask else stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(environment or {})},
            pass_fds=(lifeline, told),
            start_new_session=True,  # Stop signals this kernel's group, and the launcher but once
        )
    except BaseException:
        os.close(held)
        os.close(tells)
        raise
    finally:
        os.close(lifeline)
        os.close(told)

    given = False

    def start(words: list[str]) -> None:
        nonlocal given
        given = True
        with contextlib.suppress(BrokenPipeError), open(tells, "w", encoding="utf-8") as pipe:
            json.dump(words, pipe)
        _show(process, Keyboard(process) if ask else None)

    try:
        with process:
            try:
                yield start
            finally:
                if not given:
                    process.kill()  # it only waits, or is about to
                    os.close(tells)
    finally:
        os.close(held)


def _show(process: subprocess.Popen[bytes], keyboard: Keyboard | None) -> None:
    """Pass on what a launcher says until it has ended."""
    stopped = False
    shown = _Shown(process)
    while True:
        try:
            shown.pass_on(keyboard)
            status = process.wait()
            break
        except KeyboardInterrupt:
            stopped, keyboard = True, None
            process.send_signal(signal.SIGINT)
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
