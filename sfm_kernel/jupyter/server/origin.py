"""Which cluster a world belongs to, and which kernel of this server a process.

Read from files and from /proc; ipyparallel, which takes half a second to import, is not needed.
"""

from __future__ import annotations

import glob
import json
import os
from dataclasses import dataclass, field
from typing import Any

from sfm_kernel.errors import WorldAccess
from sfm_kernel.jupyter.places import DIRECTORY, world_key, world_name


@dataclass(frozen=True)
class Cluster:
    """A cluster of this user.

    Attributes:
        identity: its id.
        controller: the process of its controller on this machine.
        directory, key: the url of its world's directory server, and the world's secret, which never
            leaves this process; None and empty where all its processes are on one machine.
    """

    identity: str
    controller: int | None = None
    directory: str | None = None
    key: bytes = field(default=b"", repr=False)


class Clusters:
    """The clusters of all IPython profiles; files that have not changed are not read again."""

    def __init__(self) -> None:
        self._read: dict[tuple[object, ...], tuple[str, Cluster] | None] = {}

    def by_world(self) -> dict[str, Cluster]:
        """Those that have not ended, by the names of their worlds."""
        fresh: dict[tuple[object, ...], tuple[str, Cluster] | None] = {}
        for path in glob.glob(os.path.join(_ipython_dir(), "profile_*/security/cluster-*.json")):
            folder, name = os.path.split(path)
            identity = name.removeprefix("cluster-").removesuffix(".json")
            prefix = f"ipcontroller-{identity}" if identity else "ipcontroller"
            paths = path, os.path.join(folder, f"{prefix}-client.json")
            try:
                key = tuple((one, os.stat(one).st_ino, os.stat(one).st_mtime_ns) for one in paths)
            except OSError:  # the controller is starting, or has just ended
                continue
            fresh[key] = self._read[key] if key in self._read else _read(*paths, identity)
        self._read = fresh
        return dict(pair for pair in fresh.values() if pair)


def _read(path: str, connection: str, identity: str) -> tuple[str, Cluster] | None:
    """The world's name and the cluster; None where the files do not say."""
    try:
        with open(connection) as file:
            known = json.load(file)
        with open(path) as file:
            state = (json.load(file).get("controller") or {}).get("state") or {}
        pid = state.get("pid")
        url = known.get(DIRECTORY)
        served = (str(url), world_key(known)) if url else (None, b"")
        return world_name(known), Cluster(identity, pid if isinstance(pid, int) else None, *served)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, WorldAccess):
        return None


def _ipython_dir() -> str:
    chosen = os.environ.get("IPYTHONDIR")
    return glob.escape(os.path.expanduser(chosen or os.path.join("~", ".ipython")))


def kernels(manager: Any) -> dict[int, str]:
    """The kernels of this server that run on this machine: pid -> id."""
    found = {}
    for identity in manager.list_kernel_ids():
        provisioner = getattr(manager.get_kernel(identity), "provisioner", None)
        if isinstance(pid := getattr(provisioner, "pid", None), int):
            found[pid] = identity
    return found


def ancestors(pid: int | None) -> list[int]:
    """The process itself and those that it descends from, as far as they live."""
    line = []
    while pid and pid not in line:
        line.append(pid)
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            break
    return line
