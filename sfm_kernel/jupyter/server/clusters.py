"""Finds the cluster and the notebook of a world; interrupts processes; runs a program.

This module reads files and /proc; it does not import ipyparallel, which takes half a second.
"""

from __future__ import annotations

import glob
import json
import os
import shlex
import sys
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfm_kernel.directory import signals
from sfm_kernel.errors import SFMError, WorldAccess
from sfm_kernel.jupyter.cluster_files import DIRECTORY, world_key, world_name
from sfm_kernel.jupyter.titles import ancestors, notebook_of, program_of
from sfm_kernel.mpi.launch.job import MOST_RANKS
from sfm_kernel.observe.counts import counts_of

Processes = Sequence[Mapping[str, Any]]
"""The processes of a snapshot."""


@dataclass(frozen=True)
class Cluster:
    """A cluster of this user.

    Attributes:
        identity: its id.
        controller: the process of its controller on this machine.
        directory, key: the url of its world's directory server, and the world's secret, which never
            leaves this process; None and empty if all its processes are on one machine.
        notebook: the name of the notebook that has started it; empty if it is not known.
    """

    identity: str
    controller: int | None = None
    directory: str | None = None
    key: bytes = field(default=b"", repr=False)
    notebook: str = ""


class Clusters:
    """The clusters of all IPython profiles; files that have not changed are not read again.

    A world's name is derived from the key in its connection file, so no file can name a world
    without having its key.
    """

    def __init__(self) -> None:
        self._read: dict[tuple[object, ...], tuple[str, Cluster] | None] = {}

    def by_world(self) -> dict[str, Cluster]:
        """The clusters that have not ended, by the names of their worlds."""
        fresh: dict[tuple[object, ...], tuple[str, Cluster] | None] = {}
        for path in glob.glob(os.path.join(_ipython_dir(), "profile_*/security/cluster-*.json")):
            folder, name = os.path.split(path)
            identity = name.removeprefix("cluster-").removesuffix(".json")
            prefix = f"ipcontroller-{identity}" if identity else "ipcontroller"
            paths = path, os.path.join(folder, f"{prefix}-client.json")
            try:
                stats = [os.stat(path) for path in paths]
            except OSError:  # the controller is starting, or has just ended
                continue
            key = *paths, *((stat.st_ino, stat.st_mtime_ns) for stat in stats)
            fresh[key] = self._read[key] if key in self._read else _read(*paths, identity)
        self._read = fresh
        return dict(pair for pair in fresh.values() if pair)


def _read(path: str, connection: str, identity: str) -> tuple[str, Cluster] | None:
    """The world's name and the cluster; None if the files do not say."""
    try:
        with open(connection) as file:
            known = json.load(file)
        with open(path) as file:
            state = (json.load(file).get("controller") or {}).get("state") or {}
        pid = state.get("pid")
        url = known.get(DIRECTORY)
        directory, key = (str(url), world_key(known)) if url else (None, b"")
        controller = pid if isinstance(pid, int) else None
        cluster = Cluster(identity, controller, directory, key, notebook_of(controller))
        return world_name(known), cluster
    except (OSError, ValueError, KeyError, TypeError, AttributeError, WorldAccess):
        return None


def _ipython_dir() -> str:
    chosen = os.environ.get("IPYTHONDIR")
    return glob.escape(os.path.expanduser(chosen or os.path.join("~", ".ipython")))


# ---- the list of worlds ----


def kernels(manager: Any) -> dict[int, str]:
    """The kernels of this server that run on this machine: pid -> id."""
    found = {}
    for identity in manager.list_kernel_ids():
        provisioner = getattr(manager.get_kernel(identity), "provisioner", None)
        if isinstance(pid := getattr(provisioner, "pid", None), int):
            found[pid] = identity
    return found


def entry(
    world: str,
    processes: Processes,
    cluster: Cluster | None,
    name: str | None,
    kernels: Mapping[int, str],
    is_started: bool,
) -> dict[str, Any]:
    """A world in the list of worlds: the schema's ``world``, without a title.

    Instead it has what the title is made of: "starter", the kernel of this server that has started
    its processes, and "program", the program that they run; both may be empty.

    Args:
        name: the name by which a notebook connects to the cluster.
        kernels: the kernels of this server.
        is_started: whether its cluster was started from the panel.
    """
    here = [process for process in processes if process["alive"] and process["here"]]
    first = next((process["pid"] for process in here if process["kind"] == "process"), None)
    starter = _kernel(cluster.controller if cluster else first, kernels)
    users = {kernels[process["pid"]] for process in here if process["pid"] in kernels}
    # A kernel may run below the process that the server has started for it.
    notebooks = (process["pid"] for process in here if process["kind"] == "notebook")
    users |= {_kernel(pid, kernels) for pid in notebooks} - {""}
    return {
        "world": world,
        "cluster": name,
        "owner": "server" if is_started else "notebook" if cluster and starter else "other",
        "starter": starter,
        "program": "" if cluster else program_of(first),
        "kernels": sorted(users),
        **counts_of(processes),
    }


def _kernel(pid: int | None, kernels: Mapping[int, str]) -> str:
    """The kernel of this server that the process is, or descends from; "" if there is none."""
    return next((kernels[one] for one in ancestors(pid) if one in kernels), "")


# ---- interrupting ----


class NotInterrupted(Exception):
    """Some processes could not be interrupted; the message says which, and why."""


def interrupt(
    folder: str,
    processes: Processes,
    uids: Collection[str] | None,
    remote: Callable[[str], None] | None = None,
) -> list[str]:
    """Send SIGINT, as a notebook's Stop button does; returns the uids of the interrupted processes.

    Args:
        folder: the world's folder.
        processes: the processes of the world's snapshot.
        uids: the processes to interrupt. None: all that compute or are blocked, but no notebooks,
            whose cells end with those of their engines.
        remote: interrupts a process of another machine, by its uid; raises SFMError.
    Raises:
        NotInterrupted: some processes did not get the signal; all others did.
    """
    if uids is None:
        chosen = [process for process in processes if _is_busy(process)]
        problems = []
    else:
        chosen = [process for process in processes if process["uid"] in uids]
        unknown = set(uids) - {process["uid"] for process in chosen}
        problems = [f"{uid} is no process of this world (any longer)" for uid in sorted(unknown)]
    done = []
    for process in chosen:
        if problem := _interrupt(folder, process, remote):
            problems.append(problem)
        else:
            done.append(process)
    if problems:
        names = ", ".join(str(process["name"]) for process in done)
        raise NotInterrupted("; ".join(problems) + (f". Interrupted: {names}" if names else ""))
    return [process["uid"] for process in done]


_CALLS = ("blocked in recv", "blocked in send", "blocked in collective")
"""The states in which a notebook is blocked in one of its own calls."""


def _is_busy(process: Mapping[str, Any]) -> bool:
    if process["kind"] == "notebook" and process["state"] not in _CALLS:
        return False
    return bool(process["alive"]) and (process["state"] != "idle" or process["unseen"] is not None)


def _interrupt(
    folder: str, process: Mapping[str, Any], remote: Callable[[str], None] | None
) -> str:
    """Send the signal to one process; returns why it did not get it, or an empty text."""
    name, host = str(process["name"]), process["host"]
    if process["here"]:
        segment = os.path.join(folder, f"{process['uid']}.seg")
        return signals.interrupt(segment, process["pid"] if process["alive"] else None, name)
    if remote is None:
        return (
            f"{name} runs on {host}, which this server cannot reach: "
            f"press Stop in the notebook that uses it"
        )
    try:
        remote(process["uid"])
    except SFMError as problem:
        return f"{name} on {host}: {problem}"
    return ""


# ---- programs ----


class BadProgram(SFMError):
    """The program cannot be run; the text says why."""


def command(root: str, request: Mapping[str, Any]) -> str:
    """The command line with which a terminal runs a program of the file browser.

    Args:
        root: the folder that the server shows.
        request: ``path``, relative to the root, whose folder will be the terminal's; ``ranks``;
            and ``arguments``, as typed in a shell.
    Raises:
        BadProgram: there is no such program, or the request is not valid.
    """
    path, ranks, arguments = (request.get(name) for name in ("path", "ranks", "arguments"))
    if not isinstance(path, str) or type(ranks) is not int or not isinstance(arguments, str):
        raise BadProgram('send {"path": "ring.c", "ranks": 4, "arguments": ""}')
    if not 1 <= ranks <= MOST_RANKS:
        raise BadProgram(f"{ranks} processes: choose a number from 1 to {MOST_RANKS}")
    if not arguments.isprintable():
        raise BadProgram("the arguments are one line of printable characters")
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in path):
        # It is typed into a terminal, where quotes do not keep ^C or a Tab from acting.
        raise BadProgram(f"the name {path!r} has control characters: rename the file or folder")
    top = Path(root).resolve()
    program = Path(os.path.normpath(top / path.lstrip("/")))
    if not program.is_relative_to(top) or not program.exists() or program == top:
        raise BadProgram(f"there is no {path} in the folder that this server shows")
    name = program.name if not program.name.startswith("-") else f"./{program.name}"
    # With -P, a file in the folder cannot replace one of Python's modules.
    words = [sys.executable, "-P", "-m", "sfm_kernel.mpi", "-n", str(ranks), name]
    return f"{shlex.join(words)} {arguments.strip()}".rstrip()


def is_at_prompt(manager: Any, name: object) -> bool:
    """Whether the shell of a terminal waits for a line: nothing that it runs has the terminal."""
    terminal = getattr(manager, "terminals", {}).get(name)
    if terminal is None:
        return False
    try:
        return bool(os.tcgetpgrp(terminal.ptyproc.fd) == terminal.ptyproc.pid)
    except OSError:  # it has just been closed
        return False
