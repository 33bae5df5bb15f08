"""Builds this repository as Binder does, without an image, and runs all notebooks in it.

    python tools/binder_check.py --wheel dist/NAME.whl [--only 01-cpi] [--engines 8]

It makes an empty environment (with the dependencies of the Python that runs this) and a copy of the
repository, and runs `binder/postBuild` in it, as a user who is not root, without cargo and node,
with the wheel instead of a package index. Then `binder/start` starts JupyterLab with one core, 2 GB
of memory and 64 MB of /dev/shm, and a client does over HTTP and websockets what a browser does: it
opens each notebook, runs its cells, with more engines if the notebook starts four, and shuts it
down.

Needs root, for the small /dev/shm and to count pages. The exit status is 1 if a notebook failed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import urllib.request
import uuid
import venv
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import nbformat
import psutil
import websocket
from mapped import Watch, memory

from sfm_kernel.jupyter.controller import reserve_ports

ROOT = Path(__file__).parents[1]
USER = 1000
MEMORY = 2 << 30
SETS = ("inh-caps", "ambient-caps", "bounding-set")
CELL_SECONDS = 900
LACKING = ("cargo", "rustc", "rustup", "node", "npm", "npx")
COMMANDS = ("jupyter", "jupyter-execute", "jupyter-lab", "jupyter-labextension", "jupyter-server")


class Failed(Exception):
    """A cell raised an unexpected error."""


# --- the image ---------------------------------------------------------------------------------


def make_environment(folder: Path) -> None:
    """Make Binder's conda environment: dependencies, Jupyter's commands, without the package."""
    venv.create(folder, symlinks=True, with_pip=True)
    python = folder / "bin/python"
    packages = sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)})
    shared = folder / "dependencies/site-packages"  # threads of this path are known to be harmless
    shared.mkdir(parents=True)
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "sfm_kernel" not in entry.name and entry.suffix != ".pth":
            (shared / entry.name).symlink_to(entry)
    Path(packages, "dependencies.pth").write_text(str(shared))
    for name in COMMANDS:
        text = Path(sys.prefix, "bin", name).read_text()
        command = folder / "bin" / name
        command.write_text(f"#!{python}\n" + text.split("\n", 1)[1])
        command.chmod(0o755)
    (folder / "share/jupyter").mkdir(parents=True)
    for name in ("lab", "nbconvert"):
        (folder / "share/jupyter" / name).symlink_to(Path(sys.prefix, "share/jupyter", name))


def copy_repository(folder: Path) -> None:
    """Copy all files of the repository, with local changes."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def copy_commands(folder: Path) -> None:
    """Link this system's commands, without those that the image lacks."""
    folder.mkdir()
    for command in Path("/usr/bin").iterdir():
        if command.name not in LACKING:
            (folder / command.name).symlink_to(command)


class Image:
    """An environment and a copy of the repository, which is the user's home, as on Binder."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.repository, self._environment = folder / "home", folder / "env"
        make_environment(self._environment)
        copy_repository(self.repository)
        self._commands = folder / "bin"
        copy_commands(self._commands)
        wheels = folder / "index"
        wheels.mkdir()
        shutil.copy(wheel, wheels)
        self._index = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
        for path in (folder, *folder.rglob("*")):
            os.chown(path, USER, USER, follow_symlinks=False)

    def environ(self, **more: str) -> dict[str, str]:
        path = f"{self._environment}/bin:{self._commands}"
        known = {name: value for name, value in os.environ.items() if "OPENBLAS_" in name}
        home = str(self.repository)
        return {**known, "PATH": path, "HOME": home, "REPO_DIR": home, "LC_ALL": "C.UTF-8", **more}

    def build(self) -> None:
        """Run `binder/postBuild`, as repo2docker does at the end."""
        found = [name for name in LACKING if shutil.which(name, path=self.environ()["PATH"])]
        assert not found, found
        command = [*confined(), *as_user(), "./binder/postBuild"]
        environment = self.environ(**self._index)
        subprocess.run(command, cwd=self.repository, env=environment, check=True)
        if (self.repository / "sfm_kernel").exists():
            raise SystemExit("the package's sources hide the installed package, which has the core")


def confined(group: str = "") -> list[str]:
    """Words before a command: it gets a separate /dev/shm of 64 MB, and joins a control group."""
    join = f"echo $$ >{group}; " if group else ""
    shell = join + 'mount -t tmpfs -o size=64m,mode=1777 tmpfs /dev/shm; exec "$@"'
    return ["unshare", "--mount", "sh", "-ec", shell, "sh"]


def as_user() -> list[str]:
    """Words before a command: not root, but may read as root: this Python may be in root's home."""
    read = [f"--{kind}=-all,+dac_read_search" for kind in SETS]
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", *read]


@contextmanager
def memory_limit() -> Iterator[str]:
    """A control group of 2 GB; yields the file for process ids, empty if there is no group."""
    for top, limit in (
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        ("/sys/fs/cgroup", "memory.max"),
    ):
        group = Path(top, f"sfm-binder-{os.getpid()}")
        try:
            group.mkdir()
            (group / limit).write_text(str(MEMORY))
        except OSError:
            with suppress(OSError):
                group.rmdir()
            continue
        try:
            yield str(group / "cgroup.procs")
        finally:
            deadline = time.monotonic() + 10
            while group.exists() and time.monotonic() < deadline:
                with suppress(OSError):  # the last process is about to end
                    group.rmdir()
                time.sleep(0.1)
        return
    print("there is no control group for memory here: memory is measured, but not limited")
    yield ""


# --- the browser -------------------------------------------------------------------------------


class Lab:
    """A running server, and a client that does what a browser does."""

    def __init__(self, image: Image, group: str) -> None:
        self._port, self._token = reserve_ports(1)[0], secrets.token_hex(16)
        command = [*confined(group), "taskset", "-c", "0", *as_user()]
        command += ["./binder/start", "jupyter", "lab", "--no-browser", f"--port={self._port}"]
        command += [f"--IdentityProvider.token={self._token}"]
        self._log = open(image.repository.parent / "server.log", "wb")  # noqa: SIM115
        self.process = subprocess.Popen(
            command, cwd=image.repository, env=image.environ(),
            stdout=self._log, stderr=subprocess.STDOUT,
        )  # fmt: skip
        for _ in range(600):
            with suppress(OSError):
                self.call("GET", "api/status")
                break
            time.sleep(0.2)
        self.call("GET", "lab", text=True)

    def call(self, method: str, path: str, body: object = None, text: bool = False) -> Any:
        """Send a request; return the answer."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}/{path}", method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"token {self._token}"},
        )  # fmt: skip
        with urllib.request.urlopen(request, timeout=60) as answer:
            content = answer.read()
        return content if text or not content else json.loads(content)

    @contextmanager
    def kernel(self, path: str) -> Iterator[Kernel]:
        """Open a notebook; shut it down at the end of the block."""
        notebook = {"path": path, "name": path, "type": "notebook", "kernel": {"name": "python3"}}
        session = self.call("POST", "api/sessions", notebook)
        channels = f"127.0.0.1:{self._port}/api/kernels/{session['kernel']['id']}/channels"
        connection = websocket.create_connection(
            f"ws://{channels}?token={self._token}", timeout=CELL_SECONDS
        )
        try:
            yield Kernel(connection)
        finally:
            connection.close()
            self.call("DELETE", f"api/sessions/{session['id']}")
            psutil.wait_procs(psutil.Process(self.process.pid).children(True), timeout=30)

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()
        self._log.close()


class Kernel:
    """The channels of a kernel, as the server offers them to browsers."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def run(self, source: str) -> tuple[str, str]:
        """Run a cell; return its output, and the error that ended it, if any."""
        identity = uuid.uuid4().hex
        header = {"msg_id": identity, "msg_type": "execute_request", "version": "5.3",
                  "username": "", "session": "check", "date": ""}  # fmt: skip
        content = {"code": source, "silent": False, "store_history": True, "allow_stdin": False,
                   "user_expressions": {}, "stop_on_error": False}  # fmt: skip
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content,
                   "channel": "shell", "buffers": []}  # fmt: skip
        self._connection.send(json.dumps(message))
        shown, error, awaited = "", "", {"idle", "reply"}
        while awaited:
            got = self._connection.recv()
            if isinstance(got, bytes):  # with buffers: a widget's message
                continue
            answer = json.loads(got)
            if answer["parent_header"].get("msg_id") != identity:
                continue
            content = answer["content"]
            if answer["msg_type"] == "stream":
                shown += content["text"]
            elif answer["msg_type"] == "execute_reply":
                awaited.discard("reply")
                if content["status"] == "error":
                    error = f"{content['ename']}: {content['evalue']}"
            elif answer["msg_type"] == "status" and content["execution_state"] == "idle":
                awaited.discard("idle")
        return shown, error


def with_more(source: str, engines: int) -> str:
    """A cell of a notebook for four engines, changed for more engines.

    Notebooks for two engines, or for engines with names, stay unchanged.
    """
    source = re.sub(r"^%sfm start 4$", f"%sfm start {engines}", source, flags=re.M)
    for word, more in {
        "in range(4)": f"in range({engines})",
        "in (1, 2, 3)": f"in range(1, {engines})",
        "block(m, engine, 4)": f"block(m, engine, {engines})",
    }.items():
        source = source.replace(word, more)
    return source


def run_notebook(kernel: Kernel, path: Path, engines: int) -> str:
    """Run all cells; return the arguments of `%sfm start`. Raises Failed."""
    started = "-"
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type != "code":
            continue
        source = with_more(cell.source, engines)
        shown, error = kernel.run(source)
        expected = "raises-exception" in cell.metadata.get("tags", ())
        if error and not expected:
            raise Failed(f"{source}\n{shown[-2000:]}\n{error}")
        if begun := re.search(r"^%sfm start (.*)$", source, flags=re.M):
            started = begun[1]
    return started


FIRST = ("%load_ext sfm_kernel", "%sfm start {engines}",
         "%%sfm\nimport numpy\nsend(dest=(rank + 1) % size, x=numpy.arange(10))\nrecv().x.sum()",
         "%%sfm\nfrom mpi4py import MPI\nMPI.COMM_WORLD.allreduce(rank)")  # fmt: skip


COLUMNS = ("all", "server", "kernel", "engines", "controller", "programs")


def show(name: str, found: dict[str, float], more: str = "") -> None:
    """Print a line of the table."""
    numbers = (f"{found.get(column, 0):10.0f}" for column in COLUMNS)
    print(f"{name:24}", *numbers, "", more, flush=True)


def check(lab: Lab, notebooks: list[Path], engines: int) -> list[str]:
    """Run the notebooks, and print their memory and time; return the names of those that failed."""
    print(f"{'MB, at the most':24}", *(f"{name:>10}" for name in COLUMNS), " engines, s")
    server, failed = lab.process.pid, []
    show("the server alone", memory(server))
    with lab.kernel("first.ipynb") as kernel:
        for cell in FIRST:
            shown, error = kernel.run(cell.format(engines=engines))
            if error:
                raise SystemExit(f"{cell}\n{shown}\n{error}")
        show("first cells", memory(server), str(engines))
    for path in notebooks:
        began, started = time.monotonic(), "?"
        with Watch(server) as watch, lab.kernel(f"notebooks/{path.name}") as kernel:
            try:
                started = run_notebook(kernel, path, engines)
            except (Failed, websocket.WebSocketException, OSError) as error:
                failed.append(path.stem)
                print(f"{path.name} failed:\n{error}", file=sys.stderr)
        show(path.stem, watch.peak, f"{started}; {time.monotonic() - began:.0f} s")
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description="Run all notebooks as on Binder.")
    parser.add_argument("--wheel", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=[], help="names of notebooks")
    parser.add_argument("--engines", type=int, default=8)
    parser.add_argument("--output", type=Path, default=ROOT / "build/binder")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # and the server with it
    shutil.rmtree(options.output, ignore_errors=True)
    options.output.mkdir(parents=True)
    image = Image(options.output.resolve(), options.wheel.resolve())
    image.build()
    found = sorted((image.repository / "notebooks").glob("*.ipynb"))
    notebooks = [path for path in found if not options.only or path.stem in options.only]
    with memory_limit() as group:
        lab = Lab(image, group)
        try:
            failed = check(lab, notebooks, options.engines)
        finally:
            lab.close()
    print(f"{len(notebooks) - len(failed)} notebooks ran to their end; failed: {failed or 'none'}")
    return 1 if failed or not notebooks else 0


if __name__ == "__main__":
    sys.exit(main())
