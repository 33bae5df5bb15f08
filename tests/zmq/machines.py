"""Machines, which are folders: two, and an observer on the first that is no member of the world; or
any number of them for members that are all in one process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import sfm_kernel
from sfm_kernel import Endpoint
from sfm_kernel.directory import DirectoryServer, RemoteDirectory
from sfm_kernel.observe import explain, snapshot
from sfm_kernel.relay.view import RemoteView
from tests.observe.pictures import check
from tests.waiting import next_line, wait_until

PROGRAM = """
import ctypes, os, signal, sys, threading, time
import sfm_kernel
from sfm_kernel import relay
name, size = sys.argv[1:]
key = bytes.fromhex(os.environ["SFM_KEY"])
sfm = sfm_kernel.join(os.environ["SFM_WORLD"], name, size=int(size))
if os.environ.get("RELAY"):
    # Not sfm.world: who reads that may tell others, so that newcomers are expected.
    relay.start(os.environ["SFM_WORLD"], os.environ["SFM_DIRECTORY"], key, sfm.folder)
    while not relay.is_held(sfm.folder):
        time.sleep(0.001)  # from now on it is there, or about to begin
print("joined", flush=True)
"""


class Machines:
    """A world with a directory server.

    Attributes:
        observer: the directory as it is seen on the machine "here".
        view: its knowledge of other machines.
        transport: SFM_TRANSPORT of the processes. Each machine is a site.
    """

    def __init__(self, world: str, root: str) -> None:
        self.world, self._root, self.transport = world, Path(root), "zmq"
        self._started: list[subprocess.Popen[str]] = []
        self.server = DirectoryServer(world, os.urandom(32), "tcp://127.0.0.1:0")
        os.environ["SFM_DIR"] = str(self._root / "here")
        self.observer = RemoteDirectory(world, self.server.url, self.server.key)
        self.view = RemoteView.of(self.observer)

    def environment(self, machine: str) -> dict[str, str]:
        about = {"SFM_WORLD": self.world, "SFM_DIRECTORY": self.server.url}
        about |= {"SFM_KEY": self.server.key.hex(), "SFM_TRANSPORT": self.transport}
        # The last is what tests/leaks.py and tests/janitor.py look for.
        about |= {"SFM_DIR": str(self._root / machine), "SESSION_SFM_DIR": str(self._root.parent)}
        return {**os.environ, **about, "SFM_SITE": f"site-of-{machine}"}

    def folder(self, machine: str) -> Path:
        return self._root / machine / self.world

    def process(
        self, name: str, machine: str, code: str, size: int = 2, relay: bool = True
    ) -> subprocess.Popen[str]:
        """A process that has joined as ``name``, and runs ``code`` on that machine."""
        shown = {"RELAY": "1"} if relay and machine != "here" else {}
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM + code, name, str(size)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            env=self.environment(machine) | shown,
        )
        self._started.append(process)
        assert next_line(process) == "joined"
        return process

    def relays(self, machine: str) -> list[psutil.Process]:
        """The relays that run there."""
        marker = f"SFM_DIR={self._root / machine}\0".encode()
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if "sfm_kernel.relay" in process.cmdline() and process.status() != "zombie":
                    environment = Path(f"/proc/{process.pid}/environ").read_bytes() + b"\0"
                    found += [process] if marker in environment else []
        return found

    def known_relays(self) -> list[Any]:
        """The server's entry of each relay."""
        return list(self.server._carrier._relays.values())

    def snapshot(self) -> dict[str, Any]:
        found = snapshot(self.observer.folder, self.view.states())
        check("snapshot", found)
        return found

    def seen(self, name: str) -> dict[str, Any]:
        """A process, as the observer sees it now; empty if the observer does not see it."""
        found = [process for process in self.snapshot()["processes"] if process["name"] == name]
        return found[0] if found else {}

    def tell_of(self, name: str, uid: str) -> bool:
        """Whether a relay tells of this process: as long as somebody looks."""
        return bool(self.seen(name)) and any(uid in one.uids for one in self.known_relays())

    def diagnosis(self) -> dict[str, Any]:
        diagnosis = explain(self.observer.folder, remote=self.view.states)
        check("diagnosis", diagnosis)
        return diagnosis

    def close(self) -> None:
        """End all processes, and wait for the end of the relays, which nobody else ends."""
        for process in self._started:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
            process.kill()
            with process:
                pass
        self.observer.close()
        machines = [path.name for path in self._root.iterdir()]
        wait_until(lambda: not any(self.relays(machine) for machine in machines))
        self.server.close()


@contextlib.contextmanager
def spread(
    places: Iterable[tuple[str, str]], world: str, sfm_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[Endpoint]]:
    """Members of a world, by rank, each on the machine and at the site that its place names."""
    monkeypatch.setenv("SFM_TRANSPORT", "shm,zmq")  # not straight through this process
    with contextlib.ExitStack() as stack:
        root = stack.enter_context(tempfile.TemporaryDirectory(dir=sfm_dir.parent))
        server = stack.enter_context(DirectoryServer(world, os.urandom(32), "tcp://127.0.0.1:0"))
        monkeypatch.setenv("SFM_DIRECTORY", server.url)
        monkeypatch.setenv("SFM_KEY", server.key.hex())
        ends = []
        for rank, (machine, site) in enumerate(places):
            monkeypatch.setenv("SFM_DIR", f"{root}/{machine}")
            monkeypatch.setenv("SFM_SITE", site)
            ends.append(stack.enter_context(sfm_kernel.join(world, rank=rank)))
        yield ends


@contextlib.contextmanager
def two_machines(world: str, sfm_dir: Path) -> Iterator[Machines]:
    with tempfile.TemporaryDirectory(dir=sfm_dir) as root:
        machines = Machines(world, root)
        try:
            yield machines
        finally:
            machines.close()
