"""Programs in C: rows, targets and plots. No test here looks at how long anything took."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import c as benchmark
from benchmarks.c import parts, verdicts
from sfm_kernel.errors import SFMError
from sfm_kernel.lessons import c
from sfm_kernel.lessons.c import programs
from sfm_kernel.lessons.c.plots import Farm, Workers, drawn

REPEATED = [
    "Bcast",
    "Reduce",
    "Allreduce",
    "Sendrecv",
    "Gather",
    "Scatter",
    "Alltoall",
    "Put",
    "Accumulate",
]

LINES = """
import sys
print('{"what": "one", "us": 1.5}')
print("[0] not a row")
print('[3, "nor this"]', flush=True)
"""


def run(code: str, folder: Path) -> list[dict[str, Any]]:
    return list(programs.rows_of([sys.executable, "-c", code], "a program", folder))


def test_rows_are_the_lines_of_json_that_a_program_prints(tmp_path: Path) -> None:
    assert run(LINES, tmp_path) == [{"what": "one", "us": 1.5}]
    printed = 'no row\n[1] {"seconds": 2.0}\n{broken\n'
    assert list(programs.rows_in(printed)) == [{"seconds": 2.0}]


def test_a_program_that_fails_is_quoted(tmp_path: Path) -> None:
    code = "print('half a result'); raise SystemExit('no more')"
    with pytest.raises(SFMError, match=r"a program ended with status 1:\nhalf a result\nno more"):
        run(code, tmp_path)


def test_a_program_ends_with_its_reader(tmp_path: Path) -> None:
    code = "import time; print('{}', flush=True); time.sleep(600)"
    rows = programs.rows_of([sys.executable, "-c", code], "a program", tmp_path)
    assert next(rows) == {}
    rows.close()  # type: ignore[attr-defined]


def test_a_program_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "LONGEST", 0.5)
    with pytest.raises(SFMError, match="ended with status"):
        run("import time; time.sleep(600)", tmp_path)


def test_nothing_runs_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "compiler", lambda: None)
    for library in (programs.SFM, programs.MPICH):
        assert "no C compiler" in str(programs.absent(library))
    assert c.libraries() == {}
    with programs.Programs() as compiled, pytest.raises(SFMError, match="no C compiler"):
        compiled.compiled("nbody", None)


needs_compiler = pytest.mark.skipif(programs.compiler() is None, reason="no C compiler")


@needs_compiler
def test_particles_keep_their_mean_distance_about(tmp_path: Path) -> None:
    with programs.Programs() as compiled:
        nbody = compiled.compiled("nbody", None)
        assert compiled.compiled("nbody", None) == nbody
        said = subprocess.run([str(nbody), "50"], capture_output=True, text=True, check=True)
        assert float(said.stdout) == pytest.approx(1.0, abs=0.01)
        with pytest.raises(SFMError, match="status 2:\nusage: nbody PARTICLES"):
            list(programs.rows_of([str(nbody), "1"], "nbody", tmp_path))
    assert not nbody.exists()


# The tables and plots that are made of rows


def message(what: str, mechanism: str, nbytes: int, us: float) -> dict[str, Any]:
    found = {"part": "messages", "what": what, "mechanism": mechanism, "bytes": nbytes, "round": 0}
    found |= {"count": 5, "latency_us": us, "fastest_us": us / 2, "bandwidth_mbit_s": nbytes / us}
    return found


def crowd(what: str, mechanism: str, us: float, nbytes: int = 8) -> dict[str, Any]:
    about = {"part": "crowds", "what": what, "mechanism": mechanism, "processes": 8}
    return about | {"bytes": nbytes, "round": 0, "count": 9, "mean_us": us}


def loop(mechanism: str, seconds: float) -> dict[str, Any]:
    about = {"part": "loops", "what": c.LOOP, "mechanism": mechanism, "n": 9, "processes": 1}
    return about | {"round": 0, "seconds": seconds, "error": 0.0}


def shared(part: str, what: str, workers: int, seconds: float) -> dict[str, Any]:
    about = {"part": part, "what": what, "mechanism": c.C, "workers": workers, "round": 0}
    return about | {"seconds": seconds, "all_seconds": 2 * seconds}


def task(worker: int, ended: float) -> dict[str, Any]:
    about = {"part": "farm", "what": c.TASK, "mechanism": c.C, "workers": 2, "round": 0}
    return about | {"task": 0, "worker": worker, "began": 0.0, "ended": ended}


ROWS = [
    message(c.ONE_WAY, c.C, 8, 1.0),
    message(c.ONE_WAY, c.C_MPICH, 8, 2.0),
    message(c.ONE_WAY, c.C, 1 << 20, 300.0),
    message(c.ONE_WAY, c.C_MPICH, 1 << 20, 200.0),
    message(c.STREAM, c.C, 8, 0.5),
    message(c.STREAM, c.C_MPICH, 8, 1.0),
    crowd("barrier", c.C, 10.0),
    crowd("barrier", c.C_MPICH, 1000.0),
    crowd(parts.PAIRS, c.C, 4.0),
    crowd(parts.PAIRS, c.C_MPICH, 2.0),
    crowd("Bcast", c.C, 1.1) | {"part": "calls"},
    crowd("Bcast", c.C_MPICH, 0.5) | {"part": "calls"},
    loop(c.GCC, 1.0),
    loop(c.CELL, 1.25),
    loop(c.FAST, 1.25),
    loop(c.PLAIN, 100.0),
    shared("matrices", c.MATRIX, 1, 4.0),
    shared("matrices", c.MATRIX, 2, 2.0),
    task(1, 0.5),
    task(2, 0.7),
    task(1, 0.9),
    shared("farm", c.FARM, 2, 1.0),
    {"part": "cells", "what": parts.CHANGED, "processes": 4, "round": 0, "seconds": 0.2},
    {"part": "cells", "what": parts.UNCHANGED, "processes": 4, "round": 0, "seconds": 0.3},
]


def test_targets_say_met_or_by_how_much_not() -> None:
    found = {row["what"]: (row["at"], row["verdict"]) for row in verdicts.summary(ROWS)}
    assert found["cell changed: hello"] == ("4 processes", "met")
    assert found["C, Bcast in a loop"] == ("8 B, 8 processes", "missed by 100%")
    assert found["cell unchanged: hello"] == ("4 processes", "missed by 50%")
    assert found["C, 8 B one way"] == ("8 B", "met")
    assert found["C, 1 MB one way"] == ("1 MB", "missed by 50%")
    assert found["C, 64 MB one way"] == ("", "not measured")
    assert found["C, bandwidth"] == ("8 B", "")
    assert found["C, barrier, crowded"] == ("8 processes", "met")
    assert found["C, pairs, crowded"] == ("8 processes, 8 B", "missed by 100%")
    assert found[f"loop of cpi, {c.CELL}"] == ("1 processes", "met")
    assert found[f"loop of cpi, {c.FAST}"][1].startswith("missed by 14%")


def test_tables_set_libraries_side_by_side() -> None:
    tables = verdicts.tables(ROWS)
    assert tables["One way (µs)"] == [
        {"size": "8 B", c.C: 1.0, c.C_MPICH: 2.0},
        {"size": "1 MB", c.C: 300.0, c.C_MPICH: 200.0},
    ]
    assert tables["Matrix product"][1]["speedup"] == 2.0
    assert tables["Matrix product"][1]["all_seconds"] == 4.0
    (plain,) = [
        line for line in tables["pi, as in Tables 1 and 2"] if line["mechanism"] == "Python"
    ]
    assert plain["times_compiled"] == 100.0
    assert verdicts.tables([]).keys() == {"Targets (times in µs)"}


def test_pictures() -> None:
    assert len(drawn(ROWS).axes) == 4
    with pytest.raises(SFMError, match="none was measured"):
        drawn([row for row in ROWS if row["part"] == "cells"])


def test_a_farm_counts_what_each_worker_has_done() -> None:
    from sfm_kernel.plots import still

    panel = Farm(3, 1.0)
    (axes,) = still(ROWS, panel).axes
    lines = {tuple(line.get_ydata()) for line in axes.lines}
    assert (1, 2) in lines and (1,) in lines
    only = {"part": "matrices"}
    assert still(ROWS, Workers(2, "mechanism", only)).axes[0].get_xlabel() == "workers"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"repeat": 0}, "at least 1"),
        ({"seconds": 0.0}, "more than 0"),
        ({"processes": (2, 1)}, "at least 2"),
        ({"some": ("fortran",)}, "no part 'fortran'; there are messages, crowds"),
    ],
)
def test_bad_input_starts_nothing(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        next(benchmark.rows(**options))


needs_library = pytest.mark.skipif(
    programs.absent(programs.SFM) is not None, reason="C programs cannot be compiled here"
)


@needs_library
@pytest.mark.parametrize(
    ("part", "options"),
    [
        (parts.crowds, {"ranks": 3, "pairs": 1, "repeat": 1, "seconds": 0.01, "mpich": False}),
        (parts.repeated, {"processes": (2,), "repeat": 1, "seconds": 1e-3, "mpich": False}),
        (c.matrices, {"workers": (1, 2), "sizes": (7, 5, 3), "repeat": 1, "mpich": False}),
        (c.farm, {"workers": (2,), "tasks": 5, "particles": 9, "repeat": 1, "mpich": False}),
        (c.loops, {"n": 1000, "processes": (2,), "repeat": 1}),
        (c.messages, {"sizes": ("8 B", "1 MB"), "repeat": 1, "seconds": 0.01, "mpich": False}),
    ],
)
def test_parts(part: Callable[..., Any], options: dict[str, Any]) -> None:
    rows = list(part(**options))
    whats = {
        parts.crowds: {*parts.TOGETHER, parts.PAIRS},
        parts.repeated: {"Barrier", *REPEATED},
        c.matrices: {c.MATRIX},
        c.farm: {c.TASK, c.FARM},
        c.loops: {c.LOOP},
        c.messages: {c.ONE_WAY, c.STREAM},
    }[part]
    assert {row["what"] for row in rows} == whats
    if part is c.farm:
        assert sorted(row["task"] for row in rows if row["what"] == c.TASK) == list(range(5))
    if part is c.loops:
        assert [row["mechanism"] for row in rows] == list(c.LOOPS)
        assert all(row["error"] < 1e-6 for row in rows)
