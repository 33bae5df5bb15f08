"""The real mpi4py on this package's library: the effects that its calls have in Python."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from sfm_kernel.mpi import library
from tests.c.building import needs_cc
from tests.mpi.launching import LAUNCHER, PATIENCE

BEGINNING = "from mpi4py import MPI\ncomm, rank = MPI.COMM_WORLD, MPI.COMM_WORLD.rank\n"


def run(tmp_path: Path, ranks: int, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "prog.py").write_text(BEGINNING + text)
    command = [*LAUNCHER, "-n", str(ranks), *options, str(tmp_path / "prog.py")]
    return subprocess.run(command, text=True, capture_output=True, timeout=PATIENCE)


def test_a_program_gets_the_real_one_on_our_library(tmp_path: Path) -> None:
    text = """
import mpi4py
total = comm.allreduce(rank)
if rank == 0:
    print("sfm_kernel" in mpi4py.__file__, MPI.Get_library_version().split()[0], total)
"""
    done = run(tmp_path, 3, text)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "False sfm-kernel, 3\n"


def test_extensions_find_the_same_library_among_the_mapped_files(tmp_path: Path) -> None:
    """As numba-mpi does: any file called libmpi, whose functions are called through ctypes."""
    text = """
import ctypes, os
files = {line.split()[-1] for line in open("/proc/self/maps") if "/libmpi" in line}
found = [ctypes.CDLL(file) for file in files] + [ctypes.CDLL("libmpi.so.12")]
mine = [ctypes.c_int() for _ in found]
for library, number in zip(found, mine):
    library.MPI_Comm_rank(0x44000000, ctypes.byref(number))
print(rank, len(files), *(number.value for number in mine))
"""
    done = run(tmp_path, 2, text)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == ["0 1 0 0", "1 1 1 1"]


@needs_cc
def test_build_tools_find_this_library(tmp_path: Path) -> None:
    """mpicc, pkg-config, mpi4py's configuration, and Python's search for libraries."""
    (tmp_path / "version.c").write_text(
        "#include <mpi.h>\n#include <stdio.h>\nint main(void) {\n"
        "    char text[MPI_MAX_LIBRARY_VERSION_STRING]; int length;\n"
        "    MPI_Get_library_version(text, &length);\n    puts(text);\n    return 0;\n}\n"
    )
    text = """
import ctypes.util, os, subprocess, mpi4py
from pathlib import Path
os.chdir(Path(__file__).parent)
print({ctypes.util.find_library(name) for name in ("mpi", "mpich")}, ctypes.util.find_library("m"))
described = Path(os.environ["PKG_CONFIG_PATH"].split(":")[0], "mpich.pc").read_text()
print(described.count("libmpi.so.12"))
for build in (mpi4py.get_config()["mpicc"], "mpicc"):
    subprocess.run(f"{build} version.c -o version && ./version", shell=True, check=True)
"""
    done = run(tmp_path, 1, text)
    ours = "sfm-kernel, a part of MPI 4.1 in MPICH's ABI\n"
    assert (done.stdout, done.stderr) == ("{'libmpi.so.12'} libm.so.6\n1\n" + 2 * ours, "")


def test_an_mpi4py_for_another_mpi_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py" / "__init__.py").touch()
    (tmp_path / "mpi4py" / "MPI.openmpi.cpython.so").write_bytes(b"\x7fELF, but damaged")
    command = [*LAUNCHER, "-n", "2", "-c", "print('in')"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, text=True, capture_output=True, env=environment)
    assert (done.returncode, done.stdout) == (1, "")
    assert "was built for another MPI" in done.stderr and "pip install" in done.stderr


BLOCKED = {
    "recv": "comm.recv(source=0, tag=7)",
    "Recv": "comm.Recv(bytearray(8), source=0, tag=7)",
    "probe": "comm.probe(source=0, tag=7)",
    "ssend": "comm.ssend('x', dest=0, tag=8)",
    "wait": "request.wait()",
    "waitall": "MPI.Request.waitall([request])",
    "no call of MPI": "time.sleep(60)",
}


@pytest.mark.parametrize("call", BLOCKED.values(), ids=BLOCKED)
def test_stop_ends_a_blocked_call_in_its_line(tmp_path: Path, call: str) -> None:
    """It does so a second time, in a function, and no message that is sent afterwards is lost."""
    text = f"""
import signal, sys, threading, time, os, traceback
request = comm.irecv(source=0, tag=9)
def stop():
    os.kill(os.getpid(), signal.SIGINT)
def blocked():
    threading.Timer(0.3, stop).start()
    {call}
for _ in range(2):
    try:
        try:
            blocked()
        except MPI.Exception as error:
            print("wrong", error)
    except KeyboardInterrupt as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        print(last.name, last.line, sys.gettrace())
comm.send("still", dest=0, tag=9)
print(request.wait())
comm.send(5, dest=0, tag=7)
print(comm.recv(source=0, tag=7))
if {call!r}.startswith("comm.ssend"):
    print([comm.recv(source=0, tag=8) for _ in range(2)])
"""
    done = run(tmp_path, 1, text)
    assert done.stdout.splitlines()[:4] == [f"blocked {call} None"] * 2 + ["still", "5"], done
    assert done.returncode == 0
    if "ssend" in call:  # the interrupted send still goes on
        assert done.stdout.splitlines()[4:] == ["['x', 'x']"]


def test_stop_ends_a_call_while_python_is_asked_for_its_name(tmp_path: Path) -> None:
    """An error that a handler raises in our own code is not lost, nor is the call's name."""
    text = """
import os, signal, traceback
from sfm_kernel.mpi import library
called, asked = library.called, []
def disturbed(frame):
    asked.append(called(frame))
    if len(asked) == 1:
        os.kill(os.getpid(), signal.SIGINT)
    return called(frame)
library.called = disturbed
try:
    comm.recv(source=0, tag=7)
except KeyboardInterrupt as error:
    trace = traceback.extract_tb(error.__traceback__)
    print([frame.lineno for frame in trace], {*asked}, len(asked) > 1)
"""
    done = run(tmp_path, 1, text)
    line = 3 + text.splitlines().index("    comm.recv(source=0, tag=7)")
    assert (done.stdout, done.returncode) == (f"[{line}] {{'comm.recv'}} True\n", 0), done


def test_a_handler_may_raise_what_it_likes_or_nothing(tmp_path: Path) -> None:
    text = """
import signal, threading, os, traceback
class Mine(Exception): pass
numbers = []
def handler(number, frame):
    numbers.append(number)
    if len(numbers) > 1:
        raise Mine("from the handler")
signal.signal(signal.SIGUSR1, handler)
for after in (0.2, 0.4):
    threading.Timer(after, os.kill, (os.getpid(), signal.SIGUSR1)).start()
try:
    comm.recv(source=0, tag=7)
except Mine as error:
    print(error, len(numbers), [frame.line for frame in traceback.extract_tb(error.__traceback__)])
"""
    done = run(tmp_path, 1, text)
    lines = ["comm.recv(source=0, tag=7)", 'raise Mine("from the handler")']
    assert (done.stdout, done.returncode) == (f"from the handler 2 {lines}\n", 0), done.stderr


def test_a_large_message_that_was_interrupted_arrives_as_it_was(tmp_path: Path) -> None:
    """The sender has its memory again, and changes it, before the receiver looks."""
    text = """
import numpy, os, signal, threading, time
n = 4_000_000
if rank == 0:
    array = numpy.arange(n, dtype="u4")
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        comm.Send(array, dest=1, tag=1)
    except KeyboardInterrupt:
        array[:] = 0
    comm.send("next", dest=1, tag=2)
else:
    while not comm.iprobe(source=0, tag=2):
        time.sleep(0.01)
    array = numpy.zeros(n, dtype="u4")
    comm.Recv(array, source=0, tag=1)
    print((array == numpy.arange(n)).all(), comm.recv(source=0, tag=2))
"""
    done = run(tmp_path, 2, text)
    assert (done.stdout, done.stderr, done.returncode) == ("True next\n", "", 0)


def test_a_deadlock_is_explained_by_mpi4py_s_calls_and_the_program_s_lines(tmp_path: Path) -> None:
    text = """
pairs = comm.Dup()
pairs.name = "pairs"
if rank == 0:
    pairs.recv(source=1, tag=7)
else:
    MPI.Request.waitall([comm.irecv(source=0, tag=8)])
"""
    done = run(tmp_path, 2, text, "--detect")
    assert done.returncode != 0
    assert "0 is in pairs.recv(source=1, tag=7, comm=pairs) in prog.py, line 7." in done.stderr
    assert "1 is in MPI.Request.waitall(source=0, tag=8) in prog.py, line 9." in done.stderr


def test_the_line_of_a_call_is_known_after_any_number_of_others(tmp_path: Path) -> None:
    """As in an engine, where every cell is new code; also that of a function of an early one."""
    text = """
def early(): comm.recv(source=0, tag=7)
comm.send(0, dest=0, tag=7)
early()
for number in range(1500):
    exec(compile("comm.iprobe()", f"cell {number}", "exec"))
if CASE == 0: early()
exec(compile("comm.recv(source=0, tag=7)", "the_last.py", "exec"))
"""
    for case, said in enumerate(("in prog.py, line 4 (early).", "in the_last.py, line 1.")):
        done = run(tmp_path, 1, text.replace("CASE", str(case)), "--detect")
        assert said in done.stderr


def test_a_failed_call_says_what_to_do(tmp_path: Path) -> None:
    text = """
try:
    comm.send(1, dest=7)
except MPI.Exception as error:
    print(error.Get_error_class() == MPI.ERR_RANK, error)
"""
    done = run(tmp_path, 1, text)
    assert done.stdout.startswith("True ") and "argument dest is 7" in done.stdout


@pytest.mark.parametrize(
    ("text", "status", "says"),
    [
        ("if rank == 1: raise ValueError('no')\ncomm.recv()\n", 1, "ValueError: no"),
        ("import sys\nif rank == 1: sys.exit(3)\ncomm.recv()\n", 3, "exit status 3"),
        ("if rank == 1: comm.Abort(4)\ncomm.recv()\n", 4, "Abort"),
        ("import os\nif rank == 1: os._exit(5)\ncomm.recv(source=1)\n", 5, "exit status 5"),
        ("import os\nif rank == 1: os.kill(os.getpid(), 9)\ncomm.recv()\n", 137, "SIGKILL"),
    ],
    ids=["raises", "exits", "aborts", "ends at once", "is killed"],
)
def test_one_rank_s_end_is_reported(tmp_path: Path, text: str, status: int, says: str) -> None:
    done = run(tmp_path, 2, text)
    assert done.returncode == status, done.stderr
    assert says in done.stderr and "rank 1" in done.stderr


def test_a_call_is_named_as_its_line_has_it() -> None:
    class comm:
        recv = staticmethod(_inside)

    assert comm.recv() == "comm.recv"
    assert [comm.recv() for _ in range(1)] == ["comm.recv"]
    assert max(comm.recv(), "") == "comm.recv"
    assert comm.recv(
    ) == "comm.recv"  # fmt: skip


def _inside() -> str | None:
    return library.called(sys._getframe(1))


LEFT = {
    "irecv": (
        "for tag in range(3):\n    comm.irecv(source=0, tag=7)\n",
        "rank 1 ended with 3 unfinished requests: comm.irecv(source=0, tag=7) in prog.py, line 5",
    ),
    "in a function": (
        "def post(comm):\n    return comm.Ibarrier()\npost(MPI.COMM_SELF)\n",
        "rank 1 ended with 1 unfinished request: comm.Ibarrier(comm=MPI_COMM_SELF) in prog.py, "
        "line 5 (post)",
    ),
    "send": (
        "for n in range(2):\n    comm.send('x',\n              dest=0, tag=5)\n",
        "rank 0 never received 2 messages from rank 1: comm.send(dest=0, tag=5) in prog.py, line 5",
    ),
    "isend": (
        "comm.isend('x', dest=0, tag=5)\n",
        "rank 0 never received 1 message from rank 1: comm.isend(dest=0, tag=5) in prog.py, line 4",
    ),
    "pkl5": (
        "from mpi4py.util import pkl5\nthat = pkl5.Intracomm(comm)\nthat.isend('x', dest=0)\n",
        # It sends the length by itself.
        "rank 0 never received 2 messages from rank 1: that.isend(dest=0, tag=0) in "
        "prog.py, line 6",
    ),
    "without a source": (
        "exec('comm.irecv(source=0)')\n",
        "rank 1 ended with 1 unfinished request: MPI_Irecv(source=0, tag=MPI_ANY_TAG) in "
        "<string>, line 1",
    ),
    "in a thread": (
        "import threading\nthread = threading.Thread(target=lambda: comm.irecv(tag=7))\n"
        "thread.start()\nthread.join()\n",
        "rank 1 ended with 1 unfinished request: comm.irecv(source=MPI_ANY_SOURCE, tag=7) in "
        "prog.py, line 5",
    ),
}
"""Programs in which rank 1 leaves something unfinished, each with the report about it."""


@pytest.mark.parametrize(("text", "report"), LEFT.values(), ids=LEFT)
def test_unfinished_work_is_reported_with_its_line(tmp_path: Path, text: str, report: str) -> None:
    done = run(tmp_path, 2, f"if rank == 1:\n{textwrap.indent(text, '    ')}")
    assert (done.stderr, done.returncode) == (f"sfm: {report}\n", 0)


def test_a_send_that_was_not_over_at_once_is_no_object_to_drop(tmp_path: Path) -> None:
    text = """
memory = bytearray(1_000_000)
if rank == 1:
    comm.Isend(memory, dest=0, tag=5)
else:
    comm.Recv(memory, source=1, tag=5)
MPI.Finalize()  # otherwise the memory would be freed before
"""
    done = run(tmp_path, 2, text)
    report = "rank 1 ended with 1 unfinished request: comm.Isend(dest=0, tag=5) in prog.py, line 6"
    assert (done.stderr, done.returncode) == (f"sfm: {report}\n", 0)


def test_finished_and_properly_dropped_work_is_not_reported(tmp_path: Path) -> None:
    text = """
comm.isend("dropped", dest=rank, tag=5)
assert comm.recv(source=rank, tag=5) == "dropped"
comm.irecv(source=rank, tag=6).cancel()
comm.Ibarrier().Wait()
comm.Recv_init(bytearray(8), source=rank, tag=7)
window = MPI.Win.Allocate(8, comm=comm)
window.Fence()
"""
    done = run(tmp_path, 2, text)
    assert (done.stderr, done.returncode) == ("", 0)


DIFFER = {
    "recv of Send": (
        "if rank: print(comm.recv(source=0, tag=3))\nelse: comm.Send(bytes(80), 1, tag=3)\n",
        "the 80 bytes that rank 0 has sent with tag 3 in prog.py, line 4 are no pickled object",
    ),
    "irecv of Send": (
        "if rank: print(comm.irecv(source=0).wait())\nelse: comm.Send(bytes(80), 1)\n",
        "the 80 bytes that rank 0 has sent with tag 0 in prog.py, line 4 are no pickled object",
    ),
    "Recv of send": (
        "import array\nif rank: comm.Recv(array.array('d', range(90)))\n"
        "else: comm.send('an object', 1)\n",
        "that rank 0 has sent with tag 0 in prog.py, line 5 is a pickled object",
    ),
    "too long": (
        "if rank: comm.Recv(bytearray(5), source=0)\nelse: comm.Send(bytes(9), 1)\n",
        "rank 0 has sent 9 bytes with tag 0 in prog.py, line 4, and the receive buffer has only 5",
    ),
    "sizes": (
        "comm.Bcast(bytearray(5 if rank else 9))\n",
        "process 0 of MPI_COMM_WORLD sends 9 bytes in prog.py, line 3 where 5 are expected here",
    ),
    "operations": (
        "comm.Reduce(bytes(9), bytearray(9), op=MPI.MAX if rank else MPI.MIN)\n",
        "calls MPI_Reduce(op=MPI.MAX, root=0) in prog.py, line 3 where this one calls "
        "comm.Reduce(op=MPI.MIN, root=0)",
    ),
    "a reduction of objects": (
        "comm.bcast(1)\nif rank: comm.reduce(1)\nelse: comm.allreduce(1)\n",
        "process 1 of MPI_COMM_WORLD calls reduce(op=MPI.SUM, root=0) in prog.py, line 4 where "
        "this one calls comm.allreduce(op=MPI.SUM)",
    ),
    "a reduction of objects by another name": (
        "mine = comm.reduce if rank else comm.allreduce\nmine(1)\n",
        "rank 1, in MPI_Finalize: process 0 of MPI_COMM_WORLD has called allreduce in "
        "prog.py, line 4, and this process has not",
    ),
}
"""Programs whose two ranks make calls that do not fit together, each with the report about it."""


@pytest.mark.parametrize(("text", "says"), DIFFER.values(), ids=DIFFER)
def test_calls_that_do_not_fit_together_are_told_with_both_sides(
    tmp_path: Path, text: str, says: str
) -> None:
    done = run(tmp_path, 2, text)
    assert done.returncode == 1 and says in done.stderr, done.stderr
