"""The programs that courses teach MPI with: each runs as its source, with our header; some also as
a binary that was linked with MPICH and knows nothing of us, and in the ABI of MPI 5.0."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.c import catalogue, mpich
from tests.c.catalogue import Program
from tests.conftest import LONG
from tests.mpi.launching import PATIENCE, run

FOLDER = Path(__file__).parent / "programs" / "mpi"
PROGRAMS = catalogue.programs(str(FOLDER))

# Statuses, arrays of handles, special values, callbacks that get handles.
OF_ABI = ["attributes.c", "cancel.c", "collectives_v.c", "complex_op.c", "error_codes.c",
          "environment.c", "error_handler.c", "external32.c", "groups.c", "in_place.c", "mprobe.c",
          "null_type.c", "persistent.c", "struct_type.c", "task_farm.cpp", "tools.c",
          "waiting.c"]  # fmt: skip
BINARIES = [program for program in PROGRAMS if LONG or program.name in OF_ABI]
"""Programs to compile with MPICH: test_abi.py has compared its header with ours, value by value."""


def each(programs: list[Program]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("program", programs, ids=lambda program: program.name)


@pytest.fixture(scope="module")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs, compiled with MPICH; no more at a time than there are processors."""
    folder = tmp_path_factory.mktemp("mpich")
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        places = [Path(program.path) for program in BINARIES]
        said = list(pool.map(mpich.compiled, places, [folder / program.name for program in places]))
    assert "".join(said) == ""
    return folder


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The launcher's cache, in a folder of these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def check(program: Program, path: str) -> None:
    """The program prints what its comment says and ends with that status; if 0, stderr is empty."""
    words = ["-n", str(program.ranks), path, *program.arguments]
    done = run(*words, stdin=program.stdin, timeout=PATIENCE)
    assert program.lines(done.stdout) == program.expected, done.stderr
    assert done.returncode == program.status, done.stderr
    if program.status == 0:
        assert done.stderr == ""


@each(PROGRAMS)
def test_as_a_source(program: Program) -> None:
    check(program, program.path)


@each(BINARIES)
def test_as_a_binary_of_mpich(program: Program, binaries: Path) -> None:
    check(program, str(binaries / program.name))


@pytest.mark.parametrize("name", OF_ABI)
def test_as_a_binary_of_mpi_5(name: str, tmp_path: Path) -> None:
    program = next(known for known in PROGRAMS if known.name == name)
    assert mpich.compiled(Path(program.path), tmp_path / "program", abi=True) == ""
    check(program, str(tmp_path / "program"))


def test_a_comment_that_nobody_understands(tmp_path: Path) -> None:
    source = tmp_path / "hello.c"
    source.write_text("/* Hello.\n *\n * rank: 4\n * expected:\n *   hello\n */\n")
    with pytest.raises(ValueError, match="nothing is called 'rank'"):
        catalogue.read(str(source))
    source.write_text("/* Hello. */\n")
    with pytest.raises(ValueError, match="does not say what is expected"):
        catalogue.read(str(source))


@each([one for one in PROGRAMS if one.name.startswith("window_")])
def test_windows_that_messages_reach(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a system where no process may reach another's memory, or between machines; with rings
    that are smaller than what is put and got."""
    monkeypatch.setenv("SFM_MPI_WINDOWS", "served")
    monkeypatch.setenv("SFM_RING_BYTES", "4096")
    check(program, program.path)
