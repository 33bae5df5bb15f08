"""Deadlocks in a notebook: the errors of the cells that they end, and `%sfm why`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sfm_kernel.jupyter import cell as cells
from sfm_kernel.jupyter import interrupted
from sfm_kernel.jupyter.observed import _lost
from sfm_kernel.jupyter.tables import queue_table
from sfm_kernel.jupyter.tracebacks import in_short
from tests.jupyter.notebook import Notebook, processes, wait_for, wait_until_blocked
from tests.observe.pictures import message, process

pytestmark = pytest.mark.keeps("one notebook with three engines for the whole module")

CELLS = ["%sfm start A B C"]

RING = "recv(src='ABC'[rank - 1], tag='total')"
TITLE = "Deadlock: A → C → B → A"


def test_a_deadlock_is_told_once_and_shown_in_short(book: Notebook) -> None:
    cell = book.run(f"%%sfm\n{RING}")
    assert cell.error == f"CellFailed: on A, B, C: DeadlockDetected: {TITLE}."
    assert cell.text.count("No message is on its way.") == 1
    assert cell.text.count(f"----> 2 {RING}") == 1
    assert "sfm_kernel" not in cell.text


def test_in_mpi_it_is_shown_as_short_and_is_an_error_of_mpi(book: Notebook) -> None:
    begin = "from mpi4py import MPI\ncomm = MPI.COMM_WORLD\n"
    call = "comm.ssend(1, dest=(rank + 1) % 3)"
    cell = book.run(f"%%sfm\n{begin}def exchange():\n    {call}\nexchange()")
    assert cell.error == "CellFailed: on A, B, C: DeadlockDetected: Deadlock: A → B → C → A."
    assert "A is in comm.ssend(dest=1, tag=0) and waits for B in cell" in cell.text
    assert cell.text.count(f"----> 5     {call}") == 1
    assert cell.text.count("(Raised as MPI.Exception, with the code MPI_ERR_OTHER.)") == 1
    assert "sfm_kernel" not in cell.text and "direct cause" not in cell.text
    catch = "except MPI.Exception as error:\n    "
    catch += "print(error == MPI.ERR_OTHER, 'Deadlock: ' in str(error))"
    text = book.text(f"%%sfm\ntry:\n    comm.recv(source=rank)\n{catch}")
    assert text.count("True True") == 3
    # The messages sent before are still there.
    book.run("%%sfm\ncomm.recv(source=(rank - 1) % 3)").ok()


def test_in_a_group_it_is_shown_as_short(book: Notebook) -> None:
    code = "from sfm_kernel import Group\ngroup = Group(sfm)\nif rank != 1: group.barrier()"
    cell = book.run(f"%%sfm\n{code}")
    assert "on A, C: DeadlockDetected: Deadlock: A and C wait for a collective" in cell.error
    assert "B is idle and does not make that call." in cell.text
    assert "sfm_kernel/" not in cell.text


def test_the_failure_comes_first_and_who_waited_for_it_below(book: Notebook) -> None:
    code = "if rank == 0:\n    total = 0\n    none\nelse:\n    recv(src='A')"
    cell = book.run(f"%%sfm\n{code}")
    number = int(book.text("print(len(In) - 1)")) - 1
    assert (
        cell.error == "CellFailed: on A: NameError: name 'none' is not defined; B, C waited for it"
    )
    failure, told = cell.text.index("----> 4     none"), cell.text.index("Deadlock:")
    assert failure < told and f"cell {number}, line 4" in cell.text
    assert cell.text[told:].splitlines() == [
        f"Deadlock: A ended cell {number} with NameError in line 4; B and C wait for it.",
        f"B and C wait for recv(src='A') in cell {number}, line 6.",
    ]
    assert cell.text.count("Traceback") == 1
    assert "A ended" not in book.run("%%sfm\npass").ok().text + book.text("%sfm why")


def test_a_line_has_one_name_whatever_is_wrong_with_it(book: Notebook) -> None:
    cell = book.run("%%sfm\n\ndef f(:\n    pass")
    number = int(book.text("print(len(In) - 1)")) - 1
    assert cell.text.count(f"cell {number}, line 3") == 1 and "on A, B, C:\n" in cell.text
    assert f"(cell {number}, line 3)" in cell.error and ".py" not in cell.error
    cell = book.run("%%sfm\ndef f(n):\n    return 1 / n\nf(0)")
    for line in (3, 4):
        assert f"cell {number + 2}, line {line}" in cell.text
    assert cell.text.count("ZeroDivisionError: division by zero") == 1
    text = book.text("%%sfm A\nimport inspect\nprint(inspect.currentframe().f_lineno)")
    assert "[stdout:A] 3" in text


def test_stop_says_the_same_call_once(book: Notebook) -> None:
    cell = book.send("%%sfm --no-detect\nrecv(tag='never')")
    wait_until_blocked(3)
    book.interrupt()
    error = book.wait(cell).error
    number = int(book.text("print(len(In) - 1)")) - 1
    call = f"recv(tag='never') in cell {number}, line 2"
    assert error == f"CellInterrupted: the cell was interrupted. A, B and C were in {call}"


def test_other_errors_are_shown_with_the_user_s_lines(book: Notebook) -> None:
    cell = book.run("%%sfm A\nfrom mpi4py import MPI\nMPI.COMM_WORLD.send(1, dest=7)")
    assert cell.error.startswith("CellFailed: on A: Exception: MPI_ERR_RANK")
    assert "----> 3 MPI.COMM_WORLD.send(1, dest=7)" in cell.text and "Comm.pyx" not in cell.text
    cell = book.run("%%sfm A\nrecv(0, tag=1)")
    assert cell.error.startswith("CellFailed: on A: RecvTimeout: ")
    assert "----> 2 recv(0, tag=1)" in cell.text


def test_why_awaits_that_a_cell_has_begun(book: Notebook) -> None:
    book.run(f"%%sfm --noblock\n{RING}").ok()
    assert book.text("%sfm why").startswith(TITLE + "\n")
    book.run("%%sfm\npass")  # is done when the deadlock was ended


def now_of(kind: str) -> list[tuple[str, int]]:
    """The current activity of main threads, and its line of a cell."""
    found = [
        process["now"] for process in processes() if process["kind"] == kind and process["now"]
    ]
    return [(now["does"], now["where"]["line"]) for now in found if now["where"]]


def test_the_line_now_of_a_cell_that_is_in_no_call(book: Notebook) -> None:
    cell = book.send("%%sfm A\nimport time\n\ntime.sleep(1000)")
    wait_for(lambda: now_of("engine") == [("sleep", 4)], "A sleeps")
    book.interrupt()
    assert book.wait(cell).error.startswith("CellInterrupted")


def test_a_notebook_that_waits_for_what_somebody_types(book: Notebook) -> None:
    asking = book.client.execute("name = None\nname = input()", allow_stdin=True)
    wait_for(lambda: now_of("notebook") == [("input", 2)], "it asks")
    book.client.input("somebody")
    book.wait(asking)
    assert "somebody" in book.text("print(name)")


def test_the_asking_notebook_is_not_computing(book: Notebook) -> None:
    book.run("%%sfm --noblock A\nrecv(src='B', tag='go')").ok()
    text = book.text("%sfm why")
    assert text.startswith("No deadlock yet: you could still give B a cell\n")
    assert "B is idle and sends nothing." in text and "home" not in text
    book.run("%%sfm B\nsend(dest='A', tag='go')").ok()
    book.run("%%sfm A\npass").ok()
    assert "All are idle" in book.text("%sfm why")


def test_nobody_waits_in_vain_for_an_engine_that_has_callbacks_or_threads(book: Notebook) -> None:
    """Threads may still send, long after their cell has ended."""
    answer = "lambda m: (sleep(3.5), send(dest=m.src, tag='answer'))"
    begin = "from threading import Timer\nfrom time import sleep\n"
    book.run(f"%%sfm B\n{begin}callback = regcb({answer}, tag='question')").ok()
    ask = "send(dest='B', tag='question')\nprint(recv(src='B', tag='answer').src)"
    assert "[stdout:A] B" in book.text(f"%%sfm A\n{ask}")
    later = "callback.unregister()\nTimer(3.5, send, (), dict(dest='A', tag='later')).start()"
    book.run(f"%%sfm B\n{later}").ok()
    assert "[stdout:A] B" in book.text("%%sfm A\nprint(recv(tag='later').src)")
    begin = "import asyncio\nasync def after():\n    await asyncio.sleep(3)\n"
    task = "    send(dest='A', tag='task')\ntask = asyncio.ensure_future(after())"
    book.run(f"%%sfm B\n{begin}{task}").ok()
    assert "[stdout:A] B" in book.text("%%sfm A\nprint(recv(tag='task').src)")
    wait_for(lambda: "All are idle" in book.run("%sfm why").text, "nothing is left of it")
    assert "DeadlockDetected" in book.run("%%sfm A\nrecv(src='B')").error


def test_threads_of_an_earlier_cell_are_named(book: Notebook) -> None:
    """Threads of the front end, and idle pools, are not named."""
    code = """%%sfm A
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from time import sleep
pool = ThreadPoolExecutor(1)
pool.submit(print).result()
def heartbeat():
    while not peek(tag='over'): sleep(0.1)
thread = Thread(target=heartbeat, name="heart", daemon=True)
thread.start()"""
    book.run(code).ok()
    number = int(book.text("print(len(In) - 1)")) - 1
    place = f"(in cell {number}, line 8 (heartbeat), started in cell {number})"
    sentence = f"A's cell has ended, but thread 'heart' {place} could go on."
    assert sentence in book.text("%sfm why")
    cell = book.send(f"%%sfm\n{RING}")
    text = book.wait(cell, lambda seen: "can never go on" in seen.text).text
    assert f"It would be a deadlock but for A's thread 'heart': {TITLE[10:]}.\n" in text
    assert f"That may end: thread 'heart' {place} could go on." in text
    assert "If A's thread 'heart' does nothing, A, B and C can never go on." in text
    book.interrupt()
    assert "interrupted" in book.wait(cell).error, "nothing was ended"
    book.run("send(dest='A', tag='over')")
    # The message is for the thread, too, which looks for it now and then.
    book.run("%%sfm A\nwhile thread.is_alive(): sleep(0.05)\nrecv(tag='over')").ok()


def test_the_notebooks_own_calls_are_watched_too(book: Notebook) -> None:
    title = "Deadlock: home waits for a message that nobody will send."
    cell = book.send("recv(src='A', tag='never')")
    seen = book.wait(cell, lambda found: "%sfm detect on" in found.text)
    assert title in seen.text and "A is idle and sends nothing." in seen.text
    book.interrupt()
    ended = book.wait(cell)
    assert "KeyboardInterrupt" in ended.error and title not in ended.text, "it is told once"
    assert "are ended" in book.text("%sfm detect on")
    assert book.run("recv(src='A', tag='never')").error.startswith(f"DeadlockDetected: {title}")
    assert "but not ended" in book.text("%sfm detect off")


WAITS = """from sfm_kernel import farm
from sfm_kernel.serving import only_endpoint
from threading import Event
def wait():
    over = Event()
    with only_endpoint().regcb(lambda _: over.set(), tag='over'): over.wait()
farm.Executor(sfm).submit(wait).result()"""
MEET = """from sfm_kernel import farm
from sfm_kernel.serving import only_endpoint
pool = farm.Executor(sfm)
def meet(rank): return only_endpoint().recv(src='ABC'[rank - 1], tag='meet')
[future.result() for future in [pool.submit(meet, rank) for rank in range(3)]]"""
RESULT = """run = get_ipython().run_cell_magic
run('sfm', '--noblock A', "recv(src='B', tag='never')").get()"""
CALLBACK = """from threading import Event
over = Event()
with regcb(lambda _: over.set(), tag='over'): over.wait()"""
QUEUE = """from queue import Queue
Queue().get()"""
POLLS = """from contextlib import suppress
from sfm_kernel import WouldBlock
while True:
    with suppress(WouldBlock): recv_nb(src='A', tag='never')"""


@pytest.mark.parametrize(
    ("code", "title"),
    [
        (POLLS, "It would be a deadlock but for home's calls of recv_nb(src='A', tag='never'): "),
        # The last one: an engine never ends the call.
        (WAITS, " waits for and the lock that home waits for: "),
        (CALLBACK, " but for the lock that home waits for: home cannot go on."),
        (QUEUE, " but for the lock that home waits for: home cannot go on."),
        (RESULT, "Deadlock: A waits for a message that nobody will send."),
        (MEET, "Deadlock: "),
    ],
    ids=["polls", "future", "callback", "queue", "result", "futures"],
)
def test_a_notebook_that_waits_in_a_farm_or_polls_is_doubted(
    book: Notebook, code: str, title: str
) -> None:
    cell = book.send(code)
    assert title in book.wait(cell, lambda found: "The cell goes on." in found.text).text
    book.interrupt()
    assert "KeyboardInterrupt" in book.wait(cell).error
    book.run("for name in 'ABC': send(dest=name, tag='over')").ok()
    book.run("%%sfm\nwhile peek(tag='over'): recv(tag='over')")  # it ends deadlocks of engines


def test_a_notebook_that_waits_for_others_work_is_not_doubted(book: Notebook) -> None:
    """The observer cannot see the processes of an executor's own, nor what a thread will do."""
    for pool in ("farm.Executor(sfm)", "farm.Executor(1)", "ThreadPoolExecutor()"):
        begin = "from concurrent.futures import ThreadPoolExecutor\nfrom time import sleep\n"
        begin += "from sfm_kernel import farm\n"
        cell = book.run(f"{begin}with {pool} as pool: pool.submit(sleep, 3).result()")
        assert (pool, cell.error, cell.text) == (pool, "", "")


AFTER_YOU = """%%sfm A,B
send(dest='BA'[rank], say='after you')
while recv(src='BA'[rank]).say != 'thanks': send(dest='BA'[rank], say='after you')"""


def test_a_livelock_of_engines_is_doubted(book: Notebook) -> None:
    """Their namespaces have the objects of a kernel, which change by themselves."""
    cell = book.send(AFTER_YOU)
    title = "Perhaps a livelock: A and B repeat the same for ever."
    assert title in book.wait(cell, lambda found: "for ever" in found.text).text
    book.interrupt()
    book.wait(cell)
    book.run("%%sfm A,B\nwhile peek(src='BA'[rank]): recv()").ok()


def test_an_engine_that_waits_for_the_notebook_is_told_that_it_waits(book: Notebook) -> None:
    code = "%%sfm A\nsend(dest='home', tag='question')\nrecv(src='home', tag='answer')"
    text = book.run(code).text
    assert "home waits until the cell has ended, and sends nothing." in text
    assert "Its message (tag='question') lies in home's inbox, unreceived." in text
    book.run("recv(src='A', tag='question')").ok()


def test_a_thread_that_takes_the_message_of_the_main_thread_leaves_it_seen(book: Notebook) -> None:
    """When the call of a thread that began later ends, the main thread's is seen again."""
    steal = "threading.Timer(0.5, recv, (), dict(tag='y')).start()"
    code = f"if rank: sleep(1); send(dest='A', tag='y')\nelse: {steal}; recv(src='B', n=2)"
    cell = book.run(f"%%sfm A,B\nimport threading\nfrom time import sleep\n{code}")
    assert "A waits for recv(src='B', n=2) in cell" in cell.text and "Deadlock" in cell.error


def test_an_unknown_name_is_mentioned(book: Notebook) -> None:
    text = book.run("%%sfm A\nrecv(src=-1)").text
    assert "Nobody is named -1; the ranks are 0 to 2." in text


def test_messages_of_libraries_are_counted_apart(book: Notebook) -> None:
    """Messages of an ended barrier do not concern users."""
    book.run("%%sfm\nfrom sfm_kernel import Group\ngroup = Group(sfm)\nif rank: group.barrier()")
    text = book.text("%sfm queues")
    assert "failed=" not in text and "of a library" in text


def test_the_table_of_queues() -> None:
    def listed(*messages: Any, depth: int) -> list[object]:
        engine = process("A", messages=list(messages), depth=depth)
        return [row[-1] for row in queue_table([engine]).rows]

    message_of_b, library = message("B", tag=2), message("B", "1f", failed="'barrier'")
    others = "of a library (MPI, a group, …)"
    assert listed(depth=0) == [None]
    assert listed(message_of_b, message_of_b, depth=2) == ["src='B', tag=2"] * 2
    assert listed(message_of_b, library, depth=2) == ["src='B', tag=2", f"and 1 {others}"]
    assert listed(library, library, depth=2) == [f"2 {others}"]
    assert listed(message_of_b, library, depth=9)[1:] == [f"and 1 {others}", "and 7 more"]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("DeadlockDetected", "Deadlock: A\nA waits", ("DeadlockDetected", "Deadlock: A")),
        ("Exception", "Deadlock: A\nA", ("DeadlockDetected", "Deadlock: A")),
        ("Exception", "MPI_ERR_OTHER: what\nelse", ("Exception", "MPI_ERR_OTHER: what\nelse")),
        ("ValueError", "Deadlock: A\nB", ("ValueError", "Deadlock: A\nB")),
    ],
)
def test_the_summary_of_an_error(name: str, value: str, said: tuple[str, str]) -> None:
    assert in_short(name, value) == said


def test_messages_of_a_library_are_not_lost_with_a_killed_engine() -> None:
    """A's MPI has sent one of the two that B had not received."""

    class Sent:
        def of(self, _: str) -> tuple[list[Any], dict[int, str]]:
            contexts = enumerate((0, 0, 31))
            return [(n, 0.0, "sent", "b" * 16, *[0] * 5, mark) for n, mark in contexts], {}

    def peer(uid: str, **counts: int) -> list[dict[str, Any]]:
        return [{"uid": uid * 16, **counts}]

    dead = {"uid": "b" * 32, "name": "B", "peers": peer("a", received=1)}
    living = {"uid": "a" * 32, "name": "A", "peers": peer("b", sent=3)}
    traces: Any = Sent()
    said = _lost(dead, [dead | {"peers": []}, living], traces)
    assert said == "1 message was lost with B, which had not received them"


def test_after_stop_only_the_engines_that_run_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """B ends its cell late, and C's answer is on the way."""

    class Result:
        seconds = 0.0

        def wait(self, seconds: float) -> bool:
            self.seconds += seconds
            return False

        def unfinished(self) -> list[Any]:
            left = "ABC" if self.seconds < 2 else "AC"
            return [SimpleNamespace(name=name) for name in left]

    monkeypatch.setattr(interrupted, "idle", lambda _: {"C"})
    runner: Any = SimpleNamespace(last_result=Result(), view=SimpleNamespace(waited={}), _home=None)
    with pytest.raises(cells.CellInterrupted) as stopped:
        cells.CellRunner._after_interrupt(runner)
    ends = "A is still running! `%sfm restart A` ends it"
    assert str(stopped.value) == f"the cell was interrupted. {ends}"
