"""Holds a cluster that was started from the panel, in a process of its own.

    python -m sfm_kernel.jupyter.server.keeper

Takes commands as JSON objects on its standard input, one a line, and answers each with one on its
standard output. The first command is "start":

    {"do": "start", "names": ["A", "B"]}     {"world": "ipp-...", "cluster": "sfm-..."}
    {"do": "restart", "ranks": [0] or null}  {}
    {"do": "end", "ranks": [0]}              {}
    {"do": "rescale", "engines": 6}          {}
                                             {"error": "what happened and what to do"}

The administrator's limits are in its environment. Where these say that idle engines end, they do,
and it with them, unless a command is being obeyed.

When its standard input closes, however the server has ended, it ends its engines, removes their
files and exits, also in the middle of a command. If it is killed itself, ``supervisor`` and
``controller`` notice.

It is no member of the world: who waits there for a message from anybody must not be told that a
process which never sends might still send one. A notebook joins with ``%sfm connect CLUSTER``.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any

from sfm_kernel.errors import SFMError
from sfm_kernel.jupyter.cluster import Engines
from sfm_kernel.jupyter.idle import IdleWatch, farewell, leave_note, take_note


def main() -> None:
    """Serve until the standard input closes."""
    # What else is printed here, or by a process that inherits the descriptor, is no answer.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    keeper = _Keeper()
    signal.signal(signal.SIGTERM, keeper.end)
    commands: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    listener = threading.Thread(target=_listen, args=(commands,), name="sfm-stdin", daemon=True)
    listener.start()
    try:
        while True:
            print(json.dumps(keeper.answer(commands.get())), file=answers)
    except BrokenPipeError:  # the server has ended
        pass
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # nothing ends this half-way
        keeper.close()
        if not listener.is_alive():  # nor is the server, which would tell of idle engines
            keeper.forget()


class _Keeper:
    def __init__(self) -> None:
        self._engines: Engines | None = None
        self._watch: IdleWatch | None = None
        self._turn = threading.Lock()  # of a command, or of idle engines to end
        self._starting = self._ending = False

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        """Do what a command says; the answer to it."""
        try:
            with self._turn:
                return self._obey(**command)
        except SFMError as problem:
            return {"error": str(problem)}
        except Exception as problem:  # noqa: BLE001 - the panel shows it, and its user decides
            return {"error": f"{type(problem).__name__}: {problem}"}

    def _obey(
        self,
        do: str,
        names: Sequence[str] = (),
        ranks: Sequence[int] | None = None,
        engines: int = 0,
    ) -> dict[str, Any]:
        own = self._engines
        if do == "start" and own is None and names:
            return self._start(names)
        if own is None:
            raise ValueError(f"{do!r} comes before 'start' with names")
        if do == "restart":
            own.restart(range(len(own.names)) if ranks is None else ranks)
        elif do == "end":
            own.end(ranks or ())
        elif do == "rescale":
            own.rescale(engines)
        else:
            raise ValueError(f"{do!r} is unknown")
        return {}

    def _start(self, names: Sequence[str]) -> dict[str, Any]:
        self._starting = True
        try:
            own = self._engines = Engines.starting(names)
        finally:
            self._starting = False
            if self._ending:
                raise SystemExit
        own.open()
        own.settle()
        self._watch = IdleWatch(own, own.settings.idle, self._turn, self._end_idle)
        return {"world": own.world, "cluster": own.cluster.cluster_id}

    def _end_idle(self) -> None:
        assert self._engines is not None
        idle = self._engines.settings.idle
        leave_note(self._engines.world, farewell(self._engines.names, idle, "start others here"))
        os.kill(os.getpid(), signal.SIGTERM)

    def end(self, number: int, frame: object) -> None:
        """End the process: at once, but for the moment in which a cluster is half begun."""
        self._ending = True
        if not self._starting:
            raise SystemExit

    def forget(self) -> None:
        """Nobody is left to be told that idle engines have ended."""
        if self._engines is not None:
            take_note(self._engines.world)

    def close(self) -> None:
        """End the engines."""
        if self._watch is not None:
            self._watch.stop()
        if self._engines is not None:
            self._engines.close()


def _listen(commands: queue.SimpleQueue[dict[str, Any]]) -> None:
    try:
        for line in sys.stdin:
            commands.put(json.loads(line))
    finally:
        # The main thread may be in the middle of a command: a signal ends that.
        os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
