"""A C program that crashes: the launcher says which line, and ends the others at once."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from sfm_kernel.observe.crashes import crash_text
from tests.c.building import PROGRAMS, needs_cc, variant
from tests.conftest import crossed
from tests.mpi.launching import run

SOURCE = PROGRAMS.parent / "lines" / "crash.c"
FULL = "the stack is full: an endless recursion, or an array too large for it"
ANY = ""
"""Any line: where a function makes room for its variables the compiler decides."""

CASES = {
    "null": ("SIGSEGV (address 0x0: a null pointer)", "store", "at[i] = 7;"),
    "zero": ("SIGFPE (a division by zero)", "main", "sum = numbers[0] / zero;"),
    "assert": ("SIGABRT", "main", "assert(zero == 1);"),
    "abort": ("SIGABRT", "main", "abort();"),
    "library": ("SIGSEGV (address 0x0: a null pointer)", "main", "strlen((char *)nowhere)"),
    "callback": ("SIGFPE (a division by zero)", "less", "return *(const int *)one / zero;"),
    "function": ("SIGSEGV (address 0x0: a null pointer)", "main", "((void (*)(void))nowhere)();"),
    "recursion": (f"SIGSEGV ({FULL})", "deep", ANY),
    "array": (f"SIGSEGV ({FULL})", "large", ANY),
    "trap": ("a check has failed", "main", "__builtin_trap();"),
    "killed": ("SIGSEGV in", "main", "kill(getpid(), SIGSEGV);"),
    "environment": ("SIGSEGV (address 0x0: a null pointer)", "store", "at[i] = 7;"),
}
FLAGS = [("-g", "-O0"), ("-g", "-O2"), ("-g", "-O2", "-no-pie")]
if os.uname().machine != "x86_64":  # elsewhere the processor divides by zero
    CASES = {case: said for case, said in CASES.items() if "SIGFPE" not in said[0]}

pytestmark = needs_cc


def line_of(text: str) -> str:
    """The numbers of the lines in which one of these texts stands, as an expression."""
    texts, lines = text.split("|"), SOURCE.read_text().splitlines()
    found = [nth for nth, line in enumerate(lines, 1) if any(part in line for part in texts)]
    return f"({'|'.join(map(str, found))})"


@pytest.mark.parametrize(("case", "flags"), crossed(CASES, FLAGS))
def test_the_launcher_says_what_has_crashed_and_where(case: str, flags: tuple[str, ...]) -> None:
    what, function, text = CASES[case]
    done = run("-n", "2", str(variant(SOURCE, *flags)), case)
    assert done.returncode > 128 and done.stdout == "before\n"
    end = re.escape("; the other ranks were ended\n")
    pattern = f"sfm: rank 0 was killed by .*crash.c, line {line_of(text)} \\({function}\\).*{end}"
    assert re.search(pattern, done.stderr), done.stderr
    assert what in done.stderr and done.stderr.count("was killed by") == 1


def test_without_debug_information_it_says_the_function() -> None:
    done = run("-n", "1", str(variant(SOURCE, "-O0")), "null")
    assert done.returncode == 128 + signal.SIGSEGV
    assert "sfm: the program was killed by SIGSEGV (address 0x0: a null pointer) in" in done.stderr
    assert done.stderr.endswith(" (store)\n")


def test_a_program_that_handles_its_signals_itself_goes_on_doing_so() -> None:
    done = run("-n", "1", str(variant(SOURCE, "-g")), "own")
    assert done.returncode == signal.SIGSEGV
    assert done.stderr == f"sfm: the program ended with exit status {int(signal.SIGSEGV)}\n"


def test_a_program_that_is_no_rank_dies_as_without_us() -> None:
    for case, number in (("null", signal.SIGSEGV), ("abort", signal.SIGABRT)):
        done = subprocess.run(
            [variant(SOURCE, "-g"), case], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (-number, "", "")


def test_a_process_that_a_rank_starts_reports_nothing() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        environment = os.environ | {"SFM_MPI_REPORTS": str(theirs.fileno()), "SFM_MPI_PID": "1"}
        done = subprocess.run(
            [variant(SOURCE, "-g"), "null"],
            env=environment,
            pass_fds=[theirs.fileno()],
            capture_output=True,
            check=False,
        )
        ours.setblocking(False)
        assert done.returncode == -signal.SIGSEGV
        with pytest.raises(BlockingIOError):
            ours.recv(1)


def test_a_cell_is_named_by_its_number(tmp_path: Path) -> None:
    source = tmp_path / "cell.c"
    source.write_text(f'#line 1 "cell"\n{SOURCE.read_text()}')
    program = variant(source, "-g", "-O0")
    done = run("-n", "1", str(program), "null", env=os.environ | {"SFM_CELL": "4\tabc"})
    assert f" in cell 4, line {line_of('at[i] = 7;')[1:-1]} (store)\n" in done.stderr


def test_a_report_of_a_check_says_which() -> None:
    """Numbers of checks are clang's."""
    assert crash_text("4 2 0 0 18\n\n") == "SIGILL (a check has failed: an index out of bounds)"
    assert crash_text("4 2 0 0 -1\n\n") == "SIGILL (a check has failed)"
    assert crash_text("7 2 4096 0 -1\n\n") == "SIGBUS (address 0x1000)"
