"""Notebooks on one machine at the same time, of one user and of two: they never meet."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.jupyter.notebook import Notebook, notebook

ROOT = Path(__file__).parents[2]

ROUND = """%%sfm
told = {token!r}
send(dest=1 - rank, told=told)
send(dest='home', told=told, size=size)
assert recv(src=1 - rank).told == told
assert not peek(), 'a message of somebody else'"""
GATHER = """came = [recv(60) for _ in range(2)]
assert {{(m.told, m.size) for m in came}} == {{({token!r}, 2)}}, came
assert not peek() and sfm.name == 'home'
from sfm_kernel.observe import snapshot
print(len(snapshot(sfm)['processes']), sfm.world)"""


def meet_nobody(book: Notebook, rounds: int = 3) -> str:
    """Exchange messages in one notebook's world, and see no other process; returns its name."""
    world = ""
    for _ in range(rounds):
        token = secrets.token_hex(8)
        book.run(ROUND.format(token=token)).ok()
        shown = book.text(GATHER.format(token=token))
        # Above it IPython may tell that other kernels of this user write the same history.
        count, world = shown.splitlines()[-1].split()
        assert count == "3", "its engines and itself"
    return world


def test_two_notebooks_of_one_user() -> None:
    with notebook() as first, notebook() as second:
        for book in (first, second):
            book.run("%sfm start A B").ok()
        assert meet_nobody(first) != meet_nobody(second)
        first.run("%sfm stop").ok()
        meet_nobody(second)


@pytest.mark.stress
@pytest.mark.fault  # thirty kernels that end at once may take longer than Jupyter lets them
@pytest.mark.timeout(900)
def test_a_class_that_starts_at_once(effort: int) -> None:
    """Eight notebooks; thirty in `make long`."""
    count = 8 if effort == 1 else 30
    with ThreadPoolExecutor(count) as pool, ExitStack() as stack:
        books = [*pool.map(lambda _: Notebook(), range(count))]
        for book in books:
            stack.callback(book.close)
        starts = [book.send("%sfm start 2") for book in books]  # all at once
        for book, start in zip(books, starts, strict=True):
            begun = book.wait(start)
            assert "2 engines: 0, 1; this notebook is 'home'" in begun.text, begun.shown
        worlds = [*pool.map(meet_nobody, books)]
        assert len({*worlds}) == count
        first, *others = books
        first.run("%sfm restart").ok()
        first.run("%%sfm 0\nimport os; os._exit(1)")
        for world in pool.map(meet_nobody, others):
            assert world in worlds
        [*pool.map(Notebook.close, books)]


SEEN = """
import glob, json, os, sys
from sfm_kernel import directory
from sfm_kernel.jupyter.cluster_files import running_clusters
from sfm_kernel.jupyter.server.sampler import Worlds
from tests.jupyter.notebook import notebook
from tests.jupyter.test_many_notebooks import meet_nobody

def tell(**what):
    print(json.dumps(what), flush=True)

def open_to_me(top):
    try:
        return os.listdir(top)
    except OSError as error:
        return type(error).__name__

with notebook("%sfm start 2") as book:
    tell(world=meet_nobody(book), root=directory.root())
    other = json.loads(sys.stdin.readline())
    tell(
        worlds=directory.worlds(), shown=Worlds().names(),
        clusters=[one.cluster_id for one in running_clusters()],
        folder=open_to_me(other["root"]), cleaned=directory.clean(),
        segments=open_to_me(os.path.join(other["root"], other["world"])),
        again=meet_nobody(book),
    )
    sys.stdin.readline()
"""


class User:
    """Another user of this machine, who has a notebook with two engines."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.home = Path(tempfile.mkdtemp(prefix=f"sfm-user-{number}-"))
        os.chown(self.home, number, number)
        self.process = subprocess.Popen(
            [*_as_user(number), sys.executable, "-c", SEEN],
            env=self.environment(),
            cwd=self.home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def environment(self) -> dict[str, str]:
        """The environment after a login: nothing says where worlds are."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        folders = ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR")
        for name in folders:
            made = self.home / name.lower()
            made.mkdir(mode=0o700)
            os.chown(made, self.number, self.number)
            kept[name] = str(made)
        return kept | {"HOME": str(self.home), "USER": "sfm", "PYTHONPATH": str(ROOT)}

    def told(self) -> dict[str, Any]:
        """The next line of its output."""
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def tell(self, **what: Any) -> None:
        """Answer."""
        assert self.process.stdin is not None
        print(json.dumps(what), file=self.process.stdin, flush=True)

    def close(self) -> None:
        """End its notebook; nothing of it is left."""
        self.process.communicate()
        shutil.rmtree(self.home)


def _as_user(number: int) -> list[str]:
    """Start a command as that user; Python may be in a folder that only root may enter."""
    as_user = ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups"]
    python = Path(sys.executable).resolve()
    closed = [str(folder) for folder in python.parents if not folder.stat().st_mode & stat.S_IXOTH]
    if not closed:
        return as_user
    # In a mount namespace of its own, that folder has nothing but what Python needs.
    script = (
        'set -e; kept=$(mktemp -d); mount --bind "$2" "$kept"; mount -t tmpfs -o mode=755 none '
        '"$1"; mkdir -p "$2"; mount --move "$kept" "$2"; rmdir "$kept"; shift 2; exec "$@"'
    )
    private = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"]
    return [*private, closed[-1], str(python.parent.parent), *as_user]


@pytest.fixture
def users() -> Iterator[list[User]]:
    """Two users, if the machine permits this."""
    if os.geteuid() != 0:
        pytest.skip("only root can play two users")
    numbers = [60_000 + 2 * (os.getpid() % 2000) + nth for nth in (1, 2)]
    probe = [*_as_user(numbers[0]), sys.executable, "-c", "import sfm_kernel"]
    if shutil.which("setpriv") is None or subprocess.run(probe, cwd=ROOT).returncode:
        pytest.skip("another user cannot run this Python")
    made = [User(number) for number in numbers]
    yield made
    for user in made:
        user.close()
        os.rmdir(f"/dev/shm/sfm-{user.number}")  # nothing is in it


def test_two_users_of_one_machine(users: list[User]) -> None:
    known = [user.told() for user in users]
    assert [user["root"] for user in known] == [f"/dev/shm/sfm-{user.number}" for user in users]
    for user, other in zip(users, known[::-1], strict=True):
        user.tell(**other)
    for user, about in zip(users, known, strict=True):
        seen = user.told()
        assert seen["worlds"] == seen["shown"] == [about["world"]] == [seen["again"]]
        assert len(seen["clusters"]) == 1
        assert seen["folder"] == seen["segments"] == "PermissionError"
        assert seen["cleaned"] == []
