"""Clusters that the panel starts, and clusters of notebooks."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from jupyter_client.blocking import BlockingKernelClient

from tests.jupyter.notebook import PATIENCE, cluster_files, descendants, runs, wait_for
from tests.jupyter.server import Server, processes, server

pytestmark = [pytest.mark.keeps("one server for some of them"), pytest.mark.fault]

HOLDER = "sfm_kernel.jupyter.server.engines"


def names(running: Server, world: str) -> dict[str | int, str]:
    """The uids of a world's living processes by name."""
    with running.stream() as stream:
        stream.watch(world, "snapshot")
        seen = processes(stream.until("snapshot"))
        return {name: process["uid"] for name, process in seen.items() if process["alive"]}


_earlier: set[Path] = set()


@pytest.fixture(autouse=True)
def _only_its_own(sfm_dir: Path) -> None:
    """Files of earlier tests do not count for this test."""
    _earlier.clear()
    _earlier.update(files(sfm_dir))


def files(sfm_dir: Path) -> list[Path]:
    """The files of all clusters of this test."""
    return [path for path in cluster_files(sfm_dir) if path not in _earlier]


def test_engines_are_counted_while_they_start(tmp_path: Path, sfm_dir: Path) -> None:
    with server(tmp_path) as running:
        status, text = running.post("sfm/worlds", {"names": ["A", "B"], "progress": True})
        *came, answer = map(json.loads, text.splitlines())
        assert status == 200 and came[-1] == {"came": 2, "of": 2}
        assert answer["world"] in running.worlds()
        # No answer but the one to this command.
        assert running.done(f"sfm/worlds/{answer['world']}/restart", {"uids": None}) == {}
        running.post(f"sfm/worlds/{answer['world']}/stop", {"uids": None})


def test_a_cluster_from_the_panel(tmp_path: Path, sfm_dir: Path) -> None:
    with server(tmp_path) as running:
        # The cluster's owner does not look for Python's modules in the server's folder.
        (tmp_path / "queue.py").write_text("raise SystemExit('an impostor')")
        status, answer = running.post("sfm/worlds", {"names": ["A", "B"]})
        assert status == 201
        world, cluster = answer["world"], answer["cluster"]
        entry = running.worlds()[world]
        assert (entry["cluster"], entry["owner"], entry["title"]) == (cluster, "server", cluster)
        assert (entry["engines"], entry["running"], entry["ended"]) == (2, 0, 0)
        # Nobody but the engines: an idle guest would be taken for one who may still send.
        before = names(running, world)
        assert list(before) == ["A", "B"]
        # An idle engine has nothing to interrupt.
        assert running.done(f"sfm/worlds/{world}/interrupt", {"uids": None}) == {"interrupted": []}
        running.done(f"sfm/worlds/{world}/interrupt", {"uids": list(before.values())})
        assert names(running, world) == before

        running.done(f"sfm/worlds/{world}/rescale", {"engines": 4})
        four = names(running, world)
        assert list(four) == ["A", "B", 2, 3] and before.items() <= four.items()
        running.done(f"sfm/worlds/{world}/rescale", {"engines": 1})
        assert names(running, world) == {"A": before["A"]}
        assert running.worlds()[world]["engines"] == 1  # the others are not among the dead
        running.done(f"sfm/worlds/{world}/rescale", {"engines": 3})
        three = names(running, world)
        assert list(three) == ["A", 1, 2]

        running.done(f"sfm/worlds/{world}/restart", {"uids": [three[1]]})
        again = names(running, world)
        assert list(again) == ["A", 1, 2] and again[1] != three[1]
        assert again["A"] == three["A"] and again[2] == three[2]

        running.done(f"sfm/worlds/{world}/stop", {"uids": [again["A"]]})
        assert list(names(running, world)) == [1, 2]
        running.done(f"sfm/worlds/{world}/restart", {"uids": None})
        everybody = names(running, world)
        assert list(everybody) == ["A", 1, 2] and not everybody.items() & again.items()

        status, answer = running.post(f"sfm/worlds/{world}/restart", {"uids": [again["A"]]})
        assert status == 409 and again["A"] in answer["message"]

        running.done(f"sfm/worlds/{world}/stop", {"uids": None})
        assert not running.worlds() and not descendants(running.process.pid) and not files(sfm_dir)
        assert running.post(f"sfm/worlds/{world}/stop", {})[0] == 404


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"engines": 0}, "from 1 to"),
        ({"engines": 10**6}, "from 1 to"),
        ({"engines": True}, "send"),
        ({"engines": 2, "names": ["A"]}, "send"),
        ({"names": []}, "names"),
        ({"names": ["A", "A"]}, "two engines have the same name"),
        ({"names": ["home"]}, "'home' is no name"),
        ({"names": ["A;rm"]}, "is no name"),
        ({}, "send"),
        ([], "send"),
    ],
)
def test_impossible_engines_are_refused(shared: Server, body: object, words: str) -> None:
    status, answer = shared.post("sfm/worlds", body)
    assert status == 400 and words in answer["message"]
    assert not descendants(shared.process.pid)


ENDS: dict[str, Callable[[Server], object]] = {
    "killed": lambda running: running.process.kill(),
    "terminated": lambda running: running.close(),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_the_end_of_the_server_ends_its_clusters(
    tmp_path: Path, sfm_dir: Path, end: Callable[[Server], object]
) -> None:
    with server(tmp_path) as running:
        running.done("sfm/worlds", {"engines": 2})
        found = descendants(running.process.pid)
        # holder, controller, heart monitor, supervisor, two engines
        assert len(found) >= 6 and len(files(sfm_dir)) >= 4
        end(running)
        goes_away(found, sfm_dir)


def goes_away(found: list[psutil.Process], sfm_dir: Path) -> None:
    """Fail unless the processes and all files of clusters disappear by themselves."""
    wait_for(lambda: not any(map(runs, found)), f"the end of {found}")
    wait_for(lambda: not files(sfm_dir), f"the removal of {files(sfm_dir)}")


def test_the_server_is_killed_while_engines_start(tmp_path: Path, sfm_dir: Path) -> None:
    with server(tmp_path) as running:
        ask = threading.Thread(target=lambda: suppressed(running), name="asks")
        ask.start()
        wait_for(
            lambda: len(descendants(running.process.pid)) >= 2, "the holder starts a controller"
        )
        found = descendants(running.process.pid)
        running.process.kill()
        goes_away(found, sfm_dir)
        ask.join()


def suppressed(running: Server) -> None:
    """Request engines from a server that ends before it answers."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        running.post("sfm/worlds", {"engines": 2})


def test_the_process_that_holds_a_cluster_is_killed(shared: Server, sfm_dir: Path) -> None:
    world = shared.done("sfm/worlds", {"engines": 1})["world"]
    found = descendants(shared.process.pid)
    (holder,) = [process for process in found if HOLDER in process.cmdline()]
    holder.kill()
    goes_away(found, sfm_dir)
    wait_for(lambda: world not in shared.worlds(), "the list has heard of it")
    assert shared.post(f"sfm/worlds/{world}/restart", {"uids": None})[0] == 404


def test_a_holder_that_nobody_tells_to_start() -> None:
    command = [sys.executable, "-m", HOLDER]
    lines = [{"do": "restart"}, {"do": "start", "engines": "four"}, {"do": "dance"}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    with subprocess.Popen(command, text=True, stdin=-1, stdout=-1) as holder:
        assert holder.stdin is not None and holder.stdout is not None
        holder.stdin.write(text)
        holder.stdin.flush()
        answers = [json.loads(holder.stdout.readline()) for _ in lines]
        holder.stdin.close()
        assert holder.wait(PATIENCE) == 0
    assert all("error" in answer for answer in answers)
    assert "comes before 'start'" in answers[0]["error"]


# ---- notebooks of the same server


class Notebook:
    """A kernel that the server has started for a file."""

    def __init__(self, running: Server, path: str) -> None:
        kernel = {"name": "python3"}
        body = {"path": path, "name": path, "type": "notebook", "kernel": kernel}
        self.id = running.done("api/sessions", body)["kernel"]["id"]
        file = Path(os.environ["JUPYTER_RUNTIME_DIR"], f"kernel-{self.id}.json")
        self.client = BlockingKernelClient(connection_file=str(file))
        self.client.load_connection_file()
        self.client.start_channels()
        # Not wait_for_ready: on a busy machine it takes a slow heartbeat for a dead kernel.
        self.client.kernel_info(reply=True, timeout=PATIENCE)
        self.run("%load_ext sfm_kernel")

    def run(self, code: str) -> None:
        """Run a cell that succeeds."""
        reply = self.client.execute(code, reply=True, timeout=PATIENCE)["content"]
        assert reply["status"] == "ok", reply


@contextmanager
def notebook(running: Server, path: str) -> Iterator[Notebook]:
    book = Notebook(running, path)
    try:
        yield book
    finally:
        book.client.stop_channels()
        running.call(f"api/kernels/{book.id}", method="DELETE")


def test_a_notebook_and_its_cluster(shared: Server, sfm_dir: Path) -> None:
    with notebook(shared, "sub/lesson.ipynb") as book, notebook(shared, "other.ipynb") as other:
        book.run("%sfm start 2")
        ((world, entry),) = shared.worlds().items()
        assert (entry["owner"], entry["title"]) == ("notebook", "lesson.ipynb")
        assert entry["kernels"] == [book.id] and entry["engines"] == 2

        assert entry["cluster"] == "lesson.ipynb"
        other.run("%sfm connect lesson")
        entry = shared.worlds()[world]
        assert entry["kernels"] == sorted([book.id, other.id])
        assert (entry["owner"], entry["title"]) == ("notebook", "lesson.ipynb")

        for action in ("stop", "restart", "rescale"):
            status, answer = shared.post(f"sfm/worlds/{world}/{action}", {"engines": 1})
            assert status == 409 and f"%sfm {action}".removesuffix("rescale") in answer["message"]
        assert shared.worlds()[world]["engines"] == 2

        book.run("%%sfm --noblock\nimport os, signal; os.kill(os.getpid(), signal.SIGKILL)")
        wait_for(lambda: shared.worlds()[world]["ended"] == 2, "both engines have ended")
        assert shared.worlds()[world]["owner"] == "notebook"
        other.run("%sfm stop")  # it only leaves
        book.run("%sfm stop")
        wait_for(lambda: world not in shared.worlds(), "the end of the world")


WAITS = """
import sfm_kernel
def wait(sfm):
    sfm.recv(60, tag='end')
if __name__ == '__main__':
    sfm_kernel.run(wait, n=2)
"""


@pytest.mark.parametrize(
    ("words", "title"),
    [
        (["hangs.py"], "hangs.py"),
        (["-m", "sfm_kernel.mpi", "-n", "2", "ring.py"], "ring.py"),
        (["-c", WAITS.replace("'__main__'", "__name__")], None),
    ],
)
def test_a_program_s_world_has_its_name(
    shared: Server, tmp_path: Path, words: list[str], title: str | None
) -> None:
    (tmp_path / "hangs.py").write_text(WAITS)
    (tmp_path / "ring.py").write_text("from mpi4py import MPI; MPI.COMM_WORLD.recv(source=1)")
    before = shared.worlds()
    program = subprocess.Popen([sys.executable, *words], cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: len(shared.worlds()) > len(before), "the program's world")
        ((world, entry),) = [pair for pair in shared.worlds().items() if pair[0] not in before]
        assert entry["title"] == (title or world)
        assert (entry["owner"], entry["cluster"]) == ("other", None)
    finally:
        program.send_signal(signal.SIGINT)
        program.wait()
        wait_for(lambda: world not in shared.worlds(), "the end of the world")


def test_a_notebook_joins_a_cluster_from_the_panel(shared: Server) -> None:
    started = shared.done("sfm/worlds", {"engines": 1})
    world, cluster = started["world"], started["cluster"]
    with notebook(shared, "lesson.ipynb") as book:
        book.run(f"%sfm connect {cluster}")
        entry = shared.worlds()[world]
        assert (entry["owner"], entry["title"]) == ("server", cluster)
        assert entry["kernels"] == [book.id] and entry["engines"] == 1
        assert "home" in names(shared, world)
        book.run("send(dest=0, n=41)")
        book.run("%%sfm\nsend(dest='home', n=recv().n + 1)")
        book.run("assert recv().n == 42")
    shared.done(f"sfm/worlds/{world}/stop", {})
    assert not shared.worlds()
