"""Runs programs in new processes, and shows their output in the cell that started them; calls
functions on engines."""

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

from ipyparallel.error import CompositeError
from IPython.core.error import UsageError

from sfm_kernel.directory import Member
from sfm_kernel.jupyter.cell import CellFailed, CellInterrupted
from sfm_kernel.jupyter.home import Home
from sfm_kernel.jupyter.keyboard import END, Keyboard
from sfm_kernel.mpi.discovery import LAUNCH
from sfm_kernel.mpi.launch import mpiexec
from sfm_kernel.spawn.process import start as start_process

_POLL = 0.5
"""Seconds between two checks of the controller."""


def call(home: Home, members: Sequence[Member], function: Callable[..., None], *given: Any) -> None:
    """Call a function on engines and wait for it.

    Raises:
        UsageError: the function raised an error on an engine.
        CellInterrupted: the user pressed Stop.
    """
    if not members:
        return
    names = {member.info["engine_id"]: str(member.name) for member in members}
    answers = home.client[list(names)].apply_async(function, *given)
    try:
        while not answers.ready():
            answers.wait(_POLL)
            home.cluster.check_controller()
        answers.get()
    except KeyboardInterrupt:
        raise CellInterrupted("an engine is busy with an earlier cell: wait for it") from None
    except CompositeError as failed:
        _, value, _, info = failed.elist[0]
        raise UsageError(f"on {names.get((info or {}).get('engine_id'), '?')}: {value}") from None


def run_mpi(words: Sequence[str], engines: int) -> None:
    """Run a program as ``python -m sfm_kernel.mpi`` does, with its output in this cell.

    Args:
        words: the words after ``%sfm run``.
        engines: the number of ranks if the words give none; 0 is the launcher's default.
    Blocks: until the program has ended. Stop ends it; a second Stop kills it.
    Raises:
        UsageError: the words name no program.
        CellFailed: the exit status is not 0.
        CellInterrupted: the user stopped the program.
    """
    words = [*(["-n", str(engines)] if engines else []), *words]
    try:
        command = mpiexec.parse(words, "%sfm run")
    except mpiexec.WrongUsage as problem:
        raise UsageError(f"%sfm run: {problem}") from None
    except SystemExit:  # -h
        return
    ranks = sum(size for size, _ in command.programs)
    with launcher() as start:
        start([*(["--label"] if ranks > 1 else []), *words])


@contextmanager
def launcher(
    *,
    stdin: Any = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Callable[[list[str]], None]]:
    """Start the launcher; yields a function that runs it with words until the program has ended.

    Half of the time of a small program is the launcher's start: the compiler works meanwhile. A
    launcher that has got no words is killed when the block ends.

    Args:
        stdin: the input of the launcher, and so of rank 0; None: the user is asked when rank 0
            reads.
        environment: variables in addition to this process's environment.
    Raises, in the function:
        CellFailed: the exit status is not 0.
        CellInterrupted: Stop ended the program; a second Stop kills it.
    """
    ask = stdin is None and _can_ask()
    if stdin is None:
        stdin = subprocess.PIPE if ask else subprocess.DEVNULL
    lifeline, held = os.pipe()  # the system closes this kernel's end if the kernel is killed
    words_reader, words_writer = os.pipe()
    options = ["--words", str(words_reader), "--lifeline", str(lifeline)]
    try:
        process = start_process(  # in its own session: Stop signals this kernel's group
            [sys.executable, "-c", LAUNCH, *options],
            env={**os.environ, **(environment or {})},
            pass_fds=(lifeline, words_reader),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except BaseException:
        os.close(held)
        os.close(words_writer)
        raise
    finally:
        os.close(lifeline)
        os.close(words_reader)

    given = False

    def start(words: list[str]) -> None:
        nonlocal given
        given = True
        with contextlib.suppress(BrokenPipeError):
            with open(words_writer, "w", encoding="utf-8") as pipe:
                json.dump(words, pipe)
        _show(process, Keyboard(process) if ask else None)

    try:
        with process:
            try:
                yield start
            finally:
                if not given:
                    process.kill()  # it is only waiting for its words
                    os.close(words_writer)
    finally:
        os.close(held)


def _show(process: subprocess.Popen[bytes], keyboard: Keyboard | None) -> None:
    """Show the launcher's output until it has ended."""
    stopped = asked = False
    with closing(_Shown(process)) as shown:
        while True:
            try:
                while shown.step(keyboard.pause if keyboard is not None else None):
                    if keyboard is not None:
                        keyboard.ask_if_reading(shown.step)
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
    """Whether the front end can ask the user; a program that runs notebooks cannot."""
    from IPython import get_ipython

    kernel = getattr(get_ipython(), "kernel", None)
    return bool(getattr(kernel, "_allow_stdin", False))


class _Shown:
    """Shows the output of a process in the cell."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()  # another thread shows output while the user is asked
        decoder = codecs.getincrementaldecoder("utf-8")
        pipes: tuple[Any, Any] = (process.stdout, process.stderr)
        for pipe, stream in zip(pipes, (sys.stdout, sys.stderr), strict=True):
            self._selector.register(pipe, selectors.EVENT_READ, (stream, decoder("replace")))

    def step(self, seconds: float | None) -> bool:
        """Show output, waiting up to ``seconds`` for it; returns False once both pipes ended."""
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
