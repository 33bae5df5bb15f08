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
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from sfm_kernel.jupyter.cell import CellFailed, CellInterrupted
from sfm_kernel.jupyter.keyboard import END, Keyboard
from sfm_kernel.spawn.process import start as start_process

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
    """Run the launcher with these words; the user is asked when rank 0 reads.

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
    stdin: Any = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Callable[[list[str]], None]]:
    """Begin to start the launcher; yields what runs it, as ``run`` does, once its words are known.

    Half of the time that a small program takes is the launcher's own start: the compiler works
    meanwhile. One that was given no words ends with the block.

    Args:
        stdin: what the launcher, and so rank 0, reads; None: what the user answers, who is asked
            when rank 0 reads.
        environment: what is set beside this process's.
    """
    ask = stdin is None and _can_ask()
    if stdin is None:
        stdin = subprocess.PIPE if ask else subprocess.DEVNULL
    lifeline, held = os.pipe()  # if this kernel is killed, its end is closed
    told, tells = os.pipe()
    options = ["--words", str(told), "--lifeline", str(lifeline)]
    try:
        process = start_process(  # in its own session: Stop signals this kernel's group
            [sys.executable, "-c", _LAUNCHER, *options],
            env={**os.environ, **(environment or {})},
            pass_fds=(lifeline, told),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
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
    stopped = asked = False
    with closing(_Shown(process)) as shown:
        while True:
            try:
                while shown.step(keyboard.pause if keyboard is not None else None):
                    if keyboard is not None:
                        keyboard.ask_if_wanted(shown.step)
                status = process.wait()
                break
            except KeyboardInterrupt:
                stopped, asked = True, asked or (keyboard is not None and keyboard.asking)
                keyboard = None
                process.send_signal(signal.SIGINT)
    if stopped:
        reading = f" while it read its input, which the line {END} ends" if asked else ""
        raise CellInterrupted(f"the program was stopped{reading}")
    if status:
        raise CellFailed(f"the program ended with exit status {status}")


def _can_ask() -> bool:
    """Whether the front end has an input for cells; one that runs notebooks by itself has none."""
    from IPython import get_ipython

    kernel = getattr(get_ipython(), "kernel", None)
    return bool(getattr(kernel, "_allow_stdin", False))


class _Shown:
    """The output of a process, which comes into the cell."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()  # while the user is asked, another thread shows
        decoder = codecs.getincrementaldecoder("utf-8")
        pipes: tuple[Any, Any] = (process.stdout, process.stderr)
        for pipe, stream in zip(pipes, (sys.stdout, sys.stderr), strict=True):
            self._selector.register(pipe, selectors.EVENT_READ, (stream, decoder("replace")))

    def step(self, seconds: float | None) -> bool:
        """Show what comes, waiting so long for it; False once nothing can come any more."""
        with self._lock:
            if not self._selector.get_map():
                return False
            for key, _ in self._selector.select(seconds):
                stream, decoder = key.data
                data = os.read(key.fd, 1 << 16)
                stream.write(decoder.decode(data, not data))
                if not data:
                    self._selector.unregister(key.fileobj)
            return bool(self._selector.get_map())

    def close(self) -> None:
        self._selector.close()
