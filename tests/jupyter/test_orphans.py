"""However a notebook ends, and whatever its engines do, no process and no file remains."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from sfm_kernel import directory
from tests.jupyter.notebook import Notebook, cluster_files, descendants, notebook, runs, wait_for

pytestmark = pytest.mark.fault

BLOCKED = """
import subprocess, time
print('in')
if rank == 0:
    recv(never=1)
elif rank == 1:
    while True:
        try:
            time.sleep(1)
        except KeyboardInterrupt:
            pass
elif rank == 2:
    time.sleep(2)  # its output needs the GIL
    sum(range(10**13))  # never gives it back
else:
    subprocess.run(["sleep", "1000"])
"""


class Cluster:
    """The processes and files of a notebook's cluster, noted before it ends."""

    def __init__(self, book: Notebook, root: Path) -> None:
        self.processes = descendants(book.pid)
        self.root = root
        assert len(self.processes) >= 4  # controller, heart monitor, supervisor, engines
        assert len(self.files()) >= 4  # world, cluster file, connection files, logs

    def files(self) -> list[Path]:
        """The files of all clusters."""
        return cluster_files(self.root)

    def running(self) -> list[psutil.Process]:
        """The cluster's processes that have not ended."""
        return [process for process in self.processes if runs(process)]

    def goes_away(self) -> None:
        """Fail unless all processes and files disappear by themselves."""
        wait_for(lambda: not self.running(), f"the end of {self.running()}")
        wait_for(lambda: not self.files(), f"the removal of {self.files()}")


ENDS: dict[str, Callable[[Notebook], object]] = {
    "SIGKILL": lambda book: book.kill(signal.SIGKILL),
    "SIGTERM": lambda book: book.kill(signal.SIGTERM),
    "shutdown": lambda book: book.close(),
    "restart": lambda book: book.restart(now=False),
    "restart now": lambda book: book.restart(now=True),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_the_end_of_a_notebook_with_blocked_engines(
    sfm_dir: Path, end: Callable[[Notebook], object]
) -> None:
    with notebook("%sfm start 4") as book:
        message = book.send(f"%%sfm\n{BLOCKED}")
        book.wait(message, lambda shown: shown.text.count("in") >= 4)
        cluster = Cluster(book, sfm_dir)
        end(book)
        cluster.goes_away()


def test_stop_ends_blocked_engines(sfm_dir: Path) -> None:
    with notebook("%sfm start 4") as book:
        # --noblock: the notebook itself stays free to say stop
        book.run(f"%%sfm --noblock --out blocked\n{BLOCKED}").ok()
        wait_for(lambda: "True" in book.run("all(blocked.stdout)").text, "they are blocked")
        cluster = Cluster(book, sfm_dir)
        book.run("%sfm stop").ok()
        cluster.goes_away()


@pytest.mark.parametrize("victim", ["supervisor", "controller"])
def test_a_helper_dies_before_the_notebook(sfm_dir: Path, victim: str) -> None:
    with notebook("%sfm start 3") as book:
        message = book.send(f"%%sfm\n{BLOCKED}")
        book.wait(message, lambda shown: shown.text.count("in") >= 3)
        cluster = Cluster(book, sfm_dir)
        found = [process for process in cluster.processes if victim in " ".join(process.cmdline())]
        min(found, key=lambda process: process.pid).kill()
        book.kill(signal.SIGKILL)
        wait_for(lambda: not cluster.running(), f"the end of {cluster.running()}")
    directory.clean()  # one of the two processes that remove the files was killed
    for left in cluster.files():
        left.unlink()


def test_an_idle_notebook_is_killed(sfm_dir: Path) -> None:
    with notebook("%sfm start 1") as book:
        cluster = Cluster(book, sfm_dir)
        logs = [path for path in cluster.files() if path.match("log/engines*")]
        assert not logs, "written whenever an engine ends"
        book.kill()
        cluster.goes_away()


def test_a_notebook_that_only_connected_takes_nothing_with_it(sfm_dir: Path) -> None:
    with notebook("%sfm start 1") as first, notebook("%sfm connect") as second:
        cluster = Cluster(first, sfm_dir)
        second.kill()
        assert "alive" in first.text("%%sfm\nprint('alive')")
        first.run("%sfm stop").ok()
        cluster.goes_away()
