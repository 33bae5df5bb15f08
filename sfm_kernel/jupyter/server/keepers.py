"""The clusters that were started from the panel: each is held by a process of its own."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sfm_kernel.errors import BadSetting
from sfm_kernel.jupyter.idle import take_note

_PATIENCE = 180.0
"""Seconds for an answer. A keeper gives its engines less to start, and says so itself."""

_END = 20.0
"""Seconds for a keeper to end its engines."""

_ENDED = "the cluster has ended: start another"


class KeeperFailed(Exception):
    """What was wanted of a cluster did not happen; tells why."""


class Keepers:
    """The clusters of one server, by world. They end with it.

    Args:
        limits: gives the administrator's limits as an environment, or raises BadSetting.
    """

    def __init__(self, log: logging.Logger, limits: Callable[[], Mapping[str, str]]) -> None:
        self._log, self._limits = log, limits
        self._keepers: dict[str, _Keeper] = {}

    def clusters(self) -> dict[str, str]:
        """World -> cluster id."""
        return {world: one.cluster for world, one in self._keepers.items() if one.runs}

    async def start(self, names: Sequence[str]) -> tuple[str, str]:
        """Start engines with these names; returns their world and cluster when all are there.

        Raises KeeperFailed; nothing runs then.
        """
        try:
            limits = self._limits()
        except BadSetting as problem:
            raise KeeperFailed(f"nothing started: {problem}") from None
        keeper = await _Keeper.open(limits)
        try:
            answer = await keeper.ask(do="start", names=list(names))
        except BaseException:
            await keeper.close(self._log)
            raise
        for world in [world for world, one in self._keepers.items() if not one.runs]:
            del self._keepers[world]
            take_note(world)
        keeper.cluster = answer["cluster"]
        self._keepers[answer["world"]] = keeper
        return answer["world"], keeper.cluster

    def close(self) -> None:
        """The server ends; its clusters notice, and nobody need be told of them any more."""
        for world in self._keepers:
            take_note(world)

    async def ask(self, world: str, **command: Any) -> None:
        """Have a cluster's keeper obey a command (``keeper`` lists them). Raises KeeperFailed."""
        if world not in self._keepers:
            raise KeeperFailed(_ENDED)
        await self._keepers[world].ask(**command)

    async def stop(self, world: str) -> None:
        """End a cluster, whatever its keeper is doing."""
        if keeper := self._keepers.pop(world, None):
            await keeper.close(self._log)


class _Keeper:
    """One of the processes, and the pipes that lead to it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.cluster = ""
        self._process = process
        self._turn = asyncio.Lock()

    @classmethod
    async def open(cls, limits: Mapping[str, str]) -> _Keeper:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            # -P: or a file in the server's folder could take the place of one of Python's modules.
            *("-P", "-m", "sfm_kernel.jupyter.server.keeper"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, **limits},
            start_new_session=True,  # Ctrl-C in the server's terminal is not meant for it
        )
        return cls(process)

    @property
    def runs(self) -> bool:
        return self._process.returncode is None

    async def ask(self, **command: Any) -> dict[str, Any]:
        """The answer to a command. One at a time; raises KeeperFailed."""
        async with self._turn:
            try:
                answer = await asyncio.wait_for(self._ask(command), _PATIENCE)
            except (OSError, ValueError):  # it has ended: a broken pipe, or no answer
                raise KeeperFailed(_ENDED) from None
            except TimeoutError:
                self._process.kill()  # its children notice
                raise KeeperFailed(
                    f"the cluster has not answered for {_PATIENCE:.0f} s, and was "
                    "ended: start another"
                ) from None
        if "error" in answer:
            raise KeeperFailed(answer["error"])
        return answer

    async def _ask(self, command: dict[str, Any]) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(json.dumps(command).encode() + b"\n")
        await stdin.drain()
        answer: dict[str, Any] = json.loads(await stdout.readline())
        return answer

    async def close(self, log: logging.Logger) -> None:
        """End it, and with it its engines; returns when it has ended."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _END)
        except TimeoutError:
            log.warning("sfm: the keeper of %s does not end: killed", self.cluster)
            self._process.kill()  # its children notice
            await self._process.wait()
