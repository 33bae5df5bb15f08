"""The list of worlds: whose they are, and what their processes do."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

from sfm_kernel.jupyter.server.origin import Cluster, ancestors, kernels
from sfm_kernel.jupyter.server.worlds import UnknownWorld, Worlds


class Listing:
    """Makes the list of worlds.

    Args:
        app: the server, which knows its kernels and notebooks.
        own: the clusters that were started from the panel, by world.
    """

    def __init__(
        self, app: Any, worlds: Worlds, own: Callable[[], Mapping[str, str]], executor: Executor
    ) -> None:
        self._app, self._worlds, self._own, self._executor = app, worlds, own, executor

    async def entries(self) -> list[dict[str, Any]]:
        """What there is now, by title; each as the schema's ``world``."""
        pids, own = kernels(self._app.kernel_manager), self._own()
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._executor, self._look, pids, own)
        paths = await self._notebooks() if any(one["kernels"] for one in found) else {}
        for one in found:
            starter = one.pop("starter")
            notebook = os.path.basename(paths.get(starter, ""))
            one["title"] = notebook or one["cluster"] or one["world"]
        return sorted(found, key=lambda one: (one["title"], one["world"]))

    async def _notebooks(self) -> dict[str, str]:
        """The notebooks' paths by their kernels."""
        sessions = await self._app.session_manager.list_sessions()
        return {one["kernel"]["id"]: one.get("path") or "" for one in sessions if one["kernel"]}

    def _look(self, pids: Mapping[int, str], own: Mapping[str, str]) -> list[dict[str, Any]]:
        inhabited, clusters = self._worlds.learn()
        clusters |= {world: Cluster(identity) for world, identity in own.items()}
        names = sorted({*inhabited, *own})
        self._worlds.keep_only(names)
        found = []
        for name in names:
            # It may end while we look.
            with contextlib.suppress(UnknownWorld, OSError):
                picture = self._worlds.find(name).picture
                picture.look()
                processes = picture.newest["processes"] if picture.newest else []
                cluster = clusters.get(name)
                starter = _kernel(cluster.controller, pids) if cluster else ""
                owner = "server" if name in own else "notebook" if starter else "other"
                entry = {"world": name, "cluster": cluster.identity if cluster else None}
                entry |= {"owner": owner, "starter": starter}
                found.append(entry | _members(processes, pids))
        return found


def _members(processes: Sequence[dict[str, Any]], pids: Mapping[int, str]) -> dict[str, Any]:
    """What the list says about the processes of a world."""
    here = [one for one in processes if one["alive"] and one["here"]]
    kernels = {pids[one["pid"]] for one in here if one["pid"] in pids}
    # A kernel may run below the process that the server has started for it.
    kernels |= {_kernel(one["pid"], pids) for one in here if one["kind"] == "notebook"} - {""}
    others = [one for one in processes if one["kind"] != "notebook" and one["state"] != "left"]
    states = [one["state"] if one["alive"] else "dead" for one in others]
    return {
        "kernels": sorted(kernels),
        "engines": len(states),
        "running": states.count("running"),
        "blocked": sum(state.startswith("blocked") for state in states),
        "dead": states.count("dead"),
    }


def _kernel(pid: int | None, pids: Mapping[int, str]) -> str:
    """The kernel of this server that the process is, or was started by; empty if there is none."""
    return next((pids[one] for one in ancestors(pid) if one in pids), "")
