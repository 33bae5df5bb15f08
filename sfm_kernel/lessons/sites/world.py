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
from itertools import chain
from pathlib import Path
from typing import Any

from sfm_kernel.directory import RemoteDirectory
from sfm_kernel.errors import SFMError
from sfm_kernel.lessons.sites.counts import REPORTED_AFTER, total
from sfm_kernel.lessons.sites.emulated import Emulated
from sfm_kernel.lessons.sites.lab import Lab
from sfm_kernel.lessons.sites.routes import DIRECT, Route

PORT = 7099


class ProgramHandle:
    """A ``program`` that runs in a host, and does jobs."""

    def __init__(self, name: str, process: subprocess.Popen[str]) -> None:
        self.name, self._process = name, process

    def begin(self, job: str, **details: Any) -> None:
        """Let it begin a job; ``end`` waits for the result."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"job": job, **details}) + "\n")
        self._process.stdin.flush()

    def end(self) -> dict[str, Any]:
        """The result of its last job. Raises SFMError if the job did, or the program has died."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SFMError(f"program {self.name!r} has ended: status {self._process.wait()}")
        result: dict[str, Any] | None = json.loads(line)
        if result and "error" in result:
            raise SFMError(f"program {self.name!r}: {result['error']}")
        return result or {}

    def do(self, job: str, **details: Any) -> dict[str, Any]:
        """``begin`` and ``end``."""
        self.begin(job, **details)
        return self.end()

    def kill(self) -> None:
        """Kill the program."""
        self._process.kill()
        self._process.wait()

    def leave(self) -> None:
        """Let it close its endpoint and end."""
        assert self._process.stdin is not None
        self._process.stdin.close()  # also of a killed program

    def wait(self) -> None:
        """Wait until it has ended."""
        self._process.wait()


class LabWorld:
    """A directory server in the first host of the first site, gateways, and programs in any host.

    If sites have gateways, each site's last host is for them alone. Hosts share no memory: each has
    a different ``SFM_DIR``. When the constructor returns all gateways listen.

    Args:
        route: the route of messages between sites.
    """

    def __init__(self, lab: Lab | Emulated, route: Route = DIRECT) -> None:
        if isinstance(lab, Emulated) and not route.gateways:
            raise SFMError("without network namespaces only gateways emulate a long path")
        self.lab, self.route = lab, route
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self._folder = tempfile.TemporaryDirectory(prefix="sfm-lab-", dir=memory)
        self._programs: list[ProgramHandle] = []
        self.gateways: dict[str, list[subprocess.Popen[str]]] = {}
        home = next(iter(lab.sites))
        place = f"tcp://{lab.address(home)}:{PORT}"
        self._known = {"SFM_WORLD": "lab", "SFM_TCP": route.tcp}
        self._known["SFM_KEY"] = secrets.token_hex(32)
        command = [sys.executable, "-m", "sfm_kernel.directory", "--world", "lab", "--bind", place]
        self._server = self._started(home, 1, command, "directory server")
        name, _, address = self._server.stdout.readline().strip().partition("=")
        assert name == "export SFM_DIRECTORY"
        self._known["SFM_DIRECTORY"] = address
        for site in lab.sites if route.gateways else ():
            self.gateways[site] = [self._gateway(site) for _ in range(route.gateways)]

    def _started(self, site: str, host: int, command: list[str], name: str) -> Any:
        """Start a program; return when it has printed a line, which means that it listens."""
        process = self.lab.run(
            site, command, self._environment(site, host), host=host, stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        assert process.stdout is not None
        if not process.stdout.readline():
            raise SFMError(f"the lab's {name} has ended: its reason is above")
        return process

    def _gateway(self, site: str) -> Any:
        host = self.lab.sites[site]
        command = [sys.executable, "-m", "sfm_kernel.gateway", "--world", "lab", "--site", site]
        command += ["--bind", self.lab.address(site, host), *self.route.options]
        command += self.lab.gateway_options
        return self._started(site, host, command, f"gateway of {site}")

    def _environment(self, site: str, host: int) -> dict[str, str]:
        folder = Path(self._folder.name) / f"{site}{host}"
        folder.mkdir(mode=0o700, exist_ok=True)
        local = {"SFM_DIR": str(folder), "SFM_HOST_IP": self.lab.address(site, host)}
        return {**self._known, **local, "SFM_SITE": site, "SFM_TRANSPORT": ""}

    def hosts(self, site: str) -> int:
        """The number of a site's hosts for programs."""
        return self.lab.sites[site] - (1 if self.route.gateways else 0)

    def program(self, name: str, site: str, host: int = 1) -> ProgramHandle:
        """Start a program, which has not joined yet."""
        pipe = subprocess.PIPE
        command = [sys.executable, "-m", "sfm_kernel.lessons.sites.program", name]
        process = self.lab.run(
            site, command, self._environment(site, host), host=host, stdin=pipe, stdout=pipe,
            text=True,
        )  # fmt: skip
        handle = ProgramHandle(name, process)
        self._programs.append(handle)
        return handle

    def join(self, programs: Sequence[ProgramHandle]) -> None:
        """Let all of them join, and wait until they know each other and gateways have met."""
        names = [program.name for program in programs]
        for job, details in (("join", {}), ("know", {"names": names})):
            for program in programs:
                program.begin(job, **details)
            for program in programs:
                program.end()
        self.settle(programs[0])

    def settle(self, asked: ProgramHandle) -> None:
        """Wait until ``asked``, which has joined, sees that the gateways are connected."""
        if self.route.gateways:
            asked.do("see_gateways", count=self.route.gateways * len(self.lab.sites))

    def counts(self, programs: Sequence[ProgramHandle]) -> dict[str, int]:
        """The kernels' counts (``COUNTED``) of these programs' connections to other sites.

        With gateways, the counts of all connections between them.
        """
        if self.route.gateways:
            return programs[0].do("gateways_count")
        return total(program.do("count") for program in programs)

    def _reports(self) -> Iterable[dict[str, Any]]:
        """The reports of all gateways, which include the present events."""
        time.sleep(REPORTED_AFTER)
        key = bytes.fromhex(self._known["SFM_KEY"])
        with RemoteDirectory("lab", self._known["SFM_DIRECTORY"], key) as directory:
            return directory.reports().values()

    def __enter__(self) -> LabWorld:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            if isinstance(self.lab, Emulated):
                self.lab.add_reports(self._reports())
            for program in self._programs:
                program.leave()
            for program in self._programs:
                program.wait()
        for process in (*chain.from_iterable(self.gateways.values()), self._server):
            process.terminate()
            process.wait()
        self._folder.cleanup()
