"""Remote objects and MapReduce in a notebook: its engines serve between cells."""

from __future__ import annotations

import os
import signal

import pytest

from tests.jupyter.notebook import Notebook, processes, wait_for

pytestmark = pytest.mark.keeps("one notebook with two engines for the whole module")

OPEN = """
from sfm_kernel import mapreduce, remote
a, b = remote.connect(sfm, 'A'), remote.connect(sfm, 'B')
"""

ACCOUNT = """%%sfm
import time
class Account:
    def __init__(self, balance):
        self.balance = balance
    def deposit(self, amount):
        "Put money in; the new balance."
        if amount < 0:
            raise ValueError(f'an amount is positive, not {amount}')
        self.balance += amount
        return self.balance
    def pay(self, other, amount):
        self.balance -= amount
        return other.deposit(amount)
    def nap(self, seconds):
        time.sleep(seconds)
account = Account(10 * (rank + 1))
"""

CELLS = ["%sfm start A B", ACCOUNT, OPEN]


def test_objects_that_cells_have_defined(book: Notebook) -> None:
    assert "['Account', 'account', 'time']" in book.text("dir(a)")
    assert "(15, 20)" in book.text("a.account.deposit(5), b.account.balance")
    assert "[stdout:A] 15" in book.text("%%sfm A\nprint(account.balance)")
    assert "23 12" in book.text("print(a.account.pay(b.account, 3), a.account.balance)")


def test_tab_and_question_mark(book: Notebook) -> None:
    def completions(code: str) -> list[str]:
        reply = book.client.complete(code, reply=True, timeout=100)
        return list(reply["content"]["matches"])

    assert completions("a.acc") == ["account"]
    assert completions("b.account.") == ["balance", "deposit", "nap", "pay"]
    reply = book.client.inspect("a.account.deposit", reply=True, timeout=100)["content"]
    shown = reply["data"]["text/plain"]
    assert "(amount)" in shown and "Put money in; the new balance." in shown


def test_an_error_shows_the_line_of_the_engines_cell(book: Notebook) -> None:
    failed = book.run("a.account.deposit(-5)")
    assert failed.error == "ValueError: an amount is positive, not -5"
    assert "account.deposit(-5) raised on 'A'" in failed.traceback
    assert "raise ValueError(f'an amount" in failed.traceback
    missing = book.run("a.acount")
    assert "Do you mean 'account'?" in missing.error


def test_stop_ends_a_call_and_what_the_engine_does(book: Notebook) -> None:
    cell = book.send("a.account.nap(1000)")
    called = "home is in account.nap(1000) on A and waits for A"

    def seen() -> bool:
        (home,) = [process for process in processes() if process["name"] == "home"]
        return bool(home["wait"]) and "account.nap(1000) on A" in str(home["wait"])

    wait_for(seen, called)
    book.interrupt()
    assert "KeyboardInterrupt" in book.wait(cell).error
    assert "12" in book.text("a.account.balance")


def test_words(book: Notebook) -> None:
    book.run("""
from pathlib import Path
import os
files = sorted(Path(os.__file__).parent.glob('a*.py'))
def words(line):
    return ((word, 1) for word in line.split())
def count(word, ones):
    return sum(ones)
ours = mapreduce.run(sfm, files, words, count, memory=50_000)
from collections import Counter
""").ok()
    words = "sorted(Counter(word for one in files for word in one.read_text().split()).items())"
    assert "True" in book.text(f"ours == {words} and ours.counts['spilled'] > 0")
    failed = book.run("mapreduce.run(sfm, files, lambda line: [(1 / len(line), 1)], count)")
    assert failed.error.startswith("JobFailed: map, ") and ".py, line" in failed.error


def test_stop_ends_a_job(book: Notebook) -> None:
    code = "mapreduce.run(sfm, [1, 2], lambda one: (__import__('time').sleep(1000), []), count)"
    cell = book.send(code)
    wait_for(lambda: sum(process["state"] == "running" for process in processes()) >= 2, "both map")
    book.interrupt()
    assert "KeyboardInterrupt" in book.wait(cell).error
    assert "[('a', 1)]" in book.text("mapreduce.run(sfm, ['a'], words, count)")
    assert "False" in book.text("sfm.context('answers').peek()")


def test_the_same_job_on_dask(book: Notebook) -> None:
    book.run("from sfm_kernel.jupyter import client\ndask = client().become_dask()").ok()
    try:
        assert "True" in book.text(
            "mapreduce.run(dask, files, words, count, combine=count) == ours"
        )
        failed = book.run("mapreduce.run(dask, files, lambda line: [(1 / len(line), 1)], count)")
        assert failed.error.startswith("JobFailed: map, ") and ".py, line" in failed.error
    finally:
        book.run("dask.close(); client().stop_dask()").ok()
    assert "True" in book.text("mapreduce.run(sfm, files, words, count) == ours")


def test_an_engine_dies(book: Notebook) -> None:
    cell = book.send("b.account.nap(1000)")
    wait_for(
        lambda: any("nap(1000)" in str(process["wait"]) for process in processes()), "home waits"
    )
    (pid,) = [process["pid"] for process in processes() if process["name"] == "B"]
    os.kill(pid, signal.SIGKILL)
    assert "PeerLost: process 'B' has ended" in book.wait(cell).error
    book.run("%sfm restart B").ok()
    assert "PeerLost" in book.run("b.account").error  # the remote object is gone
    book.run("%%sfm B\nx = 7").ok()
    assert "7" in book.text("remote.connect(sfm, 'B').x")
