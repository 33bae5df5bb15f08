"""A real Jupyter server with the extension, its clients, and processes for it to see."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import websocket

from sfm_kernel import directory
from sfm_kernel.jupyter.controller import reserve_ports
from tests.jupyter.notebook import PATIENCE, wait_for
from tests.observe.pictures import check

TOKEN = "for-tests"
OTHERS = ("ipyparallel", "jupyter_lsp", "jupyter_server_terminals", "jupyterlab")
OTHERS += ("notebook", "notebook_shim")
"""Extensions that these tests do not need, and that would take seconds to start."""


class Server:
    """A server's process, and the REST calls to it."""

    def __init__(self, folder: Path) -> None:
        extensions = {"sfm_kernel.jupyter.server": True} | dict.fromkeys(OTHERS, False)
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "jupyter_server", "--allow-root", "--no-browser"),
                f"--ServerApp.port={reserve_ports(1)[0]}",
                f"--ServerApp.root_dir={folder}",
                f"--IdentityProvider.token={TOKEN}",
                f"--ServerApp.jpserver_extensions={extensions}",
            ],
            cwd=folder,
            env=os.environ | {"SFM_RUNS": "0"},  # nothing of these tests in the user's folder
        )
        self._info = Path(os.environ["JUPYTER_RUNTIME_DIR"], f"jpserver-{self.process.pid}.json")
        wait_for(lambda: self._known() or self.process.poll() is not None, "the server runs")
        self.url = self._known()["url"]
        wait_for(lambda: self.get("api/status")[0] == 200, "the server answers")

    def _known(self) -> dict[str, Any]:
        """The server's own description of itself; empty until it is completely written."""
        try:
            found: dict[str, Any] = json.loads(self._info.read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return found

    def call(
        self,
        path: str,
        body: object = None,
        *,
        method: str = "GET",
        headers: Mapping[str, str] = {"Authorization": f"token {TOKEN}"},
    ) -> tuple[int, Any]:
        """The status and the answer, decoded if it is JSON."""
        data = json.dumps(body).encode() if method == "POST" else None
        request = urllib.request.Request(self.url + path, data, dict(headers), method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        except urllib.error.URLError:  # it does not listen yet
            return 0, None
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text

    def get(self, path: str) -> tuple[int, Any]:
        """The status and the answer of a GET."""
        return self.call(path)

    def post(self, path: str, body: object) -> tuple[int, Any]:
        """The status and the answer of a POST."""
        return self.call(path, body, method="POST")

    def done(self, path: str, body: object) -> Any:
        """The answer to a POST that succeeds."""
        status, answer = self.post(path, body)
        assert status in (200, 201), answer
        return answer

    def worlds(self) -> dict[str, Any]:
        """The list of worlds, by name."""
        status, answer = self.get("sfm/worlds")
        assert status == 200, answer
        return {world["world"]: check("world", world) for world in answer["worlds"]}

    @contextmanager
    def stream(self) -> Iterator[Stream]:
        """A client of the websocket."""
        stream = Stream(self.url.replace("http", "ws", 1) + f"sfm/stream?token={TOKEN}")
        try:
            yield stream
        finally:
            stream.socket.close()

    def close(self) -> None:
        """End it as Ctrl-C does; harmless when repeated."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(PATIENCE)


class Stream:
    """A client of the websocket; checks messages against the schema."""

    def __init__(self, url: str, **options: Any) -> None:
        self.socket = websocket.create_connection(url, timeout=PATIENCE, **options)

    def watch(self, world: str | None, *parts: str, rate: float = 20) -> None:
        """Subscribe."""
        wish = {"type": "watch", "world": world, "rate": rate, "parts": list(parts)}
        self.socket.send(json.dumps(wish))

    def next(self) -> dict[str, Any]:
        """The next message, whatever it is."""
        message: dict[str, Any] = json.loads(self.socket.recv())
        kind = message["type"]
        if kind == "worlds":
            for world in message["worlds"]:
                check("world", world)
        elif kind == "runs":
            for run in message["runs"]:
                check("finished_run", run)
        elif kind in ("snapshot", "diagnosis", "timeline"):
            check(kind, message[kind])
        else:
            assert kind in ("gone", "error")
        return message

    def until(self, kind: str, fits: Callable[[Any], object] = lambda content: True) -> Any:
        """The content of the first matching message of this kind."""
        return self.until_each(**{kind: fits})[kind]

    def until_each(self, **fits: Callable[[Any], object]) -> dict[str, Any]:
        """The contents of the first matching messages of several kinds, by kind, in any order."""
        found: dict[str, Any] = {}
        while found.keys() < fits.keys():
            message = self.next()
            kind = message["type"]
            content = message.get({"error": "text", "gone": "world"}.get(kind, kind))
            if kind in fits and kind not in found and fits[kind](content):
                found[kind] = content
        return found

    def until_silence(self, seconds: float = 1.5) -> list[dict[str, Any]]:
        """The messages that still come, until none has come for this time."""
        came = []
        self.socket.settimeout(seconds)
        try:
            while True:
                came.append(self.next())
        except websocket.WebSocketTimeoutException:
            return came
        finally:
            self.socket.settimeout(PATIENCE)


@contextmanager
def server(folder: Path) -> Iterator[Server]:
    """A server whose notebooks are in ``folder``."""
    running = Server(folder)
    try:
        yield running
    finally:
        running.close()


class Program:
    """A process of a world that runs ``body`` (``sfm`` is its endpoint, ``say`` prints)."""

    _FRAME = """
import ctypes, os, signal, sys, time
import sfm_kernel
def say(text):
    print(text, flush=True)
sfm = sfm_kernel.join(sys.argv[1], sys.argv[2])
try:
    say("joined")
    exec(sys.argv[3])
finally:
    sfm.close()
"""

    def __init__(self, world: str, name: str, body: str) -> None:
        command = [sys.executable, "-c", self._FRAME, world, name, body]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.line() == "joined"

    def line(self) -> str:
        """The next line of its output; empty when it has ended."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def tell(self, text: str) -> None:
        """Write a line to its standard input."""
        assert self.process.stdin is not None
        print(text, file=self.process.stdin, flush=True)

    def close(self) -> None:
        """Kill it; harmless when repeated."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


@contextmanager
def programs(world: str, **bodies: str) -> Iterator[dict[str, Program]]:
    """Processes of a world by name."""
    running: dict[str, Program] = {}
    try:
        for name, body in bodies.items():
            running[name] = Program(world, name, body)
        yield running
    finally:
        for program in running.values():
            program.close()
        directory.remove_world(world)  # the files of killed processes; others may go on


def processes(content: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The processes of a snapshot by name."""
    return {process["name"]: process for process in content["processes"]}


def blocked(*names: str) -> Callable[[Any], bool]:
    """Whether all of them are blocked in recv in a snapshot."""

    def fits(content: Any) -> bool:
        found = processes(content)
        return all(found.get(name, {}).get("state") == "blocked in recv" for name in names)

    return fits
