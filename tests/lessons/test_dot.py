"""The program of the dot product: what it measures is right, and a row comes for each measurement.

No test here looks at how long anything took.
"""

from __future__ import annotations

import json
import math
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfm_kernel.collectives import ALGORITHMS
from sfm_kernel.errors import SFMError
from sfm_kernel.lessons import dot
from sfm_kernel.lessons.__main__ import main
from sfm_kernel.lessons.dot import REDUCTIONS, cg, plots
from sfm_kernel.lessons.dot.cg import EXAMPLE_2
from sfm_kernel.lessons.measure.engines import environment_of
from sfm_kernel.plots import png, still
from tests.lessons.engines import serving

pytestmark = pytest.mark.usefixtures("forked")  # their processes: tests.forks

COMMON = {"what", "engines", "algorithm", "round", "seconds", "share", "share_max"}
OF_DOT = COMMON | {"length", "count", "fastest", "value", "different", "error"}
OF_CG = COMMON | {"m", "unknowns", "iteration", "residual", "halo_share", "done"}


def test_algorithms_that_need_arrays_are_left_out() -> None:
    assert set(dot.FOR_ARRAYS) < set(ALGORITHMS["allreduce"])
    assert set(REDUCTIONS) == {EXAMPLE_2, *ALGORITHMS["allreduce"]} - set(dot.FOR_ARRAYS)


def test_the_true_product_is_rounded_once() -> None:
    x, y = dot.vectors(1000)
    exact = sum(Fraction(a) * Fraction(b) for a, b in zip(x.tolist(), y.tolist(), strict=True))
    assert dot.true_product(1000) == float(exact)
    assert all(Fraction(a * b) == Fraction(a) * Fraction(b) for a, b in zip(x, y, strict=True))


# --- the benchmark -----------------------------------------------------------------------------

SMALL: dict[str, Any] = {"lengths": (100, 1001), "m": 12, "every": 10, "count": 5, "repeat": 2}


def test_rows_from_the_engines_of_a_world(world: str) -> None:
    with serving(world, 3, dot.serve) as home:
        rows = list(dot.rows(home=home, **SMALL))
        assert not home.peek()
    dots, solvers = ([row for row in rows if row["what"] == what] for what in dot.WORKS)
    assert len(dots) == 2 * 2 * len(REDUCTIONS) * 3
    for row in dots:
        assert set(row) == OF_DOT
        assert row["error"] < 1e-12 and row["count"] == 5
        assert 0 < row["fastest"] <= row["seconds"]
        # An algorithm that takes the parts as they come may add them in several orders.
        assert row["different"] == 1 or (row["algorithm"] == EXAMPLE_2 and row["engines"] > 2)
    for row in solvers:
        assert set(row) == OF_CG | ({"true_residual", "error"} if row["done"] else set())
        assert row["done"] == (row["residual"] <= dot.TOLERANCE)
        assert row["iteration"] % 10 == 0 or row["done"]
    for row in rows:
        assert 0 <= row["share"] <= row["share_max"] * (1 + 1e-12) and row["share_max"] < 1
    last = [row for row in solvers if row["done"]]
    assert [(row["round"], row["algorithm"], row["engines"]) for row in last] == [
        (number, algorithm, engines)
        for number in range(2)
        for algorithm in REDUCTIONS
        for engines in (1, 2, 3)
    ]
    assert max(row["true_residual"] for row in last) < 2 * dot.TOLERANCE
    assert all(row["error"] == pytest.approx(2.0e-4, rel=0.05) for row in last)
    # Every round begins a new solver.
    first = [row["residual"] for row in solvers if row["iteration"] == 10]
    assert len(first) == len(last) and max(first) / min(first) == pytest.approx(1)


def test_rows_that_are_abandoned_let_the_engines_go(world: str) -> None:
    with serving(world, 2, dot.serve) as home:
        rows = dot.rows(home=home, works=("cg",), algorithms=("linear",), m=20, every=1)
        assert [next(rows)["iteration"] for _ in range(3)] == [1, 2, 3]
        rows.close()
        assert not home.peek()


def test_engines_that_take_no_part_are_let_go_too(world: str) -> None:
    with serving(world, 3, dot.serve) as home:
        few = {**SMALL, "works": ("dot",), "algorithms": ("binomial",), "repeat": 1}
        rows = list(dot.rows(2, home=home, **few))
        assert [row["engines"] for row in rows] == [1, 2, 1, 2]
        with pytest.raises(ValueError, match="choose 1 to 3"):
            next(dot.rows(4, home=home))


def test_engines_that_share_no_memory_have_no_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFM_TRANSPORT", "zmq")
    few = {**SMALL, "works": ("dot",), "lengths": (100,), "repeat": 1}
    rows = list(dot.rows(2, algorithms=("flags", "two-level", "linear"), **few))
    assert {row["algorithm"] for row in rows} == {"linear", "two-level"}
    with pytest.raises(SFMError, match="flags need engines that share memory"):
        next(dot.rows(2, algorithms=("flags",), **few))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"engines": 0}, "cannot run on 0 engines"),
        ({"engines": 5, "m": 4}, "5 engines cannot share 4 rows: let m be 5 or more"),
        ({"works": ("sing",)}, "no work 'sing'; there are dot, cg"),
        ({"algorithms": ("telepathy",)}, "no algorithm 'telepathy'; there are example 2"),
        ({"algorithms": ("ring",)}, "no algorithm 'ring'"),
        ({"lengths": ()}, "at least 1 element"),
        ({"lengths": (10, 0)}, "at least 1 element"),
        ({"tolerance": 0.0}, "tolerance is between"),
        ({"tolerance": math.nan}, "tolerance is between"),
        ({"repeat": 0}, "repeat 0"),
        ({"every": 0}, "every 0"),
        ({"count": 0}, "count 0"),
        ({"seconds": 0.0}, "seconds 0"),
    ],
)
def test_bad_arguments_start_nothing(
    wrong: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dot, "_asking", None)  # or it would be called
    with pytest.raises(ValueError, match=says):
        next(dot.rows(**wrong))


def test_processes_multiply_in_one_thread_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")  # the user's choice
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    with environment_of(dot._blas_threads()):
        assert os.environ["OMP_NUM_THREADS"] == "3" and os.environ["OPENBLAS_NUM_THREADS"] == "1"
    assert os.environ["OMP_NUM_THREADS"] == "3" and "OPENBLAS_NUM_THREADS" not in os.environ


# --- what is shown -----------------------------------------------------------------------------


def dot_row(algorithm: str, engines: int, number: int, us: float) -> dict[str, Any]:
    return {
        "what": "dot", "length": 10, "algorithm": algorithm, "engines": engines, "round": number,
        "count": 3, "seconds": us / 1e6, "fastest": us / 2e6, "share": us / 100,
        "share_max": us / 50, "value": 1.0, "different": number + 1, "error": us / 1e9,
    }  # fmt: skip


def cg_row(algorithm: str, engines: int, number: int, ms: float, done: bool) -> dict[str, Any]:
    row = {
        "what": "cg", "m": 5, "unknowns": 25, "algorithm": algorithm, "engines": engines,
        "round": number, "iteration": 9 if done else 5, "residual": 1e-9 if done else 1e-3,
        "seconds": ms / 1e3, "share": ms / 100, "share_max": ms / 50, "halo_share": ms / 200,
        "done": done,
    }  # fmt: skip
    return row | ({"true_residual": 1e-9 * ms, "error": 1e-4} if done else {})


MEASURED = [
    *(dot_row(name, n, k, 10.0 * n + k) for k in range(3) for name in ("a", "b") for n in (1, 2)),
    *(
        cg_row("a", n, k, 8.0 / n + k + done, done)
        for k in range(3)
        for n in (1, 2)
        for done in (False, True)
    ),
]


def test_the_summary_has_medians_and_fastest_times() -> None:
    summary = dot.summary(MEASURED)
    assert [(row["what"], row["algorithm"], row["engines"]) for row in summary] == [
        ("dot", "a", 1), ("dot", "a", 2), ("dot", "b", 1), ("dot", "b", 2),
        ("cg", "a", 1), ("cg", "a", 2),
    ]  # fmt: skip
    assert summary[1]["us"] == pytest.approx(21) and summary[1]["fastest_us"] == pytest.approx(10)
    assert summary[1]["different"] == 3 and summary[1]["share"] == pytest.approx(0.21)
    assert summary[5]["ms"] == pytest.approx(6) and summary[5]["fastest_ms"] == pytest.approx(5)
    assert summary[4]["speedup"] == 1 and summary[5]["speedup"] == pytest.approx(9 / 5)
    assert summary[5]["iterations"] == 9 and summary[5]["true_residual"] == pytest.approx(7e-9)


def test_tables_have_a_column_for_each_number_of_engines() -> None:
    tables = dot.tables(MEASURED)
    times, shares, ms, _, end = tables.values()
    assert times[0] == pytest.approx(
        {"length": 10, "algorithm": "a", "1 engine": 11, "2 engines": 21}
    )
    assert shares[1]["2 engines"] == pytest.approx(0.21)
    assert ms == [pytest.approx({"m": 5, "algorithm": "a", "1 engine": 10, "2 engines": 6})]
    assert [row["iterations"] for row in end] == [9, 9]
    assert len(dot.tables(MEASURED[:4])) == 2  # no solver, no table of it


@pytest.mark.parametrize("rows", [MEASURED, MEASURED[:12], MEASURED[12:]], ids=["all", "dot", "cg"])
def test_plots_of_all_or_of_one_work(rows: list[dict[str, Any]]) -> None:
    assert png(dot.plot(rows)).startswith(b"\x89PNG")


def test_the_residual_and_the_solution_are_drawn() -> None:
    rows = [row for row in MEASURED if row["what"] == "cg"]
    assert png(still(rows, plots.Residual(10, 1e-8))).startswith(b"\x89PNG")
    figure = plots.solution(cg.exact(9, range(9)), [range(3), range(3, 9)])
    words = [text.get_text() for text in figure.axes[0].texts]
    assert words == ["engine 0", "engine 1"]


# --- the command line --------------------------------------------------------------------------


def test_a_grid_that_is_too_small_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dot", "--engines", "3", "--m", "2"]) == 1
    assert "3 engines cannot share 2 rows" in capsys.readouterr().err


def test_the_quick_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, picture = tmp_path / "rows.json", tmp_path / "plot.svg"
    line = f"dot --quick --engines 2 --only linear,example* --json {file} --plot {picture}"
    assert main(line.split()) == 0
    printed = capsys.readouterr().out
    assert "One dot product, µs" in printed and "2 engines" in printed
    assert "until they converge" in printed and "true_residual" in printed
    rows = [row for row in map(json.loads, file.read_text().splitlines()) if "part" in row]
    assert {row["algorithm"] for row in rows} == {EXAMPLE_2, "linear"}
    assert {row["what"] for row in rows} == {"dot", "cg"}
    assert picture.read_text().lstrip().startswith("<?xml")
