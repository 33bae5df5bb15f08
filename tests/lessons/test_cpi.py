"""The program of cpi, and the rows of all programs that measure.

No test here looks at how long anything took.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal, localcontext
from pathlib import Path

import pytest

from sfm_kernel.endpoint import Endpoint
from sfm_kernel.errors import ProcessFailed, SFMError
from sfm_kernel.lessons import cpi, frame, machine, table
from sfm_kernel.lessons.__main__ import main
from sfm_kernel.lessons.measure.engines import local_engines
from tests.lessons.engines import serving

pytestmark = pytest.mark.usefixtures("forked")  # their processes: tests.forks

# --- pi ----------------------------------------------------------------------------------------


def arctan_of_inverse(x: int) -> Decimal:
    total, power, k = Decimal(0), Decimal(1) / x, 0
    while abs(power) > Decimal("1e-45"):
        total += power / (2 * k + 1)
        power /= -x * x
        k += 1
    return total


def test_pi25_is_pi_to_25_digits() -> None:
    with localcontext() as context:
        context.prec = 50
        machin = 16 * arctan_of_inverse(5) - 4 * arctan_of_inverse(239)
        assert abs(machin - cpi.PI25) < Decimal("5e-25")
    assert len(cpi.PI25.as_tuple().digits) == 25
    assert 1.2e-16 < cpi.error_of(math.pi) < 1.3e-16  # a float constant would show 0


@pytest.mark.parametrize("split", cpi.SPLITS)
@pytest.mark.parametrize(("n", "engines"), [(4, 2), (10, 3), (2, 5), (1, 1), (100, 7)])
def test_every_interval_is_computed_once(n: int, engines: int, split: str) -> None:
    shares = [cpi.share(n, rank, engines, split) for rank in range(engines)]
    assert sorted(i for share in shares for i in share) == list(range(1, n + 1))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_spaced_shares_are_those_of_figure_5() -> None:
    assert [list(cpi.share(4, rank, 2)) for rank in range(2)] == [[1, 3], [2, 4]]
    assert [list(cpi.share(4, rank, 2, "blocks")) for rank in range(2)] == [[1, 2], [3, 4]]


@pytest.mark.parametrize("kernel", cpi.KERNELS)
@pytest.mark.parametrize("n", [1, 2, 10, 1000, 100_000])
def test_kernels_keep_the_bound_of_the_midpoint_rule(kernel: str, n: int) -> None:
    pi = cpi.KERNELS[kernel](n, range(1, n + 1))
    assert cpi.error_of(pi) <= cpi.error_bound(n) + n * 1e-16  # and rounding
    assert float(cpi.error_of(pi)) == pytest.approx(1 / (12 * n * n), rel=0.35)


def test_numpy_in_chunks_adds_every_interval_once() -> None:
    mine = cpi.share(1000, 1, 3)
    whole = cpi.area_python(1000, mine)
    for chunk in (1, 7, len(mine), len(mine) + 1):
        assert cpi.area_numpy(1000, mine, chunk) == pytest.approx(whole, rel=1e-13)
    assert cpi.area_numpy(10, range(1, 1)) == 0


def test_engine_counts_grow_to_all() -> None:
    assert cpi.engine_counts(1) == [1]
    assert cpi.engine_counts(4) == [1, 2, 3, 4]
    assert cpi.engine_counts(12) == [1, 2, 3, 4, 8, 12]
    assert cpi.engine_counts(16) == [1, 2, 3, 4, 8, 16]


# --- cpi on engines ----------------------------------------------------------------------------


def quietly_serve(sfm: Endpoint) -> None:
    try:
        cpi.serve(sfm)
    except (SFMError, ZeroDivisionError):
        pass  # reported to home, where the test expects it


@pytest.mark.parametrize("split", cpi.SPLITS)
def test_rows_from_the_engines_of_a_world(split: str, world: str) -> None:
    with serving(world, 3, quietly_serve) as home:
        rows = list(cpi.rows(home=home, intervals=(10, 1000), repeat=2, split=split))
        assert not home.peek()
    assert len(rows) == 2 * len(cpi.KERNELS) * 2 * 3
    for row in rows:
        assert row["error"] <= cpi.error_bound(row["n"])
        assert row["seconds"] > 0 and row["split"] == split
        assert row["efficiency"] == pytest.approx(row["speedup"] / row["engines"])
    # Rounds are interleaved: each measures everything once.
    first, second = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    for row, other in zip(first, second, strict=True):
        assert (row["round"], other["round"]) == (0, 1)
        assert all(row[key] == other[key] for key in ("n", "engines", "kernel"))


def test_rows_that_are_abandoned_let_the_engines_go(world: str) -> None:
    with serving(world, 2, quietly_serve) as home:
        rows = cpi.rows(home=home, intervals=(10,), kernels=("python",))
        assert next(rows)["n"] == 10
        rows.close()
        assert not home.peek()


def test_engines_that_take_no_part_are_let_go_too(world: str) -> None:
    with serving(world, 3, quietly_serve) as home:
        rows = list(cpi.rows(2, home=home, intervals=(10,), kernels=("python",), repeat=1))
        assert [row["engines"] for row in rows] == [1, 2]
        with pytest.raises(ValueError, match="choose 1 to 3"):
            next(cpi.rows(4, home=home))


def test_a_job_that_fails_reaches_home(monkeypatch: pytest.MonkeyPatch, world: str) -> None:
    monkeypatch.setitem(cpi.KERNELS, "python", lambda n, mine: 1 / 0)
    with serving(world, 1, quietly_serve) as home:
        with pytest.raises(SFMError, match="engine 0 stopped serving cpi: ZeroDivisionError"):
            list(cpi.rows(home=home, intervals=(10,), kernels=("python",)))


def test_rows_from_local_processes() -> None:
    rows = list(cpi.rows(2, intervals=(100,), repeat=1))
    assert [(row["kernel"], row["engines"]) for row in rows] == [
        ("python", 1), ("python", 2), ("numpy", 1), ("numpy", 2),
    ]  # fmt: skip
    assert all(row["error"] <= cpi.error_bound(100) for row in rows)


def fail_on_engine_1(sfm: Endpoint) -> None:
    if sfm.rank == 1:
        raise ZeroDivisionError("on purpose")
    sfm.recv(src="home")


def test_a_local_process_that_fails_is_named() -> None:
    with pytest.raises(ProcessFailed, match="on purpose") as failed:
        with local_engines(2, fail_on_engine_1) as home:
            home.recv(src=1)
    assert failed.value.rank == 1


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"engines": 0}, "cannot run on 0 engines"),
        ({"intervals": ()}, "at least 1 interval"),
        ({"intervals": (10, 0)}, "at least 1 interval"),
        ({"kernels": ("fortran",)}, "no kernel 'fortran'; there are python, numpy"),
        ({"split": "random"}, "no split 'random'; there are spaced, blocks"),
        ({"repeat": 0}, "repeat"),
    ],
)
def test_bad_arguments_start_nothing(wrong: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        next(cpi.rows(**wrong))  # type: ignore[arg-type]


# --- rows --------------------------------------------------------------------------------------


def test_table_aligns_numbers_right_and_text_left() -> None:
    text = table([{"name": "a", "n": 10, "t": 0.25}, {"name": "long", "n": 7, "t": None}])
    assert text.splitlines() == ["name   n     t", "----  --  ----", "a     10  0.25", "long   7"]
    assert table([]) == "(no rows)"


def test_rows_make_a_frame() -> None:
    rows = [{"n": 1, "error": 0.5}, {"n": 2, "error": 0.25}]
    data = frame(rows)
    assert list(data.columns) == ["n", "error"] and data.error.tolist() == [0.5, 0.25]


def test_machine_says_what_times_depend_on() -> None:
    facts = machine()
    assert facts["cores"] >= facts["usable_cores"] > 0
    assert facts["python"].startswith("CPython 3.")
    assert facts["numpy"] != "not installed"


# --- the command line --------------------------------------------------------------------------


def test_cpi_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    json_file, plot = tmp_path / "rows.json", tmp_path / "plot.svg"
    line = f"cpi --engines 2 --intervals 10,100 --repeat 1 --kernel python --json {json_file}"
    assert main([*line.split(), "--plot", str(plot)]) == 0
    printed = capsys.readouterr().out
    assert "cpu: " in printed and "speedup" in printed
    about, *rows, end = map(json.loads, json_file.read_text().splitlines())
    assert about["command"] == "cpi" and about["cores"] >= 1 and about["--kernel"] == "python"
    assert [(row["n"], row["engines"]) for row in rows] == [(10, 1), (10, 2), (100, 1), (100, 2)]
    assert (end["finished"], end["rows"]) == ("python", 4)
    assert plot.read_text().lstrip().startswith("<?xml")
