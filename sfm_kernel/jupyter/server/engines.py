"""The engines that were started from the panel: a process of its own holds each cluster of them.

    python -m sfm_kernel.jupyter.server.engines

is that process. It takes commands as JSON objects on its standard input, one a line, and answers
each with one on its standard output. The first command is "start":

    {"do": "start", "names": ["A", "B"]}     {"world": "ipp-...", "cluster": "sfm-..."}
    {"do": "restart", "ranks": [0] or null}  {}
    {"do": "end", "ranks": [0]}              {}
    {"do": "rescale", "engines": 6}          {}
                                             {"error": "what happened and what to do"}

The process's environment has the administrator's limits. If these end idle engines, the process
ends with them, unless it is obeying a command.

When its standard input closes, however the server has ended, the process ends its engines, removes
their files and exits, even in the middle of a command. If it is killed itself, ``supervisor`` and
``controller`` notice.

The process is no member of the world: a process that waits for a message from anybody could not
know that this member never sends. A notebook joins with ``%sfm connect CLUSTER``.
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from traitlets.log import get_logger

from sfm_kernel.errors import BadSetting, SFMError
from sfm_kernel.jupyter.idle import IdleWatch, farewell, remove_note, write_note
from sfm_kernel.spawn.lifeline import follow
from sfm_kernel.spawn.process import python
from sfm_kernel.spawn.report import answers

if TYPE_CHECKING:
    from sfm_kernel.jupyter.cluster import Engines

_PATIENCE = 180.0
"""Seconds to wait for an answer; engines have less time to start, and the answer says so."""

_END = 20.0
"""Seconds for the engines of a cluster to end."""

_ENDED = "the cluster has ended: start another"


class ClusterFailed(Exception):
    """A cluster did not do what it was asked to; the message says why."""


# ---- in the server ----


class StartedClusters:
    """The clusters that were started from this server's panels, by world. They end with it.

    Args:
        limits: returns the administrator's limits as an environment, or raises BadSetting.
    """

    def __init__(self, limits: Callable[[], Mapping[str, str]]) -> None:
        self._limits = limits
        self._holders: dict[str, _Holder] = {}

    def by_world(self) -> dict[str, str]:
        """World -> cluster id."""
        return {world: holder.cluster for world, holder in self._holders.items() if holder.runs}

    async def start(
        self, names: Sequence[str], progress: Callable[[int], object] | None = None
    ) -> tuple[str, str]:
        """Start engines with these names; returns their world and cluster when all have joined.

        Args:
            progress: called with the number of engines that have come, whenever it grows.

        Raises ClusterFailed; nothing runs then.
        """
        try:
            limits = self._limits()
        except BadSetting as problem:
            raise ClusterFailed(f"nothing started: {problem}") from None
        holder = await _Holder.open(limits)
        try:
            answer = await holder.ask(progress, do="start", names=list(names))
        except BaseException:
            await holder.close()
            raise
        for world in [world for world, holder in self._holders.items() if not holder.runs]:
            del self._holders[world]
            remove_note(world)
        holder.cluster = answer["cluster"]
        self._holders[answer["world"]] = holder
        return answer["world"], holder.cluster

    def close(self) -> None:
        """End all clusters when the server ends, without waiting, and remove their notes.

        A cluster whose idle engines end just now would leave a note afterwards.
        """
        for world, holder in self._holders.items():
            holder.hang_up()
            remove_note(world)

    async def ask(self, world: str, **command: Any) -> None:
        """Have a cluster obey a command. Raises ClusterFailed."""
        if world not in self._holders:
            raise ClusterFailed(_ENDED)
        await self._holders[world].ask(**command)

    async def stop(self, world: str) -> None:
        """End a cluster, whatever it is doing."""
        if holder := self._holders.pop(world, None):
            await holder.close()


class _Holder:
    """The process that holds a cluster, as the server sees it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.cluster = ""
        self._process = process
        self._turn = asyncio.Lock()

    @classmethod
    async def open(cls, limits: Mapping[str, str]) -> _Holder:
        process = await asyncio.create_subprocess_exec(
            *python(__name__),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, **limits},
            start_new_session=True,  # Ctrl-C in the server's terminal is not meant for it
        )
        return cls(process)

    @property
    def runs(self) -> bool:
        return self._process.returncode is None

    async def ask(
        self, progress: Callable[[int], object] | None = None, **command: Any
    ) -> dict[str, Any]:
        """The answer to a command. One at a time; raises ClusterFailed."""
        async with self._turn:
            try:
                answer = await asyncio.wait_for(self._ask(command, progress), _PATIENCE)
            except (OSError, ValueError):  # it has ended: a broken pipe, or no answer
                raise ClusterFailed(_ENDED) from None
            except TimeoutError:
                self._process.kill()  # its children notice
                raise ClusterFailed(
                    f"the cluster has not answered for {_PATIENCE:.0f} s, and was "
                    "ended: start another"
                ) from None
        if "error" in answer:
            raise ClusterFailed(answer["error"])
        return answer

    async def _ask(
        self, command: dict[str, Any], progress: Callable[[int], object] | None
    ) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(json.dumps(command).encode() + b"\n")
        await stdin.drain()
        while True:
            answer: dict[str, Any] = json.loads(await stdout.readline())
            if "came" not in answer:
                return answer
            if progress is not None:
                progress(answer["came"])

    def hang_up(self) -> None:
        """Have the process end, and its engines, since the server does."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGHUP)

    async def close(self) -> None:
        """End the process and its engines; returns when it has ended."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _END)
        except TimeoutError:
            get_logger().warning("sfm: cluster %s does not end: killed", self.cluster)
            self._process.kill()  # its children notice
            await self._process.wait()


# ---- in the process that holds a cluster ----


def main() -> None:
    """Serve until the standard input closes."""
    pipe = answers()
    held = _HeldCluster(lambda said: print(json.dumps(said), file=pipe))
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, held.end)
    commands: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    # The main thread may be in the middle of a command when the server ends: a signal ends that.
    end = partial(os.kill, os.getpid(), signal.SIGTERM)
    listener = follow(sys.stdin.readline, lambda line: commands.put(json.loads(line)), end)
    try:
        while True:
            held.answer(commands.get())
    except BrokenPipeError:  # the server has ended
        pass
    finally:
        held.close()
        if held.outlives_server or not listener.is_alive():  # nobody would show a note
            held.forget()


class _HeldCluster:
    """A cluster that obeys commands.

    Args:
        say: called with each answer, and before it with how many engines have come.
    """

    def __init__(self, say: Callable[[dict[str, Any]], None]) -> None:
        self._say = say
        self._engines: Engines | None = None
        self._watch: IdleWatch | None = None
        self._turn = threading.Lock()  # held during a command, and while idle engines are ended
        self._starting = self._ending = self._closing = False
        self.outlives_server = False

    def answer(self, command: dict[str, Any]) -> None:
        """Obey a command, and say the answer."""
        try:
            with self._turn:
                answer = self._obey(**command)
        except SFMError as problem:
            answer = {"error": str(problem)}
        except Exception as problem:  # noqa: BLE001 - the panel shows it, and its user decides
            answer = {"error": f"{type(problem).__name__}: {problem}"}
        self._say(answer)

    def _obey(
        self,
        do: str,
        names: Sequence[str] = (),
        ranks: Sequence[int] | None = None,
        engines: int = 0,
    ) -> dict[str, Any]:
        held = self._engines
        if do == "start" and held is None and names:
            return self._start(names)
        if held is None:
            raise ValueError(f"{do!r} comes before 'start' with names")
        if do == "restart":
            held.restart(range(len(held.names)) if ranks is None else ranks)
        elif do == "end":
            held.end(ranks or ())
        elif do == "rescale":
            held.rescale(engines)
        else:
            raise ValueError(f"{do!r} is unknown")
        return {}

    def _start(self, names: Sequence[str]) -> dict[str, Any]:
        # Imported here, since the server needs neither this module nor ipyparallel.
        from sfm_kernel.jupyter.cluster import Engines

        self._starting = True
        try:
            held = self._engines = Engines.starting(names)
        finally:
            self._starting = False
            if self._ending:
                raise SystemExit
        held.open()
        held.settle(lambda came: self._say({"came": came}))
        self._watch = IdleWatch(held, held.settings.idle, self._turn, self._end_idle)
        return {"world": held.world, "cluster": held.cluster.cluster_id}

    def _end_idle(self) -> None:
        assert self._engines is not None
        idle = self._engines.settings.idle
        write_note(self._engines.world, farewell(self._engines.names, idle, "start others here"))
        os.kill(os.getpid(), signal.SIGTERM)

    def end(self, number: int, frame: object) -> None:
        """End the process: at once, or after the moment in which a cluster is half started."""
        self._ending = True
        self.outlives_server |= number == signal.SIGHUP
        if not (self._starting or self._closing):  # nothing ends these half-way
            raise SystemExit

    def forget(self) -> None:
        """Remove the note of idle engines, since no panel is left to show it."""
        if self._engines is not None:
            remove_note(self._engines.world)

    def close(self) -> None:
        """End the engines."""
        self._closing = True
        if self._watch is not None:
            self._watch.stop()
        if self._engines is not None:
            self._engines.close()


if __name__ == "__main__":
    main()
