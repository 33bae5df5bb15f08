"""python -m sfm_kernel.mpi: what a program gets, and what its user sees."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sfm_kernel.mpi.launch.mpiexec import DEFAULT_SIZE, MOST_RANKS, Command, WrongUsage, parse
from tests.mpi.launching import LAUNCHER, RANK, launched, run, status
from tests.waiting import wait_until

SHOW = RANK + "import sys; print(rank, __name__, sys.argv, sys.path[0])\n"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "prog.py"


# ---- the program


def test_a_script_runs_as_with_python(script: Path) -> None:
    script.write_text(SHOW + "print(__file__)")
    done = run("-n", "3", str(script), "-n", "7", "--label")
    arguments = [str(script), "-n", "7", "--label"]
    expected = [f"{rank} __main__ {arguments} {script.parent}" for rank in range(3)]
    assert sorted(done.stdout.splitlines()) == sorted(expected + [str(script)] * 3)
    assert (done.stderr, done.returncode) == ("", 0)


def test_a_module_runs_as_with_python(tmp_path: Path) -> None:
    (tmp_path / "apart.py").write_text(SHOW)
    here = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    done = run("-n", "1", "-m", "apart", "x", cwd=tmp_path, env={**os.environ, "PYTHONPATH": here})
    assert done.stdout == f"0 __main__ {[str(tmp_path / 'apart.py'), 'x']} {tmp_path}\n"


def test_a_text_runs_as_with_python() -> None:
    assert run("-n", "1", "-c", SHOW, "x").stdout == "0 __main__ ['-c', 'x'] \n"


def test_a_text_from_stdin() -> None:
    assert run("-n", "1", "-", "x", stdin=SHOW).stdout == "0 __main__ ['-', 'x'] \n"


def test_folders_and_archives_run_too(tmp_path: Path) -> None:
    (tmp_path / "__main__.py").write_text("import beside; print(__name__)")
    (tmp_path / "beside.py").write_text("print('beside')")
    archive = tmp_path / "archive.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for name in ("__main__.py", "beside.py"):
            file.write(tmp_path / name, name)
    for program in (tmp_path, archive):
        assert run("-n", "1", str(program)).stdout == "beside\n__main__\n"


@pytest.mark.parametrize("shebang", ["#!/usr/bin/env python3", "#!/bin/sh\n'''exec' python3'''"])
def test_a_bare_name_is_looked_for_on_path(
    shebang: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in "here", "bin":
        (tmp_path / folder).mkdir()
    command, beside = tmp_path / "bin" / "tool", tmp_path / "here" / "tool"
    command.write_text(f"{shebang}\nfrom mpi4py import MPI\n{SHOW}")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    monkeypatch.chdir(tmp_path / "here")
    beside.write_text("")
    assert parse(["tool"]).programs == [(DEFAULT_SIZE, ["tool"])]  # it cannot be run: the file
    command.chmod(0o755)
    assert parse(["./tool"]).programs == [(DEFAULT_SIZE, ["./tool"])]
    done = run("-n", "1", "tool", "x")
    assert done.stdout == f"0 __main__ {[str(command), 'x']} {tmp_path / 'bin'}\n", done.stderr


def test_a_folder_or_an_archive_comes_before_a_command_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    for name in ("project", "project.zip", "empty"):
        command = tmp_path / "bin" / name
        command.parent.mkdir(exist_ok=True)
        command.write_text("#!/usr/bin/env python3\nraise SystemExit(7)\n")
        command.chmod(0o755)
        assert parse([name]).programs == [(DEFAULT_SIZE, [str(command)])]
    failed = run("-n", "2", "project")
    assert failed.returncode == 7
    assert f"ended with exit status 7 (it ran {tmp_path}/bin/project);" in failed.stderr
    alone = run("-n", "1", "project").stderr
    assert alone == f"sfm: the program ended with exit status 7 (it ran {tmp_path}/bin/project)\n"
    for name in ("project", "empty"):
        (tmp_path / name).mkdir()
    (tmp_path / "project" / "__main__.py").write_text("print('ours')")
    with zipfile.ZipFile("project.zip", "w") as file:
        file.writestr("__main__.py", "print('ours')")
    for name in ("project", "project.zip"):
        assert run("-n", "1", name).stdout == "ours\n"
    with pytest.raises(WrongUsage, match=r"the folder empty has no .* run as .*/empty"):
        parse(["empty"])


def test_main_lives_until_the_end(script: Path) -> None:
    script.write_text(
        "import atexit, pickle, sys\n"
        "class A: pass\n"
        "atexit.register(lambda: print(type(pickle.loads(pickle.dumps(A()))).__module__))\n"
        "assert sys.modules['__main__'].A is A"
    )
    assert run("-n", "1", str(script)).stdout == "__main__\n"


def test_several_programs() -> None:
    text = RANK + "print(rank, os.environ['SFM_MPI_SIZE'], os.environ['SFM_MPI_APPNUM'])"
    done = run("-n", "2", "-c", text, ":", "-n", "1", "-c", text)
    assert sorted(done.stdout.splitlines()) == ["0 3 0", "1 3 0", "2 3 1"]


def test_scripts_read_their_ranks_as_under_mpich() -> None:
    names = "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"
    text = f"import os; print(*[os.environ[name] for name in {names}])"
    done = run("-n", "2", "-c", text, ":", "-n", "1", "-c", text)
    assert sorted(done.stdout.splitlines()) == ["0 3 0 3", "1 3 1 3", "2 3 2 3"]


def test_the_size_of_the_universe_is_what_the_command_line_says() -> None:
    text = "from mpi4py import MPI; print(MPI.COMM_WORLD.Get_attr(MPI.UNIVERSE_SIZE))"
    assert run("-n", "2", "-c", text).stdout == "None\n" * 2
    assert run("-n", "2", "--usize", "9", "-c", text).stdout == "9\n" * 2
    within = f"import subprocess, sys; subprocess.run([*{LAUNCHER}, '-n', '1', '-c', {text!r}])"
    assert run("-n", "1", "-usize", "9", "-c", within).stdout == "None\n"


def test_processes_of_the_program_are_no_ranks(script: Path) -> None:
    script.write_text(
        "import multiprocessing as mp, os\n"
        "def work(x): return 2 * x\n"
        "if __name__ == '__main__':\n"
        "    with mp.get_context('fork').Pool(1) as pool:\n"
        "        print(pool.map(work, [1, 2]))\n"
        "    if not os.fork():\n"
        "        raise SystemExit(3)\n"
        "    print(os.waitstatus_to_exitcode(os.wait()[1]))\n"
    )
    done = run("-n", "1", str(script))
    assert (done.stdout, done.stderr, done.returncode) == ("[2, 4]\n3\n", "", 0)


FORKED = """
import os, random, sys
before = [name for name in ("mpi4py.MPI", "numpy.random") if name in sys.modules]
held = [fd for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")]
os.environ["MPI4PY_PICKLE_PROTOCOL"] = "4"
from mpi4py import MPI
import numpy as np
comm, left = MPI.COMM_WORLD, open(f"{sys.argv[1]}/{MPI.COMM_WORLD.rank}", "w")
left.write("all")
drawn = comm.gather((random.random(), np.random.random(), np.random.default_rng().random()))
told = comm.gather((held, MPI.pickle.PROTOCOL, MPI.INFO_ENV["argv"], before, os.getsid(0)))
if drawn:
    print(*[len(set(column)) for column in zip(*drawn)])
    sessions = {one[-1] for one in told}
    print(len(sessions), *[len(one[0]) for one in told], *told[0][1:-1])
"""


def test_ranks_share_nothing_though_they_are_forks(tmp_path: Path) -> None:
    """They share no random numbers, no descriptors, and nothing that MPI reads at its import."""
    done = run("-n", "3", "-c", FORKED, str(tmp_path))
    # A rank has its report socket and three standard streams, and nothing of other processes.
    expected = f"3 3 3\n3 4 4 4 4 -c {tmp_path} []\n"
    assert (done.stdout, done.stderr) == (expected, "")
    assert [(tmp_path / str(rank)).read_text() for rank in range(3)] == ["all"] * 3


# ---- output and input


def test_stdout_and_stderr_stay_apart() -> None:
    done = run("-n", "2", "--label", "-c", RANK + "import sys; print('o'); sys.stderr.write('e')")
    assert sorted(done.stdout.splitlines()) == ["[0] o", "[1] o"]
    assert sorted(done.stderr.replace("e[", "e\n[").splitlines()) == ["[0] e", "[1] e"]


@pytest.mark.parametrize("first", ["", "MPI.COMM_WORLD.Barrier()\n"])
def test_a_process_that_a_rank_starts_is_no_rank(first: str) -> None:
    inner = "from mpi4py import MPI; print(MPI.COMM_WORLD.Get_size())"
    outer = (
        f"import subprocess, sys\nfrom mpi4py import MPI\n{first}"
        f"subprocess.run([sys.executable, '-c', {inner!r}], check=True)\n"
        "print(MPI.COMM_WORLD.allreduce(1))"
    )
    done = run("-n", "2", "-c", outer)
    assert (sorted(done.stdout.split()), done.stderr) == (["1", "1", "2", "2"], "")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_lines_stay_whole_and_nothing_is_lost(unbuffered: str) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    text = RANK + "for number in range(8000): print(f'{rank} {number} ' + 'x' * 200)"
    done = run("-n", "3", "-c", text, env=environment)
    found: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for line in done.stdout.splitlines():
        rank, number, rest = line.split()
        assert rest == "x" * 200
        found[int(rank)].append(int(number))
    assert all(numbers == list(range(8000)) for numbers in found.values())


def test_a_line_longer_than_any_buffer() -> None:
    done = run("-n", "1", "-c", "print('x' * 3_000_000)")
    assert done.stdout == "x" * 3_000_000 + "\n"


def test_output_that_is_no_text() -> None:
    text = "import sys; sys.stdout.buffer.write(bytes(range(256)))"
    done = subprocess.run([*LAUNCHER, "-n", "1", "-c", text], capture_output=True)
    assert done.stdout == bytes(range(256))


def test_output_comes_while_the_program_runs() -> None:
    with launched("-n", "1", "-c", "print('before'); input(); print('after')") as process:
        assert process.stdout and process.stdin
        assert process.stdout.readline() == "before\n"
        process.stdin.write("\n")
        process.stdin.close()
        assert process.stdout.read() == "after\n"


def test_rank_0_reads_stdin() -> None:
    text = RANK + "import sys; print(rank, repr(input('name? ') if not rank else sys.stdin.read()))"
    done = run("-n", "2", "-c", text, stdin="Ada\n")
    assert sorted(done.stdout.replace("name? ", "").splitlines()) == ["0 'Ada'", "1 ''"]


def test_without_any_standard_streams() -> None:
    done = subprocess.run(["bash", "-c", 'exec "$@" <&- >&- 2>&-', "-", *LAUNCHER, "-c", SHOW])
    assert done.returncode == 0


class Terminal:
    """A launcher in a terminal, in the foreground as a shell puts it there."""

    def __init__(self, *words: str) -> None:
        self.fd, end = pty.openpty()
        take = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
        take += "os.execv(sys.argv[1], sys.argv[1:])"
        self.process = subprocess.Popen(
            [LAUNCHER[0], "-c", take, *LAUNCHER, *words],
            stdin=end,
            stdout=end,
            stderr=end,
            start_new_session=True,
        )
        os.close(end)
        self.shown = b""

    def wait_for(self, text: bytes, times: int = 1) -> None:
        while self.shown.count(text) < times:
            self.shown += os.read(self.fd, 1000)

    def type(self, keys: bytes) -> None:
        os.write(self.fd, keys)


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    made: list[Terminal] = []
    yield made
    for terminal in made:
        terminal.process.kill()
        terminal.process.wait()
        os.close(terminal.fd)


def test_questions_in_a_terminal(terminals: list[Terminal]) -> None:
    text = RANK + "import sys\nif not rank: print(input('name? ') + '!', repr(sys.stdin.read()))"
    terminals.append(terminal := Terminal("-n", "2", "-c", text))
    terminal.wait_for(b"name? ")
    terminal.type(b"Ada\n")
    terminal.type(b"more\n\x04")
    terminal.wait_for(b"Ada! 'more\\n'")
    assert terminal.process.wait() == 0


def test_keys_that_stop_and_end_in_a_terminal(terminals: list[Terminal]) -> None:
    text = "import os, signal; print('in', os.getpid(), flush=True); signal.pause()"
    terminals.append(terminal := Terminal("-n", "2", "-c", text))
    terminal.wait_for(b"in ", 2)
    terminal.wait_for(b"\n", 2)
    every = [terminal.process.pid, *(int(line.split()[1]) for line in terminal.shown.splitlines())]
    terminal.type(b"\x1a")
    wait_until(lambda: all(status(pid) == psutil.STATUS_STOPPED for pid in every))
    terminal.process.send_signal(signal.SIGCONT)
    wait_until(lambda: all(status(pid) == psutil.STATUS_SLEEPING for pid in every))
    terminal.type(b"\x03")
    assert terminal.process.wait() == 130


# ---- usage


def test_the_words_of_a_command_line() -> None:
    assert parse(["-c", "1", "-n", "2"]) == Command([(DEFAULT_SIZE, ["-c", "1", "-n", "2"])])
    assert parse(["-np", "2", "-c", "1"]).programs == [(2, ["-c", "1"])]
    assert parse(["-n3", "--", "-c", "1"]).programs == [(3, ["-c", "1"])]
    command = parse(["--timeout=2.5", "-l", "-m", "a.b", ":", "--np", "1", "python3", "-c", "1"])
    assert command.programs == [(DEFAULT_SIZE, ["-m", "a.b"]), (1, ["-c", "1"])]
    assert (command.timeout, command.label) == (2.5, True)
    assert parse(["-usize", "8", "-c", "1"]).universe == 8


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "no program: give a script, -m MODULE or -c TEXT"),
        ("-n 0 -c 1", "a number from 1 to"),
        ("-n many -c 1", "a number from 1 to"),
        ("-n", "expected one argument"),
        ("-n 2", "no program"),
        ("-x prog.py", "unrecognized arguments: -x"),
        ("-n 2 nothing.py", "there is no file 'nothing.py'. For"),
        ("-n 2 nothing-at-all", "and no program of that name on PATH"),
        ("-n 2 ldd", "ldd is neither a Python program nor a compiled one"),
        ("-n 2 -m", "-m needs the name of a module"),
        ("-c", "-c needs a text"),
        ("--timeout 0 -c 1", "a number of seconds above 0"),
        ("--usize 0 -c 1", "a number of processes, 1 or more"),
        ("-c 1 :", "no program"),
        (f"-n {MOST_RANKS} -c 1 : -n 1 -c 1", "too many"),
    ],
)
def test_the_error_of_a_wrong_command_line_says_what_to_write(line: str, says: str) -> None:
    with pytest.raises(WrongUsage, match=r"python -m sfm_kernel.mpi") as caught:
        parse(line.split())
    assert says in str(caught.value)


def test_wrong_usage_is_one_line_and_status_2() -> None:
    done = run("-n", "0", "-c", "1")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1


def test_help() -> None:
    done = run("-h")
    assert done.returncode == 0 and "prog.py" in done.stdout and "lifeline" not in done.stdout
