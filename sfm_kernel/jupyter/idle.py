"""Ends engines that nobody uses, so that a class's forgotten notebooks give their memory back.

A world is idle if all its processes are: no cell runs on an engine or in a notebook of the world,
no cell has left a thread or a callback, and no message is sent. A process that is blocked in a call
is not idle, even for hours: this module never ends a program that runs. (A cell that hangs for good
costs memory and no CPU; it ends with its kernel, when the hub culls the server.)

The process that started the engines ends them, as ``%sfm stop`` does: in a thread of the notebook,
or of the process that holds a cluster of the panel. The thread adds up the time between its checks,
by the monotonic clock; the time in which a laptop was suspended or a container frozen does not
count.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sfm_kernel.directory import root
from sfm_kernel.errors import SFMError
from sfm_kernel.jupyter.settings import NEVER, in_words

if TYPE_CHECKING:  # the panel's server imports this module, and does without ipyparallel
    from sfm_kernel.jupyter.cluster import Engines
    from sfm_kernel.jupyter.home import Home

_LONGEST_PAUSE = 10.0
"""Most seconds between two checks."""

_NOTE_LIFE = 3600.0
"""Seconds for which the panel shows that engines have ended."""

_NOTE = ".ended-"
"""The name of a note's file in the root, before the name of the world whose engines ended."""

_SHOWN = 8
"""Names of engines that a note lists."""


class Idle:
    """Ends the engines of one notebook when they are idle.

    Args:
        leave: ends the engines, and has the notebook leave their world.
    Attributes:
        turn: held while a cell publishes that it begins, and while idle engines are ended.
    """

    def __init__(self, leave: Callable[[], None]) -> None:
        self.turn = threading.Lock()
        self._leave = leave
        self._watch: IdleWatch | None = None
        self._text = self._world = ""  # about engines that were ended, until the user knows

    def watch(self, home: Home, seconds: float, words: str) -> None:
        """End these engines when they have been idle for this many seconds.

        Args:
            words: the words after ``%sfm start``.
        """
        self.stop()
        again = f"`{f'%sfm start {words}'.rstrip()}` starts new ones"

        def end() -> None:
            self._world = home.cluster.world
            self._text = farewell(home.cluster.names, seconds, again)
            atexit.register(remove_note, self._world)  # before the note, as the kernel may end now
            write_note(self._world, self._text)
            self._leave()

        self._watch = IdleWatch(home.cluster, seconds, self.turn, end)

    def stop(self) -> None:
        """Stop watching: no engines are ended any longer."""
        if self._watch is not None:
            watch, self._watch = self._watch, None
            watch.stop()

    def notify(self, result: Any) -> None:
        """Show after a cell (IPython's ``post_run_cell``) that idle engines have ended."""
        if self._text and getattr(result.info, "store_history", True):
            from IPython.display import display

            from sfm_kernel.jupyter.tables import Note

            display(Note(self.take_notice()))

    def take_notice(self) -> str:
        """The notice about engines that were ended, once; otherwise ""."""
        text, self._text = self._text, ""
        if text:
            remove_note(self._world)
            atexit.unregister(remove_note)
        return text


class IdleWatch:
    """A thread that ends engines once they have been idle for long enough.

    Args:
        seconds: the time without use after which they end.
        turn: a lock that is held while a cell or a command begins, and while engines are ended.
        end: ends the engines.
    """

    def __init__(
        self, engines: Engines, seconds: float, turn: threading.Lock, end: Callable[[], None]
    ) -> None:
        self._engines, self._seconds, self._turn, self._end = engines, seconds, turn, end
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sfm-idle", daemon=True)
        if seconds != NEVER:
            self._thread.start()

    def _run(self) -> None:
        pause = min(_LONGEST_PAUSE, self._seconds / 10)
        before: object = None
        idle, checked = 0.0, time.monotonic()
        while not self._over.wait(pause):
            now = time.monotonic()
            passed, checked = min(now - checked, 2 * pause), now
            found = self._activity()
            idle = idle + passed if found is not None and found == before else 0.0
            before = found
            if idle >= self._seconds:
                with self._turn:
                    if not self._over.is_set() and self._activity() == found:
                        self._end()
                        return

    def _activity(self) -> object:
        """A value that changes with every activity; None if a process is not idle."""
        from sfm_kernel.observe.snapshot import snapshot

        try:
            folder = os.path.join(root(), self._engines.world)
            processes = snapshot(folder, self._engines.view.states())["processes"]
        except (OSError, SFMError):  # the world has just ended
            return None
        living = [process for process in processes if process["alive"]]
        if not all(process["state"] == "idle" and process["unseen"] is None for process in living):
            return None
        fields = ("uid", "since", "sent", "received")
        return [[process[field] for field in fields] for process in living]

    def stop(self) -> None:
        """Stop the thread; no engines are ended any longer."""
        self._over.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()


def farewell(names: Sequence[str], seconds: float, again: str) -> str:
    """The notice about engines that were ended.

    Args:
        again: how the user starts new ones.
    """
    shown = [*names[:_SHOWN], *(["…"] if len(names) > _SHOWN else [])]
    engines = f"engine {shown[0]}" if len(names) == 1 else f"engines {', '.join(shown)}"
    return (
        f"The {engines} ended at {time.strftime('%H:%M')}, after {in_words(seconds)} without use, "
        f"to free memory: {again}"
    )


def write_note(world: str, text: str) -> None:
    """Have the panel show this text until ``remove_note``, or for an hour."""
    with contextlib.suppress(OSError):  # without the note the panel only shows less
        for name, _, age in _notes():
            if age > _NOTE_LIFE:
                remove_note(name)
        path = _path(world)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)


def remove_note(world: str) -> None:
    """Remove the note, since the user knows that the engines ended. Harmless when repeated."""
    with contextlib.suppress(OSError):
        os.unlink(_path(world))


def notes() -> list[str]:
    """The notices about engines that ended in the last hour, the latest last."""
    try:
        recent = sorted((-age, text) for _, text, age in _notes() if age <= _NOTE_LIFE)
    except (OSError, SFMError):
        return []
    return [text for _, text in recent]


def _notes() -> Iterator[tuple[str, str, float]]:
    """World, text and age (s) of each note."""
    top = root()
    for name in os.listdir(top):
        if name.startswith(_NOTE):
            with contextlib.suppress(OSError), open(os.path.join(top, name)) as file:
                age = time.time() - os.fstat(file.fileno()).st_mtime
                yield name.removeprefix(_NOTE), file.read(1000), age


def _path(world: str) -> str:
    return os.path.join(root(), _NOTE + world)
