"""However a notebook ends, no process and no file of its cluster stays."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.jupyter.notebook import Notebook, descendants, notebook, wait_for

pytestmark = pytest.mark.fault

BLOCKED = {
    "idle": "",
    "recv": "recv(never=1)",
    "sleep": "import time; time.sleep(1000)",
    "ignores Ctrl-C": (
        "import time\nwhile True:\n    try:\n        time.sleep(1)\n"
        "    except KeyboardInterrupt:\n        pass"
    ),
    "holds the GIL": "import time; time.sleep(0.3); sum(range(10**13))",
    "child process": "import subprocess; subprocess.run(['sleep', '1000'])",
}


class Cluster:
    """The processes and files of a notebook's cluster, remembered before it ends."""

    def __init__(self, book: Notebook, root: Path, cell: str) -> None:
        if cell:
            message = book.send(f"%%sfm\nprint('in')\n{cell}")
            book.wait(message, lambda shown: shown.text.count("in") >= 2)
        self.processes = descendants(book.pid)
        assert len(self.processes) >= 5  # controller, heart monitor, supervisor, engines
        self.profile = Path(os.environ["IPYTHONDIR"]) / "profile_default"
        self.root = root
        assert self._files()

    def _files(self) -> list[Path]:
        worlds = [path for path in self.root.iterdir() if path.name.startswith("ipp-")]
        return [*worlds, *self.profile.glob("*/*sfm-*")]

    def is_gone(self) -> None:
        """Fail unless everything goes away by itself."""
        wait_for(lambda: not any(map(_runs, self.processes)), f"the end of {self.processes}")
        wait_for(lambda: not self._files(), f"the removal of {self._files()}")


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("cell", BLOCKED.values(), ids=BLOCKED.keys())
def test_a_killed_kernel_leaves_nothing(sfm_dir: Path, cell: str) -> None:
    with notebook("%sfm start 2") as book:
        cluster = Cluster(book, sfm_dir, cell)
        book.kill(signal.SIGKILL)
        cluster.is_gone()


ENDS: dict[str, Callable[[Notebook], object]] = {
    "SIGTERM": lambda book: book.kill(signal.SIGTERM),
    "shutdown": lambda book: book.close(),
    "restart": lambda book: book.restart(now=False),
    "restart now": lambda book: book.restart(now=True),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_no_end_of_a_blocked_notebook_leaves_anything(
    sfm_dir: Path, end: Callable[[Notebook], object]
) -> None:
    with notebook("%sfm start 2") as book:
        cluster = Cluster(book, sfm_dir, BLOCKED["ignores Ctrl-C"])
        end(book)
        cluster.is_gone()


@pytest.mark.parametrize("cell", BLOCKED.values(), ids=BLOCKED.keys())
def test_stop_ends_what_is_blocked(sfm_dir: Path, cell: str) -> None:
    with notebook("%sfm start 2") as book:
        if cell:
            # --noblock: the notebook itself stays free to say stop
            book.run(f"%%sfm --noblock --out blocked\nprint('in')\n{cell}").ok()
            wait_for(lambda: "True" in book.run("all(blocked.stdout)").text, "it runs")
        cluster = Cluster(book, sfm_dir, "")
        book.run("%sfm stop").ok()
        cluster.is_gone()


@pytest.mark.parametrize("victim", ["supervisor", "controller"])
def test_the_death_of_one_helper_leaves_nothing_either(sfm_dir: Path, victim: str) -> None:
    with notebook("%sfm start 2") as book:
        cluster = Cluster(book, sfm_dir, BLOCKED["ignores Ctrl-C"])
        found = [one for one in cluster.processes if victim in " ".join(one.cmdline())]
        found[0].kill()
        book.kill(signal.SIGKILL)
        wait_for(lambda: not any(map(_runs, cluster.processes)), "the end of all")


def test_a_notebook_that_only_connected_takes_nothing_with_it(sfm_dir: Path) -> None:
    with notebook("%sfm start 1") as one, notebook("%sfm connect") as two:
        two.kill(signal.SIGKILL)
        assert "alive" in one.run("%%sfm\nprint('alive')").ok().text
        one.run("%sfm stop").ok()
        wait_for(lambda: not list(sfm_dir.glob("ipp-*/*.seg")), "the removal of the segments")
