"""What ``import mpi4py`` gives where the stand-in is installed, and what is in it alone."""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
import typing
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import sfm_kernel.mpi.standin as ours
from sfm_kernel.mpi.launch import standin
from sfm_kernel.mpi.launch.standin import own_name
from tests.mpi.launching import run


@pytest.fixture
def installed() -> Iterator[None]:
    standin.install()
    yield
    standin.remove()


@pytest.fixture
def other(tmp_path: Path) -> dict[str, str]:
    """An environment in which another mpi4py is installed: "theirs"."""
    package = tmp_path / "mpi4py"
    package.mkdir()
    (package / "__init__.py").write_text("whose = 'theirs'")
    (package / "MPI.py").write_text("whose = 'theirs'")
    here = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    return {**os.environ, "PYTHONPATH": f"{tmp_path}:{here}"}


def python(text: str, environment: dict[str, str]) -> str:
    words = [sys.executable, "-c", text]
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- whose mpi4py


def test_it_hides_another_mpi4py_until_it_is_removed(other: dict[str, str]) -> None:
    text = """
from sfm_kernel.mpi.launch import standin
import mpi4py as before
standin.install(); standin.install()
import mpi4py
from mpi4py import rc
print(hasattr(mpi4py, "whose"), mpi4py.__version__[:3])
standin.remove(); standin.remove()
import mpi4py
from mpi4py import MPI
print(mpi4py is before, MPI.whose)
"""
    assert python(text, other) == "False 4.1\nTrue theirs\n"


def test_it_refuses_when_another_mpi_runs(other: dict[str, str]) -> None:
    text = """
from sfm_kernel.mpi.launch import standin
from mpi4py import MPI
try:
    standin.install()
except ImportError as error:
    print("restart" in str(error).lower(), standin.installed())
import mpi4py
print(mpi4py.whose)
"""
    assert python(text, other) == "True False\ntheirs\n"


def test_a_name_of_mpi4py_is_a_second_way_to_a_module(installed: None) -> None:
    for name in ("mpi4py", "mpi4py.MPI", "mpi4py.util.pkl5", "mpi4py.futures", "mpi4py.run"):
        module = importlib.import_module(name)
        assert module is sys.modules[own_name(name)]
        assert module.__spec__ is not None and module.__spec__.name == own_name(name)


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("mpi4py", "sfm_kernel.mpi.standin"),
        ("mpi4py.bench", "sfm_kernel.mpi.standin.bench"),
        ("mpi4py.MPI", "sfm_kernel.mpi.MPI"),
        ("mpi4py.util.dtlib", "sfm_kernel.mpi.util.dtlib"),
    ],
)
def test_names(name: str, own: str) -> None:
    assert own_name(name) == own


def test_every_way_to_import(installed: None) -> None:
    text = """
import mpi4py.rc
import mpi4py.util.pkl5
from mpi4py import MPI, bench, futures, rc, run, typing, util
from mpi4py.MPI import COMM_WORLD
from mpi4py.util import pkl5
assert mpi4py.rc is rc and mpi4py.MPI is MPI and mpi4py.util is util and util.pkl5 is pkl5
"""
    exec(compile(text, "<test>", "exec"), {})


def test_what_is_not_there_cannot_be_imported(installed: None) -> None:
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module("mpi4py.nothing")
    assert caught.value.name == "mpi4py.nothing"
    with pytest.raises(ImportError, match="nothing"):
        exec("from mpi4py import nothing")
    assert importlib.util.find_spec("mpi4pyx") is None


def test_classes_are_pickled_by_their_own_names(installed: None) -> None:
    from mpi4py import MPI

    assert b"mpi4py" not in pickle.dumps(MPI.Status)


# ---- rc and the functions of the package


def test_options_are_set_all_or_none() -> None:
    rc = ours.Rc(threads=False)
    rc(finalize=True, errors="fatal")
    assert (rc.threads, rc.finalize, rc.errors, rc.initialize) == (False, True, "fatal", True)
    with pytest.raises(TypeError, match="no option 'nothing'"):
        rc(finalize=False, nothing=1)
    with pytest.raises(TypeError):
        rc.nothing = 1  # type: ignore[attr-defined]
    assert rc.finalize is True
    assert repr(rc) == "<mpi4py.rc>"


def test_there_is_no_c_interface() -> None:
    with pytest.raises(NotImplementedError, match="no C headers"):
        ours.get_include()
    assert ours.get_config() == {}


def test_a_profiler_sees_nothing(tmp_path: Path) -> None:
    (tmp_path / "libvampire.so").touch()
    for path in (tmp_path, str(tmp_path), [tmp_path], f"/nowhere{os.pathsep}{tmp_path}"):
        with pytest.warns(UserWarning, match="libvampire.so is not loaded"):
            ours.profile("vampire", path=path)
    with warnings.catch_warnings(), pytest.raises(ValueError, match="not found"):
        ours.profile("vampire")


def test_the_types_of_arguments() -> None:
    names = importlib.import_module("sfm_kernel.mpi.standin.typing")
    assert all(hasattr(names, name) for name in names.__all__)
    assert type(None) in typing.get_args(names.BufSpec)


# ---- mpi4py.run and mpi4py.bench


def test_options_come_from_the_environment() -> None:
    options = {
        "MPI4PY_RC_INITIALIZE": "no",
        "MPI4PY_RC_THREAD_LEVEL": "Single",
        "MPI4PY_RC_IRECV_BUFSZ": "2048",
        "MPI4PY_PICKLE_PROTOCOL": "4",
        "MPI4PY_PICKLE_THRESHOLD": "1024",
    }
    text = (
        "from mpi4py import MPI, rc\n"
        "print(MPI.Is_initialized(), rc.initialize, rc.thread_level, rc.irecv_bufsz)\n"
        "print(MPI.pickle.PROTOCOL, MPI.pickle.THRESHOLD, len(MPI.pickle.dumps(1)))\n"
    )
    done = run("-n", "1", "-c", text, env=os.environ | options)
    length = len(pickle.dumps(1, 4))
    assert (done.stdout, done.stderr) == (f"False False single 2048\n4 1024 {length}\n", "")


def test_options_that_mean_nothing_are_told_and_change_nothing() -> None:
    text = (
        "from mpi4py import rc\nrc.errors, rc.finalize = 'maybe', 3\n"
        "from mpi4py import MPI\nprint(MPI.Is_initialized(), MPI.COMM_SELF.Get_errhandler() "
        "== MPI.ERRORS_RETURN)\n"
    )
    done = run("-n", "1", "-c", text, env=os.environ | {"MPI4PY_RC_INITIALIZE": "perhaps"})
    assert done.stdout == "True True\n"
    for told in ("initialize: unexpected value 'perhaps'", "finalize: unexpected value 3",
                 "errors: unexpected value 'maybe'"):  # fmt: skip
        assert done.stderr.count(f"RuntimeWarning: mpi4py.rc.{told}") == 1


def test_run_takes_options_before_the_program() -> None:
    text = "from mpi4py import rc; import sys; print(rc.threads, rc.errors, sys.argv)"
    words = ["-m", "mpi4py", "-rc", "threads=False,errors=fatal", "-c", text, "x"]
    done = run("-n", "1", *words)
    assert done.stdout == "False fatal ['-c', 'x']\n"


def test_a_program_that_raises_under_run_is_shown_once() -> None:
    text = "from mpi4py import MPI\nif MPI.COMM_WORLD.rank: 1 / 0\nMPI.COMM_WORLD.recv()"
    done = run("-n", "2", "-m", "mpi4py.run", "-c", text)
    assert done.returncode == 1 and done.stderr.count("Traceback") == 1


@pytest.mark.parametrize(
    ("option", "shows"),
    [
        ("--version", "mpi4py 4.1"),
        ("--prefix", "standin"),
        ("--module", "MPI.py"),
        ("-mpi-vendor", "sfm"),
        ("--mpi-library", "_native"),
        ("--mpi-std-version", "MPI "),
        ("--mpi-lib-version", ""),
        ("--mpi-abi-version", "MPI ABI "),
        ("--help", "--mpi-vendor"),
    ],
)
def test_what_run_answers(
    installed: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    option: str,
    shows: str,
) -> None:
    from mpi4py import run as module

    monkeypatch.setattr(sys, "argv", ["mpi4py", option])
    with pytest.raises(SystemExit) as caught:
        module._obey_options(sys.argv[1:])
    assert caught.value.code == 0
    assert shows in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["--nothing"], ["-m"], ["--rc", "threads"], ["none.py"]])
def test_what_run_refuses(words: list[str]) -> None:
    from sfm_kernel.mpi.standin.run import _obey_options

    with pytest.raises(SystemExit, match="usage: python -m mpi4py"):
        _obey_options(words)


def test_hello_from_each_rank_in_turn() -> None:
    done = run("-n", "3", "-m", "mpi4py.bench", "helloworld")
    shown = [line.rpartition(" on ")[0] for line in done.stdout.splitlines()]
    assert shown == [f"Hello, World! I am process {rank} of 3" for rank in range(3)]


def test_a_ring_and_a_ping_pong() -> None:
    text = """
from mpi4py import MPI, bench
comm = MPI.COMM_WORLD
assert bench.ringtest(comm, ["-q", "-n", "1000", "-l", "2", "-s", "1"]) > 0
assert bench.ringtest(MPI.COMM_SELF, ["-q"]) >= 0
for words in (["-q"], ["-q", "-p"]):
    found = bench.pingpong(comm, [*words, "-m", "4", "-n", "64", "-l", "2"])
    assert [size for size, _, _ in found] == [4, 8, 16, 32, 64]
bench.main(["ringtest", "-l", "2"])
"""
    done = run("-n", "3", "-c", text)
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.startswith("time for 2 loops = ") and "3 processes, 1 bytes" in done.stdout
