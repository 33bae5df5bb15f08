"""python -m sfm_kernel.mpi: ranks that are late, and a launcher that is."""

from __future__ import annotations

import re
import signal
import sysconfig
from pathlib import Path

import pytest

from sfm_kernel.mpi.launch import program, rank
from tests.mpi.launching import RANK, launched, lines, lives, run
from tests.waiting import wait_until

MPI = "from mpi4py import MPI; comm = MPI.COMM_WORLD; rank = comm.rank\n"


@pytest.mark.parametrize(
    "end", ["sys.excepthook = lambda *error: os._exit(6)", "comm.Set_errhandler(MPI.ERRORS_RETURN)"]
)
def test_a_launcher_that_comes_late_blames_the_first(tmp_path: Path, end: str) -> None:
    """It sees both ranks' ends at once, and rank 0 has ended because rank 1 had."""
    text = f"""{MPI}
import os, sys, time
{end}
print(os.getpid(), flush=True)
while rank == 1:
    if os.path.exists({str(tmp_path / "go")!r}):
        os._exit(5)
    time.sleep(0.01)
try:
    comm.Barrier()
except MPI.Exception:
    if "Set" in {end!r}:
        os._exit(6)
    raise
"""
    with launched("-n", "2", "-c", text) as launcher:
        first, second = map(int, lines(launcher, 2))
        launcher.send_signal(signal.SIGSTOP)
        (tmp_path / "go").touch()
        wait_until(lambda: not lives(first) and not lives(second))
        launcher.send_signal(signal.SIGCONT)
        said = launcher.communicate()[1]
    assert said == "sfm: rank 1 ended with exit status 5; the other ranks were ended\n"
    assert launcher.returncode == 5


@pytest.mark.parametrize(("absent", "said"), [("12", "1 and 2 have"), ("2", "2 has")])
def test_ranks_that_are_starting_are_named(absent: str, said: str) -> None:
    text = f"{RANK}import time\nif str(rank) in {absent!r}: time.sleep(600)\n{MPI}comm.recv()"
    done = run("-n", "3", "--timeout", "1", "-c", text)
    assert f"sfm: {said} not called MPI_Init yet.\n" in done.stderr
    assert "Nobody" not in done.stderr and "the other ranks were ended" not in done.stderr


def test_an_interrupt_after_the_last_line_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python calls the handler when it is about to be replaced: the program has ended by then."""

    def arrives(_number: int, handler: object, pending: list[bool] = [True]) -> None:  # noqa: B006
        if handler is signal.SIG_IGN and pending:
            pending.clear()
            raise KeyboardInterrupt

    monkeypatch.setattr(rank.signal, "signal", arrives)
    monkeypatch.setattr(rank, "_send", lambda _report: None)
    monkeypatch.setattr(rank.program, "run", lambda _words: None)
    assert rank._ended_by(["prog.py"]) is None


def test_an_interrupt_in_a_program_that_is_part_of_a_library_says_its_line() -> None:
    """As of ``-m mpi4py.bench``."""
    code = compile("\n\nraise KeyboardInterrupt", f"{sysconfig.get_path('purelib')}/a.py", "exec")
    with pytest.raises(KeyboardInterrupt) as raised:
        exec(code)
    first = raised.value.__traceback__
    assert first is not None
    error = KeyboardInterrupt().with_traceback(first.tb_next)
    assert re.fullmatch(r".*/a\.py, line 3, in <module>", program.location(error))
    assert program.location(KeyboardInterrupt()) == "before its first line"
