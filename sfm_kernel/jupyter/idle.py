"""Engines that nobody uses end, so that a class's forgotten notebooks give their memory back.

Idle is a world in which every process rests: no cell runs, on an engine or in a notebook of that
world, none has left a thread or a callback, and no message has gone. Who is blocked in a call is
not idle, for hours if need be: a program that runs is never ended here. (A cell that hangs for good
costs memory and no CPU; it ends with its kernel, when the hub culls the server.)

Whoever started the engines ends them, as ``%sfm stop`` does: a thread of the notebook, or of the
process that holds a cluster of the panel's. It counts the time that it has seen pass between two
looks, by the monotonic clock: a laptop that slept, or a container that was frozen, has not used
that time up.
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

if TYPE_CHECKING:  # the panel's server tells of the ended, and needs no ipyparallel for that
    from sfm_kernel.jupyter.cluster import Engines
    from sfm_kernel.jupyter.home import Home

_LOOK = 10.0
"""Seconds between two looks at most."""

_KEPT = 3600.0
"""Seconds for which the panel tells of engines that have ended."""

_NOTE = ".ended-"
"""How a file of the root begins that tells of ended engines; the world's name follows."""

_SHOWN = 8


class Idle:
    """The engines of one notebook, as far as they end when they are idle.

    Args:
        leave: ends them, and has the notebook leave their world.
    Attributes:
        turn: held while a cell says that it begins, and while idle engines are ended.
    """

    def __init__(self, leave: Callable[[], None]) -> None:
        self.turn = threading.Lock()
        self._leave = leave
        self._watch: IdleWatch | None = None
        self._text = self._world = ""  # of engines that were ended, until the user knows

    def watch(self, home: Home, seconds: float, words: str) -> None:
        """End these engines when they have been idle for so long, and not sooner.

        Args:
            words: what came after ``%sfm start``.
        """
        self.stop()
        again = f"`{f'%sfm start {words}'.rstrip()}` starts new ones"

        def end() -> None:
            self._world, self._text = home.cluster.world, farewell(home.names, seconds, again)
            atexit.register(take_note, self._world)  # first: the kernel may end as they do
            leave_note(self._world, self._text)
            self._leave()

        self._watch = IdleWatch(home.cluster, seconds, self.turn, end)

    def stop(self) -> None:
        """Nothing is ended any more."""
        if self._watch is not None:
            watch, self._watch = self._watch, None
            watch.stop()

    def tell(self, result: Any) -> None:
        """After a cell of the user's (IPython's ``post_run_cell``): they are not there any more."""
        if self._text and getattr(result.info, "store_history", True):
            from IPython.display import display

            from sfm_kernel.jupyter.tables import Note

            display(Note(self.told()))

    def told(self) -> str:
        """What there is to tell of engines that were ended, once; else ""."""
        text, self._text = self._text, ""
        if text:
            take_note(self._world)
            atexit.unregister(take_note)
        return text


class IdleWatch:
    """A thread that ends engines once they have been idle for long enough.

    Args:
        seconds: how long that is.
        turn: who holds it begins something; the engines are ended while nobody does.
        end: ends them.
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
        pause = min(_LOOK, self._seconds / 10)
        before: object = None
        idle, looked = 0.0, time.monotonic()
        while not self._over.wait(pause):
            now = time.monotonic()
            passed, looked = min(now - looked, 2 * pause), now
            found = self._look()
            idle = idle + passed if found is not None and found == before else 0.0
            before = found
            if idle >= self._seconds:
                with self._turn:
                    if not self._over.is_set() and self._look() == found:
                        self._end()
                        return

    def _look(self) -> object:
        """What would be another if anything had happened; None if somebody is not idle."""
        from sfm_kernel.observe.snapshot import snapshot

        try:
            folder = os.path.join(root(), self._engines.world)
            seen = snapshot(folder, self._engines.view.states())["processes"]
        except (OSError, SFMError):  # the world has just ended
            return None
        living = [one for one in seen if one["alive"]]
        if not all(one["state"] == "idle" for one in living):
            return None
        return [(one["uid"], one["since"], one["sent"], one["received"]) for one in living]

    def stop(self) -> None:
        """It ends nothing any more."""
        self._over.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()


def farewell(names: Sequence[str], seconds: float, again: str) -> str:
    """What to tell of engines that were ended.

    Args:
        again: what starts them anew.
    """
    shown = [*names[:_SHOWN], *(["…"] if len(names) > _SHOWN else [])]
    who = f"engine {shown[0]}" if len(names) == 1 else f"engines {', '.join(shown)}"
    return (
        f"The {who} ended at {time.strftime('%H:%M')}, after {in_words(seconds)} without use, to "
        f"give their memory back: {again}"
    )


def leave_note(world: str, text: str) -> None:
    """Have the panel tell of it, until ``take_note``, or for an hour."""
    with contextlib.suppress(OSError):  # it is only said less
        for name, _, age in _notes():
            if age > _KEPT:
                take_note(name)
        path = _path(world)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)


def take_note(world: str) -> None:
    """Who used these engines knows that they ended. Harmless when repeated."""
    with contextlib.suppress(OSError):
        os.unlink(_path(world))


def notes() -> list[str]:
    """What there is to tell of engines that ended in the last hour, the latest last."""
    try:
        recent = sorted((one for one in _notes() if one[2] <= _KEPT), key=lambda one: -one[2])
    except (OSError, SFMError):
        return []
    return [text for _, text, _ in recent]


def _notes() -> Iterator[tuple[str, str, float]]:
    """The worlds, the texts and their ages in seconds."""
    top = root()
    for name in os.listdir(top):
        if name.startswith(_NOTE):
            with contextlib.suppress(OSError), open(os.path.join(top, name)) as file:
                age = time.time() - os.fstat(file.fileno()).st_mtime
                yield name.removeprefix(_NOTE), file.read(1000), age


def _path(world: str) -> str:
    return os.path.join(root(), _NOTE + world)
