"""python -m sfm_kernel.mpi: all ranks end when one ends, for any reason, and leave nothing."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.mpi.launching import RANK, launched, lines, lives, mpi_worlds, run
from tests.waiting import wait_until

STAY = "import signal; print('in', flush=True)\nwhile True: signal.pause()\n"
MPI = "from mpi4py import MPI; comm = MPI.COMM_WORLD; rank = comm.rank\n"
IN_A_BARRIER = """print('in', flush=True)
while rank == 2: signal.pause()
comm.Barrier()
"""


@pytest.mark.parametrize(
    ("fails", "status", "says"),
    [
        ("1 / 0", 1, "ZeroDivisionError: division by zero\nsfm: rank 1 raised this; the other"),
        ("raise SystemExit(7)", 7, "sfm: rank 1 ended with exit status 7; the other"),
        ("raise SystemExit('why')", 1, "why\nsfm: rank 1 ended with exit status 1; the other"),
        ("os._exit(5)", 5, "sfm: rank 1 ended with exit status 5; the other"),
        ("os.kill(os.getpid(), 9)", 137, "sfm: rank 1 was killed by SIGKILL; the other"),
        ("raise KeyboardInterrupt", 130, "sfm: rank 1 was interrupted in <string>, line 2, in <m"),
    ],
)
def test_a_rank_that_fails_ends_the_others(fails: str, status: int, says: str) -> None:
    done = run("-n", "3", "-c", f"{RANK}if rank == 1: {fails}\n{STAY}")
    assert done.returncode == status
    assert says in done.stderr
    assert done.stderr.count("sfm:") == 1
    assert done.stderr.count("Traceback") == ("1 / 0" in fails)


def test_a_traceback_has_the_programs_frames_only(tmp_path: Path) -> None:
    script = tmp_path / "prog.py"
    script.write_text("def f():\n    1 / 0\nf()\n")
    done = run("-n", "1", str(script))
    shown = done.stderr.splitlines()
    assert shown[0] == "Traceback (most recent call last):"
    assert shown[1] == f'  File "{script}", line 3, in <module>'
    assert sum("File" in line for line in shown) == 2


def test_a_syntax_error_is_shown_once(tmp_path: Path) -> None:
    script = tmp_path / "prog.py"
    script.write_text("x = = 1\n")
    done = run("-n", "2", str(script))
    assert done.stderr.count("SyntaxError") == 1 and "program.py" not in done.stderr


def test_an_error_that_all_ranks_raise_is_shown_once() -> None:
    done = run("-n", "3", "-c", "none")
    assert done.stderr.count("NameError") == 1 and done.returncode == 1


def test_a_hook_of_the_program_shows_its_errors() -> None:
    text = "import sys\nsys.excepthook = lambda *error: print('hook', file=sys.stderr)\n1 / 0"
    done = run("-n", "1", "-c", text)
    assert done.stderr == "hook\n"


HOOKS = {
    "sys.__excepthook__(*error); MPI.COMM_WORLD.Abort(5)": ("called Abort(5)", 5),
    "traceback.print_exception(*error); MPI.COMM_WORLD.Abort(5)": ("called Abort(5)", 5),
    "sys.__excepthook__(*error); os._exit(6)": ("ended with exit status 6", 6),
    "sys.__excepthook__(*error); sys.exit(7)": ("ended with exit status 7", 7),
    "sys.__excepthook__(*error); none": ("raised this", 1),
}


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_that_ends_the_program_has_shown_the_traceback(hook: str) -> None:
    """A common idiom: a rank that fails shows why, and aborts all."""
    text = f"""
import os, sys, traceback
from mpi4py import MPI
def hook(*error):
    {hook}
sys.excepthook = hook
if MPI.COMM_WORLD.rank == 1:
    raise ValueError("seen")
MPI.COMM_WORLD.Barrier()
"""
    done = run("-n", "2", "-c", text)
    deed, status = HOOKS[hook]
    assert done.stderr.count("ValueError: seen\n") == (2 if "none" in hook else 1)
    assert done.stderr.endswith(f"sfm: rank 1 {deed}; the other ranks were ended\n")
    assert done.returncode == status


def test_what_was_written_before_an_abort_is_shown() -> None:
    """Also if another thread calls it, and if nobody can write to a stream any more."""
    text = "import sys; sys.stdout.write('last words'); sys.stderr = None; comm.Abort(3)"
    assert run("-n", "1", "-c", f"{MPI}{text}").stdout == "last words"
    text = "import sys, threading; sys.stdout.write('last words');"
    text += "threading.Thread(target=comm.Abort, args=(3,)).start(); comm.recv()"
    done = run("-n", "1", "-c", f"{MPI}{text}")
    assert (done.stdout, done.returncode) == ("last words", 3)


def test_the_output_of_a_failed_rank_comes_before_its_traceback() -> None:
    done = run("-n", "1", "-c", "import sys; sys.stderr.write('last words'); 1 / 0")
    assert done.stderr.startswith("last words\nTraceback")


def test_the_end_of_a_program_that_exits_well() -> None:
    text = f"{RANK}import atexit, sys; atexit.register(print, 'bye', rank); sys.exit(rank and None)"
    done = run("-n", "2", "-c", text)
    assert sorted(done.stdout.splitlines()) == ["bye 0", "bye 1"]
    assert (done.returncode, done.stderr) == (0, "")


# ---- with MPI


def test_hello_world() -> None:
    text = MPI + "print(f'hello from {rank} of {comm.size}: {comm.allreduce(rank)}')"
    done = run("-n", "3", "-c", text)
    assert sorted(done.stdout.splitlines()) == [f"hello from {rank} of 3: 3" for rank in range(3)]
    assert (done.returncode, done.stderr, mpi_worlds()) == (0, "", [])


def test_other_ranks_can_still_send_to_a_rank_that_is_done(tmp_path: Path) -> None:
    text = f"""{MPI}
import atexit, os, sys, time
if rank == 0:
    atexit.register(print, "done")
    sys.exit()
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
comm.send(b"x" * 10_000, dest=0)
print("sent")
"""
    flag = tmp_path / "flag"
    with launched("-n", "3", "-c", text, str(flag)) as process:
        assert lines(process, 1) == ["done\n"]
        flag.touch()
        assert lines(process, 2) == ["sent\n"] * 2
        assert process.wait() == 0


def test_messages_arrive_after_their_sender_is_done() -> None:
    text = f"{MPI}if rank: print(len(comm.recv(source=0)))\nelse: comm.send(b'x' * 10**6, dest=1)"
    done = run("-n", "2", "-c", text)
    assert (done.stdout, done.returncode) == ("1000000\n", 0)


def test_an_error_says_that_a_sender_has_freed_its_message() -> None:
    """mpi4py's request holds the bytes of an object, which are freed with it."""
    text = """
if rank == 0:
    comm.isend(b"x" * 10**6, dest=1)
    comm.send("it is gone", dest=1, tag=1)
else:
    comm.recv(source=0, tag=1)
    comm.recv(source=0)
"""
    done = run("-n", "2", "-c", MPI + text)
    assert "the sender has freed the message's memory before it was received" in done.stderr
    assert done.returncode == 1


def test_ranks_that_wait_for_a_killed_rank_say_nothing() -> None:
    text = f"{MPI}comm.Barrier()\nif rank == 1: import os; os.kill(os.getpid(), 9)\n"
    done = run("-n", "3", "-c", text + "comm.recv(source=1)")
    assert done.stderr == "sfm: rank 1 was killed by SIGKILL; the other ranks were ended\n"
    assert done.returncode == 137


def test_the_launcher_names_a_rank_that_left_without_mpi_finalize() -> None:
    text = f"{MPI}comm.Barrier()\nif rank == 1: import os; os._exit(0)\ncomm.recv(source=1)"
    done = run("-n", "2", "-c", text)
    assert done.returncode == 1
    assert "sfm: rank 1 ended without MPI_Finalize" in done.stderr


def test_abort_gives_the_exit_status() -> None:
    text = f"{MPI}comm.Barrier()\nprint('in')\nif rank == 1: comm.Abort(9)\ncomm.recv(source=1)"
    done = run("-n", "3", "-c", text)
    assert done.returncode == 9
    assert done.stderr == "sfm: rank 1 called Abort(9); the other ranks were ended\n"
    assert done.stdout.count("in") >= 1


def test_an_interrupt_in_recv_says_where_each_rank_was() -> None:
    text = f"{MPI}print('in', flush=True)\ncomm.recv(source=1 - rank)"
    with launched("-n", "2", "-c", text) as process:
        assert lines(process, 2) == ["in\n"] * 2
        process.send_signal(signal.SIGINT)
        _, shown = process.communicate()
    assert shown.startswith("sfm: rank ")
    for rank, line in enumerate(sorted(shown.splitlines())):
        assert re.fullmatch(rf"sfm: rank {rank} was in <string>, line [23], in <module>: .+", line)
    assert process.returncode == 130


def test_an_interrupt_of_one_rank_is_the_failure_that_is_shown() -> None:
    """The others' call then fails as well, which is a consequence and remains unsaid."""
    text = "import signal\nsignal.signal(signal.SIGALRM, signal.default_int_handler)\n"
    stop = "if rank == 1: signal.alarm(1)\n"
    done = run("-n", "3", "-c", MPI + text + stop + IN_A_BARRIER)
    assert done.stderr.startswith("sfm: rank 1 was interrupted in "), done.stderr
    assert done.stderr.count("\n") == 1


def test_an_interrupt_after_a_failed_call_says_the_programs_line() -> None:
    """Cython's frames of that call are in the traceback, too."""
    late = (
        "try: comm.send(1, dest=7)\n"
        "except MPI.Exception as error: raise KeyboardInterrupt().with_traceback("
        "error.__traceback__)"
    )
    done = run("-n", "1", "-c", MPI + late)
    assert "interrupted in <string>, line 2, in <module>: try: comm.send(" in done.stderr


def test_of_two_signals_at_once_the_first_interrupts_the_call() -> None:
    """The handler of the second raised in what makes the first one's exception that of the call."""
    text = """
import signal, threading, os
both = {signal.SIGINT, signal.SIGALRM}
signal.signal(signal.SIGALRM, signal.default_int_handler)
def interrupt():
    for number in both:
        os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, both)
if rank == 1:
    signal.pthread_sigmask(signal.SIG_BLOCK, both)
    threading.Timer(0.3, interrupt).start()
    comm.Barrier()
while True: signal.pause()
"""
    done = run("-n", "2", "-c", MPI + text)
    assert re.search(
        r"^sfm: rank 1 was interrupted in <string>, .*: comm.Barrier\(\);", done.stderr
    )
    assert done.stderr.count("\n") == 1


# ---- ended from outside


def test_a_rank_that_others_leave_at_an_interrupt_says_nothing() -> None:
    """Its call fails when they leave the barrier, before its own interrupt or without one."""
    text = "import signal\nif rank == 0: signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    with launched("-n", "3", "-c", MPI + text + IN_A_BARRIER) as process:
        assert lines(process, 3) == ["in\n"] * 3
        process.send_signal(signal.SIGINT)
        _, shown = process.communicate()
    assert process.returncode == 130 and "Traceback" not in shown
    assert sorted(re.findall(r"^sfm: rank (\d) was in", shown, re.M)) == ["1", "2"], shown


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_all(number: signal.Signals) -> None:
    with launched("-n", "2", "-c", STAY) as process:
        assert lines(process, 2) == ["in\n"] * 2
        process.send_signal(number)
        assert process.wait() == 128 + number


def test_a_second_interrupt_kills() -> None:
    text = "import signal; signal.signal(signal.SIGINT, lambda *_: print('no', flush=True))\n"
    with launched("-n", "2", "-c", text + STAY) as process:
        assert lines(process, 2) == ["in\n"] * 2
        process.send_signal(signal.SIGINT)
        lines(process, 2)  # "no", or nothing from a rank that was too slow and is killed anyway
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130


def test_one_interrupt_ends_even_a_rank_that_ignores_it() -> None:
    text = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    with launched("-n", "1", "-c", text + STAY) as process:
        lines(process, 1)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130


@pytest.mark.parametrize(
    "text",
    [
        "import signal\ntry:\n  print('in', flush=True)\n  signal.pause()\nfinally: print('tidy')",
        "import asyncio\nasync def for_ever():\n  print('in', flush=True)\n"
        "  try: await asyncio.sleep(60)\n  except asyncio.CancelledError: pass\n"
        "asyncio.run(for_ever())\nprint('tidy')",
    ],
    ids=["a function", "a coroutine"],
)
def test_an_interrupt_lets_a_program_tidy_up(text: str) -> None:
    with launched("-n", "2", "-c", text) as process:
        assert lines(process, 2) == ["in\n"] * 2
        process.send_signal(signal.SIGINT)
        assert process.communicate()[0] == "tidy\n" * 2


def test_a_time_limit() -> None:
    done = run("-n", "2", "--timeout", "2", "-c", MPI + "comm.recv(source=0)")
    assert done.returncode == 124
    assert "sfm: the ranks are ended after 2 s\nsfm: Deadlock: 0 waits for itself." in done.stderr
    assert "MPI_Init" not in done.stderr


def test_the_end_of_its_reader_ends_the_program() -> None:
    with launched("-n", "2", "-c", "while True: print('y')") as process:
        assert lines(process, 2) == ["y\n"] * 2
        assert process.stdout
        process.stdout.close()
        assert process.wait() == 128 + signal.SIGPIPE


def test_the_end_of_the_lifeline_ends_the_program() -> None:
    read, write = os.pipe()
    with launched("-n", "2", "--lifeline", str(read), "-c", STAY, pass_fds=(read,)) as process:
        os.close(read)
        assert lines(process, 2) == ["in\n"] * 2
        os.close(write)
        assert process.wait() == 128 + signal.SIGTERM


def test_processes_that_the_ranks_leave_running_are_ended() -> None:
    text = "import subprocess; print(subprocess.Popen(['sleep', '1000']).pid)"
    done = run("-n", "2", "-c", text)
    pids = [int(line) for line in done.stdout.splitlines()]
    assert len(pids) == 2 and not any(map(lives, pids))


HOLDS = "import ctypes, os, subprocess\n"
HOLDS += "print(subprocess.Popen(['sleep', '1000']).pid, os.getpid(), flush=True)\n"


@pytest.mark.fault
@pytest.mark.parametrize(
    "holds", ["ctypes.CDLL(None).sleep(1000)", "ctypes.PyDLL(None).sleep(1000)"]
)
def test_a_killed_launcher_takes_everything_with_it(holds: str) -> None:
    """Even ranks that hold the GIL (PyDLL), and processes that they have started."""
    with launched("-n", "2", "-c", f"{MPI}comm.Barrier()\n{HOLDS}{holds}") as process:
        pids = [int(pid) for line in lines(process, 2) for pid in line.split()]
        assert len(mpi_worlds()) == 1
        process.kill()
    wait_until(lambda: not any(map(lives, pids)))
    wait_until(lambda: not mpi_worlds())


@pytest.mark.fault
def test_a_rank_that_holds_the_gil_is_killed() -> None:
    text = "import ctypes; print('in', flush=True); ctypes.PyDLL(None).pause()"
    with launched("-n", "1", "-c", f"while True:\n  {text}") as process:
        lines(process, 1)
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 128 + signal.SIGTERM


RING = "comm.ssend(rank, dest=1 - rank)"


def test_ranks_that_wait_for_each_other_are_explained_once() -> None:
    """The ranks go on waiting."""
    with launched("-n", "2", "-c", MPI + RING) as launcher:
        assert launcher.stderr is not None
        said = [launcher.stderr.readline() for _ in range(5)]
        launcher.send_signal(signal.SIGINT)
        rest = launcher.stderr.read()
    assert said[0] == "sfm: Deadlock: 0 → 1 → 0.\n"
    ssend = "comm.ssend(dest=1, tag=0)"
    assert said[1] == f"sfm: 0 is in {ssend} and waits for 1 in <string>, line 2.\n"
    assert "Deadlock" not in rest and "--detect" in rest
    assert "sfm: rank 0 was in <string>, line 2" in rest
    assert launcher.returncode == 128 + signal.SIGINT


def test_detect_ends_a_deadlock() -> None:
    done = run("-n", "2", "--detect", "-c", MPI + RING)
    assert done.returncode == 1
    assert "mpi4py.MPI.Exception: Deadlock: 0 → 1 → 0.\n" in done.stderr
    assert ".pyx" not in done.stderr and ".pxi" not in done.stderr
    assert "sfm: Deadlock" not in done.stderr


def test_collective_calls_that_do_not_fit_are_told_though_nobody_has_waited() -> None:
    done = run("-n", "3", "-c", f"{MPI}comm.bcast(1) if rank < 2 else comm.reduce(1)")
    assert done.returncode == 1 and done.stderr.count("sfm:") == 1
    assert "process 0 of MPI_COMM_WORLD calls bcast(root=0)" in done.stderr
    assert "where this one calls comm.reduce" in done.stderr
