"""Clusters: started, connected to, repaired after a death, stopped."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ipyparallel as ipp
import psutil

from tests.jupyter.notebook import (
    PATIENCE,
    Notebook,
    descendants,
    notebook,
    runs,
    wait_for,
    wait_until_blocked,
)


def engine_pid(book: Notebook, name: str) -> int:
    text = book.text(f"%%sfm {name}\nimport os; print('pid', os.getpid())")
    return int(text.split("pid")[1].split()[0])


@contextmanager
def launched(n: int, name: str, *words: str, **options: Any) -> Iterator[ipp.Cluster]:
    """A cluster of ipyparallel, whose controller gets these words."""
    options |= {"cluster_id": name, "controller_args": ["--ping=100", *words]}
    cluster = ipp.Cluster(n=n, delay=0.0, log_level=logging.ERROR, **options)
    cluster.start_cluster_sync()
    try:
        with cluster.connect_client_sync() as client:
            client.wait_for_engines(n, timeout=PATIENCE, interactive=False)
        yield cluster
    finally:
        cluster.stop_cluster_sync()


def test_a_killed_engine_is_named_and_comes_back_with_name_and_rank() -> None:
    with notebook("%sfm start A B") as book:
        pid = engine_pid(book, "A")
        message = book.send("%%sfm\nprint('in')\nif rank == 0: recv(never=1)")
        book.wait(message, lambda cell: cell.text.count("in") >= 2)
        os.kill(pid, signal.SIGKILL)
        assert "on A: EngineError: it was killed by SIG" in book.wait(message).error
        assert "engine A has ended: `%sfm restart A`" in book.run("%%sfm A\n1").text
        assert "without A, ended before" in book.text("%%sfm\nprint(rank)")
        assert "A has ended (`%sfm restart A`)" in book.text("%sfm start A B")

        # B is not disturbed, and its blocked cell is not waited for
        book.run("%%sfm B --noblock --out held\nrecv(free=1).src").ok()
        assert "restarted: A (rank 0)" in book.text("%sfm restart A")
        assert "0 2 A" in book.text("%%sfm A\nprint(rank, size, sfm.name)")
        book.run("%%sfm A\nsend(dest='B', free=1)").ok()
        assert "'A'" in book.text("held.get(); held.display_outputs()")


def test_stop_after_an_engine_has_died() -> None:
    with notebook("%sfm start A B") as book:
        pid = engine_pid(book, "A")
        message = book.send(
            "%%sfm\nprint('in')\nif rank == 1: recv(never=1)\nimport time; time.sleep(99)"
        )
        book.wait(message, lambda cell: cell.text.count("in") >= 2)
        wait_until_blocked(1)
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: psutil.pid_exists(pid) is False, "the end of A")
        time.sleep(1)  # the client hears of it
        book.interrupt()
        cell = book.wait(message)
        assert "KeyError" not in cell.shown
        # Without A, B's wait is a deadlock, which may be proven before the interrupt comes.
        is_proven = "Deadlock: B waits for a message" in cell.text
        said = "on A: EngineError" in cell.error or "B was in recv(never=1)" in cell.error
        assert said or is_proven, cell.shown
        assert "B lives" in book.text("%%sfm B\nprint('B lives')")


def test_stop_with_an_engine_that_holds_its_gil(tmp_path: Path) -> None:
    computes = tmp_path / "computes"
    source = f"""%%sfm
if rank: recv(never=1)
open({str(computes)!r}, "w").close()
sum(range(10**13))"""
    with notebook("%sfm start A B") as book:
        message = book.send(source)
        wait_for(computes.exists, "A computes")
        wait_until_blocked(1)
        book.interrupt()
        error = book.wait(message).error
        assert "B was in recv(never=1)" in error
        assert "A is still running! `%sfm restart A` ends it" in error
        book.run("%sfm restart A").ok()
        assert "0 2 A" in book.text("%%sfm A\nprint(rank, size, sfm.name)")


def test_children_of_an_engine_end_with_it() -> None:
    start = "import subprocess; print('helper', subprocess.Popen(['sleep', '1000']).pid)"
    with notebook("%sfm start A B") as book:
        text = book.text(f"%%sfm A\n{start}")
        helper = psutil.Process(int(text.split("helper")[1].split()[0]))
        os.kill(engine_pid(book, "A"), signal.SIGKILL)
        wait_for(lambda: not runs(helper), "the end of what A had started")
        assert "restarted: A" in book.text("%sfm restart A")


def test_an_engine_that_will_not_stop_is_started_again() -> None:
    stubborn = "%%sfm 1\nprint('in')\nimport time\nwhile True:\n    try:\n        time.sleep(60)\n"
    stubborn += "    except KeyboardInterrupt:\n        pass"
    with notebook("%sfm start 2") as book:
        message = book.send(stubborn)
        book.wait(message, lambda cell: "in" in cell.text)
        book.interrupt()
        assert "1 is still running! `%sfm restart 1` ends it" in book.wait(message).error
        assert "no engine is called 5. Known: 0, 1" in book.run("%sfm restart 5").text
        book.run("%sfm restart 1").ok()
        assert "1 2 1" in book.text("%%sfm 1\nprint(rank, size, sfm.name)")
        book.run("%sfm restart").ok()
        assert book.run("%%sfm\nprint('new', 'message' in globals())").text.count("new False") == 2


def test_a_second_notebook_and_a_restarted_one_connect() -> None:
    with notebook("%sfm start A B") as first, notebook() as second:
        first.run("%%sfm --noblock --out held\nrecv(free=1)").ok()  # a busy engine cannot answer
        assert "this notebook is 'home2'" in second.text("%sfm connect")
        second.run("send(dest='A', free=1); send(dest='B', free=1)").ok()
        second.run("%%sfm A\nsend(dest='home', to=1); send(dest='home2', to=2)").ok()
        first.run("recv(to=1)").ok()
        second.run("recv(to=2)").ok()
        second.restart(now=True)
        assert "this notebook is 'home2'" in second.text("%sfm connect")
        assert "in the notebook that started" in second.run("%sfm restart A").text
        assert "it runs until its owner" in second.text("%sfm stop")
        assert "alive" in first.text("%%sfm\nprint('alive')")
        assert "no cluster is called other. Choose one:" in second.run("%sfm connect other").text
        second.run("%sfm connect").ok()
        first.run("%sfm stop").ok()
        wait_for(
            lambda: "WorldGone" in second.run("%%sfm\n1").error, "the other notebook learns it"
        )
        second.run("%sfm stop").ok()
        assert "No cluster is running" in second.run("%sfm connect").text


def test_stop_takes_the_names_away_and_start_works_again() -> None:
    with notebook("%sfm start 1", "%sfm stop") as book:
        assert "NameError" in book.run("send").error
        assert "no engines: `%sfm start 4`" in book.run("%%sfm\n1").text
        assert "no engines" in book.run("%sfm status").text
        assert "%sfm stop takes no arguments" in book.run("%sfm stop A").text
        assert "nothing to stop" in book.text("%sfm stop")
        assert not descendants(book.pid)
        assert "0, 1" in book.text("%sfm start 2")
        # a notebook that loses its controller is told, and can start afresh
        controller = [
            process for process in descendants(book.pid) if "controller" in str(process.cmdline())
        ]
        controller[0].kill()
        wait_for(lambda: "controller has ended" in book.run("%%sfm\n1").error, "it is noticed")
        book.run("%sfm start 1").ok()
        assert "ran" in book.text("%%sfm\nprint('ran')")


def test_engines_share_nothing_that_the_fork_copied() -> None:
    draw = "import random, uuid, numpy; print('drew', random.random(), uuid.uuid4().hex)\n"
    with notebook("%sfm start 2") as book:
        text = book.text(f"%%sfm\n{draw}print('drew', numpy.random.rand())")
        words = [word for line in text.splitlines() if "drew" in line for word in line.split()[-2:]]
        drawn = [word for word in words if word != "drew" and "stdout" not in word]
        assert len(drawn) == len(set(drawn)) == 6, text


def test_engines_take_one_core_each_unless_the_user_says_otherwise() -> None:
    show = "%%sfm\nimport os; print('threads', os.environ.get('OPENBLAS_NUM_THREADS'))"
    with notebook("%sfm start 1") as book:
        assert "threads 1" in book.text(show)
        book.run("%sfm stop").ok()
        book.run("import os; os.environ['OMP_NUM_THREADS'] = '3'\n%sfm start 1").ok()
        assert "threads None" in book.text(show)


def test_an_engine_that_cannot_join_is_an_error_with_its_reason() -> None:
    broken = """
from sfm_kernel.jupyter.cluster import Engines
import os
start = Engines._launch
def start_broken(self, ranks):
    os.environ["SFM_TRANSPORT"] = "pigeon"
    launcher = start(self, ranks)
    del os.environ["SFM_TRANSPORT"]
    return launcher
Engines._launch = start_broken
"""
    with notebook(broken) as book:
        cell = book.run("%sfm start 2")
        assert "engine 0 has not joined the world" in cell.error
        assert "SFM_TRANSPORT='pigeon'" in cell.error
        wait_for(lambda: not descendants(book.pid), "nothing keeps running")
        book.run("Engines._launch = start\n%sfm start 1").ok()


def test_engines_of_another_launcher_that_other_machines_can_reach() -> None:
    with launched(2, "other", controller_ip="0.0.0.0") as cluster:
        with open(cluster.controller.connection_files["engine"]) as file:
            assert json.load(file)["sfm_directory"].startswith("tcp://")
        with notebook("%sfm connect other") as book:
            assert "0 2 0" in book.text("%%sfm 0\nprint(rank, size, sfm.name)")
            message = book.send("%%sfm --no-detect\nprint('in')\nrecv(src=1 - rank)")
            book.wait(message, lambda cell: cell.text.count("in") >= 2)
            wait_until_blocked(2)
            book.interrupt()
            waited = r"0 was in recv\(src=1\) in cell \d+, line 3\. 1 was in recv\(src=0\) in cell"
            assert re.search(waited, book.wait(message).error)
