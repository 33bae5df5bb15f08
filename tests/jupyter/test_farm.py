"""A farm in a notebook: its engines serve between cells."""

from __future__ import annotations

import time

import pytest

from tests.jupyter.notebook import Notebook, processes, wait_for

pytestmark = pytest.mark.keeps("one notebook with three engines for the whole module")

OPEN = """
import os, time
from sfm_kernel import farm
workers = farm.connect()
def nap(seconds):
    time.sleep(seconds)
    return seconds
"""
CELLS = ["%sfm start 3", OPEN]


def runs(kind: str = "engine") -> int:
    """The number of engines that run something."""
    return sum(process["kind"] == kind and process["state"] == "running" for process in processes())


def test_engines_serve_without_a_word(book: Notebook) -> None:
    assert "[0, 1, 4, 9]" in book.text("list(workers.map(lambda x: x * x, range(4)))")
    wait_for(lambda: book.text("%sfm status").count("serves farm of home") == 3, "all are idle")
    assert "All are idle" in book.text("%sfm why")


def test_a_cell_runs_between_tasks(book: Notebook) -> None:
    book.run("many = workers.map(nap, [0.05] * 60, schedule='static')").ok()
    text = book.text("%%sfm\nprint('a cell on', rank)")
    assert all(f"a cell on {rank}" in text for rank in range(3))
    assert "60" in book.text("len(many.finish())")


def test_a_serving_engine_can_run_a_cell_that_waits(book: Notebook) -> None:
    """A serving engine is an idle engine, for explanations, too."""
    book.run("%%sfm --noblock 0\nrecv(src=1, tag='go')").ok()
    wait_for(lambda: "1 is idle and sends nothing" in book.text("%sfm why"), "it waits")
    book.run("%%sfm 1\nsend(dest=0, tag='go')").ok()


def test_stop_ends_the_tasks_and_the_engines_serve_on(book: Notebook) -> None:
    cell = book.send("list(workers.map(nap, [1000] * 5))")
    wait_for(lambda: runs() == 3, "all work")
    assert runs("notebook") == 0, "it is seen to wait for the workers"
    book.interrupt()
    assert "KeyboardInterrupt" in book.wait(cell).error
    wait_for(lambda: runs() == 0, "the tasks have ended")
    assert "[0.1, 0.1]" in book.text("list(workers.map(nap, [0.1] * 2))")


def test_stop_of_one_task_is_its_failure(book: Notebook) -> None:
    book.run("forked = workers.fork(1, nap, 1000)").ok()
    wait_for(lambda: runs() == 1, "it sleeps")
    book.run("workers.link.interrupt([1])").ok()
    cell = book.run("workers.join(forked)")
    assert cell.error.startswith("TaskFailed: nap(1000) failed on worker 1: KeyboardInterrupt")
    assert "time.sleep(seconds)" in cell.shown, "the line of a cell, which the engine does not have"
    assert "[1, 1, 1]" in book.text("workers.everywhere(lambda: 1)")


def test_a_task_that_waits_for_ever_is_explained(book: Notebook) -> None:
    cell = book.send("list(workers.map(lambda _: sfm.recv(tag='never'), range(3)))")
    found = book.wait(cell, lambda seen: "%sfm detect on" in seen.text).text
    assert "0, 1 and 2 wait for recv(tag='never') in cell" in found
    assert "home is in farm and waits for 0, 1 and 2" in found
    book.interrupt()
    assert "KeyboardInterrupt" in book.wait(cell).error
    wait_for(lambda: runs() == 0, "the tasks have ended")


def test_an_engine_is_killed(book: Notebook) -> None:
    pids = "pids = workers.everywhere(os.getpid)\n"
    kill = "import threading\nthreading.Timer(0.3, os.kill, (pids[2], 9)).start()\n"
    book.run(f"{pids}{kill}found = list(workers.map(nap, [0.02] * 100))").ok()
    assert "100 [0, 1]" in book.text("print(len(found), workers.workers)")
    book.run("%sfm restart 2").ok()
    assert "[0, 1, 2]" in book.text("workers.close(); workers = farm.connect(); workers.workers")
    assert "[2, 2, 2]" in book.text("workers.everywhere(lambda: 2)")


def test_a_released_engine_serves_no_more(book: Notebook) -> None:
    book.run("workers.close()").ok()
    wait_for(lambda: "serves" not in book.text("%sfm status"), "they know it")
    book.run("workers = farm.connect()").ok()
    assert "[3, 3, 3]" in book.text("workers.everywhere(lambda: 3)")


def test_an_engine_that_is_busy_gets_its_share_when_it_is_free(book: Notebook) -> None:
    book.run("workers.close()\n%sfm restart 0").ok()
    book.run("%%sfm --noblock 0\nimport time; time.sleep(1)").ok()
    book.run("workers = farm.connect()").ok()
    assert "30" in book.text("len(list(workers.map(nap, [0.001] * 30)))")
    began = time.monotonic()
    assert "[5, 5, 5]" in book.text("workers.everywhere(lambda: 5)"), began


def test_the_executor(book: Notebook) -> None:
    book.run("pool = farm.Executor(); futures = [pool.submit(nap, 0.01) for _ in range(30)]").ok()
    assert "0.3" in book.text("print(round(sum(one.result() for one in futures), 3))")
    code = (
        "import asyncio\nawait asyncio.gather(*map(asyncio.wrap_future, futures))\npool.shutdown()"
    )
    book.run(code).ok()


def test_a_bar_shows_how_far_it_is(book: Notebook) -> None:
    text = book.text("sum(workers.map(nap, [0.01] * 9, progress=True))")
    assert "nap" in text and "9/9" in text
    assert "9/9" not in book.text("sum(workers.map(nap, [0.01] * 9))"), "only what lasts has one"
