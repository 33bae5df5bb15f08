"""``sfm_kernel.run``: processes without Jupyter."""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel import Endpoint, watching
from sfm_kernel.endpoint.seen import Account, disagreement
from sfm_kernel.spawn.job import Job
from sfm_kernel.spawn.report import GO, Result
from tests.observe.harness import running
from tests.waiting import wait_until


def test_results_by_rank() -> None:
    assert sfm_kernel.run(lambda sfm, k, add=0: sfm.rank * k + add, 3, 10, add=1) == [1, 11, 21]


def test_everybody_is_there_and_has_a_name() -> None:
    def ring(sfm: Endpoint) -> tuple[object, int, float]:
        names = "ABC"
        sfm.send(dest=names[(sfm.rank + 1) % 3], x=np.full(10, sfm.rank))
        return sfm.name, sfm.size, float(sfm.recv(20).x.sum())

    expected = [("A", 3, 20.0), ("B", 3, 0.0), ("C", 3, 10.0)]
    assert sfm_kernel.run(ring, 3, names=["A", "B", "C"]) == expected


def test_one_that_returns_early_can_still_be_sent_to() -> None:
    def late(sfm: Endpoint) -> None:
        if sfm.rank == 1:
            time.sleep(0.3)
            sfm.send(dest=0, n=1)

    sfm_kernel.run(late, 2)


def test_a_file_of_the_folder_is_no_module_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pickle.py").write_text("raise SystemExit('an impostor')")
    monkeypatch.chdir(tmp_path)
    assert sfm_kernel.run(lambda sfm: os.getcwd(), 1) == [str(tmp_path)]


def test_a_large_result() -> None:
    (result,) = sfm_kernel.run(lambda sfm: np.arange(1_000_000), 1)
    assert result.sum() == 499_999_500_000


def test_one_that_raises_stops_the_others() -> None:
    def fails(sfm: Endpoint) -> None:
        if sfm.rank == 2:
            raise KeyError("my own mistake")
        sfm.recv()

    with pytest.raises(sfm_kernel.ProcessFailed, match="my own mistake") as caught:
        sfm_kernel.run(fails, 3)
    assert caught.value.rank == 2
    assert "in fails" in caught.value.traceback
    files = re.findall('File "(.*?)"', caught.value.traceback)
    assert files == [__file__], "that of the program, and none of the package"


def test_the_one_that_raised_is_named_not_those_that_miss_it() -> None:
    class SlowToExplainError(Exception):
        def __str__(self) -> str:
            time.sleep(2)  # others notice within a second that one has left
            return "the cause"

    def fails(sfm: Endpoint) -> None:
        if sfm.rank == 1:
            raise SlowToExplainError
        sfm.recv(src=1)

    with pytest.raises(sfm_kernel.ProcessFailed, match="the cause"):
        sfm_kernel.run(fails, 2)


@pytest.mark.parametrize("dies", [False, pytest.param(True, marks=pytest.mark.fault)])
def test_the_first_failure_is_named_if_all_have_been_reported(dies: bool) -> None:
    def fails(sfm: Endpoint) -> None:
        if sfm.rank == 1:
            sfm.recv(src=0)
            if dies:
                os.kill(os.getpid(), signal.SIGKILL)
            raise ValueError
        sfm.wait_for(1)
        sfm.send(dest=1)
        while any(member.rank == 1 and sfm.alive(member) for member in sfm.members()):
            time.sleep(0.01)
        raise KeyError

    with Job("test", 2, fails) as job:
        job.order(GO)
        wait_until(lambda: all(process.poll() is not None for process in job._processes))
        with pytest.raises(sfm_kernel.ProcessFailed) as caught:
            job.results(None)
    assert caught.value.rank == 1


@pytest.mark.fault
def test_one_that_is_killed_stops_the_others() -> None:
    def dies(sfm: Endpoint) -> None:
        if sfm.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        sfm.recv()

    with pytest.raises(sfm_kernel.ProcessFailed, match="rank 1 was killed by SIGKILL"):
        sfm_kernel.run(dies, 2)


def test_a_call_at_the_end_of_a_with_is_in_its_line() -> None:
    def waits(sfm: Endpoint) -> None:
        with contextlib.ExitStack() as calls:
            calls.callback(sfm.recv, tag="never")

    with running(waits, 1) as run:
        wait_until(lambda: run.process(0)["state"] == "blocked in recv")
        where = run.process(0)["where"]
    assert (Path(where["file"]).name, where["function"]) == ("test_run.py", "waits")
    assert where["line"] == waits.__code__.co_firstlineno + 1


@pytest.mark.fault
def test_one_that_crashes_says_its_line() -> None:
    def crashes(sfm: Endpoint) -> None:
        if sfm.rank == 1:
            os.kill(os.getpid(), signal.SIGSEGV)  # the line
        sfm.recv()

    line = inspect.getsource(crashes).partition("# the line")[0].count("\n")
    line += crashes.__code__.co_firstlineno
    with pytest.raises(sfm_kernel.ProcessFailed) as caught:
        sfm_kernel.run(crashes, 2)
    assert f"was killed by SIGSEGV in test_run.py, line {line};" in str(caught.value)


@pytest.mark.fault
def test_one_that_is_killed_while_it_reports() -> None:
    def dies(sfm: Endpoint) -> None:
        def send(self: Result, fd: int) -> None:
            os.write(fd, b'{"good": true, "value": 5}\n1234')
            os.kill(os.getpid(), signal.SIGKILL)

        Result.send = send  # type: ignore[method-assign]

    with pytest.raises(sfm_kernel.ProcessFailed, match="rank 0 was killed by SIGKILL"):
        sfm_kernel.run(dies, 1)


@pytest.mark.usefixtures("forked")
def test_timeout() -> None:
    said = r"(?s)ranks \[0, 1\] had not returned within 2 s\.\nDeadlock: .*0 and 1 wait for recv"
    with pytest.raises(sfm_kernel.RecvTimeout, match=said):
        sfm_kernel.run(lambda sfm: sfm.recv(), 2, timeout=2)
    said = r"had not returned within 1e-09 s, and ranks \[0, 1\] had not joined yet$"
    with pytest.raises(sfm_kernel.RecvTimeout, match=said):
        sfm_kernel.run(lambda sfm: sfm.recv(), 2, timeout=1e-9)


def ring(sfm: Endpoint) -> None:
    sfm.recv(src=(sfm.rank + 1) % sfm.size, tag="never")


def beside_a_thread(sfm: Endpoint) -> None:
    threading.Thread(target=time.sleep, args=(40,), name="sleeper", daemon=True).start()
    ring(sfm)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proofs take less time."""
    monkeypatch.setattr(watching, "PROOF", 0.4)
    monkeypatch.setattr(watching, "CHECK_EVERY", 0.1)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    ("program", "title"),
    [
        (ring, "Deadlock: 0 → 1 → 0."),
        (beside_a_thread, "It would be a deadlock but for 0's thread 'sleeper'"),
    ],
)
def test_a_deadlock_is_explained_once(
    program: Callable[[Endpoint], None], title: str, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = ""

    def shown() -> str:
        nonlocal printed
        printed += capsys.readouterr().err
        return printed

    with running(program, 2) as run:
        wait_until(lambda: "The processes still run. Stop ends them" in shown())
        time.sleep(1.0)  # ten checks
        assert shown().count(title) == 1 and run.running
        assert "0 waits for recv(src=1, tag='never') in test_run.py, line" in shown()


@pytest.mark.usefixtures("soon")
def test_a_deadlock_is_ended_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(sfm_kernel.ProcessFailed, match="DeadlockDetected: Deadlock: 0 → 1 → 0"):
        sfm_kernel.run(ring, 2, timeout=40.0, detect=True)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("n", [0, -1, 1.5, "2"])
def test_n_is_a_number_of_processes(n: object) -> None:
    with pytest.raises(ValueError, match="number of processes"):
        sfm_kernel.run(print, n)  # type: ignore[arg-type]


def test_names_fit() -> None:
    with pytest.raises(ValueError, match="2 processes need 2 names"):
        sfm_kernel.run(print, 2, names=["A"])


WAIT = """
import sfm_kernel, os
def wait(sfm):
    os.write(1, b'%d\\n' % os.getpid())
    sfm.recv()
"""


@contextlib.contextmanager
def launched(code: str) -> Iterator[tuple[subprocess.Popen[str], Iterator[str]]]:
    """A Python that runs ``code``, and the lines that it prints."""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as launcher:
        assert launcher.stdout is not None
        try:
            yield launcher, iter(launcher.stdout.readline, "")
        finally:
            launcher.kill()


@pytest.mark.fault
def test_no_process_survives_its_launcher() -> None:
    with launched(WAIT + "sfm_kernel.run(wait, 2)") as (launcher, lines):
        pids = [int(next(lines)) for _ in range(2)]
        launcher.kill()
    wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))


def test_stop_ends_all() -> None:
    code = (
        f"{WAIT}try:\n    sfm_kernel.run(wait, 2)\nexcept KeyboardInterrupt:\n"
        "    print('stopped', flush=True)"
    )
    with launched(code) as (launcher, lines):
        pids = [int(next(lines)) for _ in range(2)]
        launcher.send_signal(signal.SIGINT)
        assert next(lines) == "stopped\n"
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


# ---- calls that were made together ----


def test_calls_that_do_not_fit_are_reported_though_nobody_has_waited() -> None:
    def program(sfm: Endpoint) -> None:
        group = sfm_kernel.Group(sfm, name="rows")
        group.barrier()
        if sfm.rank < 2:
            group.bcast("x", root=0)
        else:
            group.reduce(1, root=0)
        del group

    with pytest.raises(sfm_kernel.CollectiveMismatch) as failure:
        sfm_kernel.run(program, 3, names=["A", "B", "C"])
    first = program.__code__.co_firstlineno
    bcast = f"bcast(root=0, by binomial) in test_run.py, line {first + 4} (program)"
    reduction = f"reduce(op=add, root=0, by binomial) in test_run.py, line {first + 6} (program)"
    assert failure.value.calls == {"A": bcast, "B": bcast, "C": reduction}
    assert "the members of 'rows' have to make the same calls" in str(failure.value)


def member(name: str, *calls: str, **changes: Any) -> Account:
    """The account of one member of a group of two."""
    latest = [(number, call, " in a line") for number, call in enumerate(calls, 1)]
    about = {"title": "'rows'", "name": name, "size": 2, "open": False, "count": len(calls)}
    return {"key": {**about, "chain": hash(calls), "latest": latest, **changes}}


def test_members_with_different_calls_disagree() -> None:
    def calls(*accounts: Account) -> dict[object, str] | None:
        found = disagreement(accounts)
        return found and found.calls

    assert calls(member("A", "f()", "g()"), member("B", "f()", "g()")) is None
    assert calls(member("A", "f()", "g()"), member("B", "f()", "h()")) == {
        "A": "g() in a line",
        "B": "h() in a line",
    }
    assert calls(member("A", "f()", "g()"), member("B", "f()")) == {
        "A": "g() in a line",
        "B": "no more call",
    }
    # Earlier than is remembered.
    assert calls(member("A", "f()", count=90, chain=1), member("B", "f()", count=90, chain=2)) == {
        "A": "90 calls",
        "B": "90 calls",
    }
    # One has not reported; a failure has made all count anew, or a call is not over.
    assert calls(member("A", "f()")) is None
    assert calls(member("A", "f()", open=True), member("B")) is None
