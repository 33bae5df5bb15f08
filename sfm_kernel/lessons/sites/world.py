"""A world whose processes are in the hosts of a lab."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from sfm_kernel.directory import RemoteDirectory
from sfm_kernel.errors import SFMError
from sfm_kernel.lessons.sites.counts import TOLD_AFTER, total
from sfm_kernel.lessons.sites.emulated import Emulated
from sfm_kernel.lessons.sites.lab import Lab
from sfm_kernel.lessons.sites.ways import DIRECT, Way

PORT = 7099


class Told:
    """A ``program`` that runs in a host, and is told what to do."""

    def __init__(self, name: str, process: subprocess.Popen[str]) -> None:
        self.name, self._process = name, process

    def begin(self, job: str, **details: Any) -> None:
        """Have it do something; ``end`` waits for that."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"job": job, **details}) + "\n")
        self._process.stdin.flush()

    def end(self) -> dict[str, Any]:
        """What came of what it was last told to do. SFMError: what it raised, or that it died."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SFMError(f"program {self.name!r} has ended: status {self._process.wait()}")
        told: dict[str, Any] | None = json.loads(line)
        if told and "error" in told:
            raise SFMError(f"program {self.name!r}: {told['error']}")
        return told or {}

    def do(self, job: str, **details: Any) -> dict[str, Any]:
        """``begin`` and ``end``."""
        self.begin(job, **details)
        return self.end()

    def kill(self) -> None:
        """It ends at once, whatever it does."""
        self._process.kill()
        self._process.wait()

    def leave(self) -> None:
        """It has nothing to do any more: it will close its endpoint and end."""
        assert self._process.stdin is not None
        self._process.stdin.close()  # that of a killed one, too

    def wait(self) -> None:
        """It has ended."""
        self._process.wait()


class LabWorld:
    """A directory server in the first host of the first site, gateways, and programs in any host.

    Where sites have gateways, those are in each site's last host, alone. Hosts share no memory:
    each has an ``SFM_DIR`` of its own. When this has been made all gateways listen.

    Args:
        way: how messages get from site to site.
    """

    def __init__(self, lab: Lab | Emulated, way: Way = DIRECT) -> None:
        if isinstance(lab, Emulated) and not way.gateways:
            raise SFMError("without network namespaces there is a long way only between gateways")
        self.lab, self.way = lab, way
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self._folder = tempfile.TemporaryDirectory(prefix="sfm-lab-", dir=memory)
        self._programs: list[Told] = []
        self.gateways: dict[str, list[subprocess.Popen[str]]] = {}
        home = next(iter(lab.sites))
        url = f"tcp://{lab.address(home)}:{PORT}"
        self._known = {"SFM_WORLD": "lab", "SFM_DIRECTORY": url, "SFM_TCP": way.tcp}
        self._known["SFM_KEY"] = secrets.token_hex(32)
        command = [sys.executable, "-m", "sfm_kernel.directory", "--world", "lab", "--bind", url]
        self._server = self._started(home, 1, command, "directory server")
        for site in lab.sites if way.gateways else ():
            self.gateways[site] = [self._gateway(site) for _ in range(way.gateways)]

    def _started(self, site: str, host: int, command: list[str], what: str) -> Any:
        """A program that prints a line when it listens."""
        one = self.lab.run(
            site, command, self._environment(site, host), host=host, stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        assert one.stdout is not None
        if not one.stdout.readline():
            raise SFMError(f"the lab's {what} has ended: its reason is above")
        return one

    def _gateway(self, site: str) -> Any:
        host = self.lab.sites[site]
        command = [sys.executable, "-m", "sfm_kernel.gateway", "--world", "lab", "--site", site]
        command += ["--bind", self.lab.address(site, host), *self.way.options]
        command += self.lab.gateway_options
        return self._started(site, host, command, f"gateway of {site}")

    def _environment(self, site: str, host: int) -> dict[str, str]:
        folder = Path(self._folder.name) / f"{site}{host}"
        folder.mkdir(mode=0o700, exist_ok=True)
        own = {"SFM_DIR": str(folder), "SFM_HOST_IP": self.lab.address(site, host)}
        return {**self._known, **own, "SFM_SITE": site, "SFM_TRANSPORT": ""}

    def hosts(self, site: str) -> int:
        """How many hosts are there for programs."""
        return self.lab.sites[site] - (1 if self.way.gateways else 0)

    def program(self, name: str, site: str, host: int = 1) -> Told:
        """Start a program, which has not joined yet."""
        pipe = subprocess.PIPE
        command = [sys.executable, "-m", "sfm_kernel.lessons.sites.program", name]
        process = self.lab.run(
            site, command, self._environment(site, host), host=host, stdin=pipe, stdout=pipe,
            text=True,
        )  # fmt: skip
        one = Told(name, process)
        self._programs.append(one)
        return one

    def join(self, programs: Sequence[Told]) -> None:
        """All of them join, and know each other; gateways have met."""
        names = [one.name for one in programs]
        for job, details in (("join", {}), ("know", {"names": names})):
            for one in programs:
                one.begin(job, **details)
            for one in programs:
                one.end()
        self.settle(programs[0])

    def settle(self, asked: Told) -> None:
        """Gateways know and reach each other: ``asked``, which has joined, has seen it."""
        if self.way.gateways:
            asked.do("see_gateways", count=self.way.gateways * len(self.lab.sites))

    def counts(self, programs: Sequence[Told]) -> dict[str, int]:
        """What the kernels have counted of these programs' connections to other sites: ``COUNTED``.

        With gateways it is theirs, of all connections between them.
        """
        if self.way.gateways:
            return programs[0].do("gateways_count")
        return total(one.do("count") for one in programs)

    def _reports(self) -> Iterable[dict[str, Any]]:
        """What gateways tell, once all have told of what has happened by now."""
        time.sleep(TOLD_AFTER)
        key = bytes.fromhex(self._known["SFM_KEY"])
        with RemoteDirectory("lab", self._known["SFM_DIRECTORY"], key) as directory:
            return directory.reports().values()

    def __enter__(self) -> LabWorld:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            if isinstance(self.lab, Emulated):
                self.lab.hear(self._reports())
            for one in self._programs:
                one.leave()
            for one in self._programs:
                one.wait()
        for process in (*(one for many in self.gateways.values() for one in many), self._server):
            process.terminate()
            process.wait()
        self._folder.cleanup()
