"""The benchmark of pools. No test here looks at how long anything took."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from benchmarks import farm, pools
from benchmarks.__main__ import main
from sfm_kernel.errors import SFMError, pip_install

FAST = (pools.SFM, pools.EXECUTOR, pools.FUTURES)


def test_pools_take_turns_in_every_round() -> None:
    rows = list(farm.rows(tasks=(0, 1), pools=FAST, workers=2, repeat=2, seconds=1e-3))
    cells = [(pools.SFM, farm.DEFAULT)]
    cells += [(pool, chunk) for pool in FAST[1:] for chunk in (farm.DEFAULT, farm.CHUNKS)]
    assert [(row["round"], row["task_ms"], row["pool"], row["chunk"]) for row in rows] == [
        (number, ms, *cell) for number in (0, 1) for ms in (0, 1) for cell in cells
    ]
    assert all(row["us"] > 0 and row["workers"] == 2 and row["tasks"] >= 8 for row in rows)


def test_mpi4py_has_a_pool_on_our_launcher() -> None:
    rows = list(farm.rows(tasks=(0,), pools=(pools.MPI,), workers=2, repeat=1, seconds=1e-3))
    assert {row["pool"] for row in rows} == {pools.MPI}


@pytest.mark.jupyter
@pytest.mark.parametrize("pool", [pools.IPYPARALLEL, pools.DASK])
def test_pools_of_others(pool: str) -> None:
    if why := pools.absent(pool):
        pytest.skip(why)
    rows = list(farm.rows(tasks=(0,), pools=(pool,), workers=2, repeat=1, seconds=1e-3))
    assert [row["chunk"] for row in rows] == [farm.DEFAULT, farm.CHUNKS]


def row(pool: str, us: float, ms: int = 0, chunk: str = farm.DEFAULT) -> dict[str, Any]:
    about = {"task_ms": ms, "pool": pool, "chunk": chunk, "workers": 4, "tasks": 100}
    return about | {"round": 0, "us": us}


def test_targets_are_about_short_tasks_and_pools_as_they_are() -> None:
    measured = [row(pools.SFM, 2.0), row(pools.SFM, 4.0), row(pools.FUTURES, 6.0)]
    measured += [row(pools.FUTURES, 1.0, chunk=farm.CHUNKS), row(pools.EXECUTOR, 1.0)]
    measured += [row(pools.SFM, 9.0, ms=1), row(pools.DASK, 6.0, ms=1)]
    measured += [row(pools.SFM, 9.0, ms=100), row(pools.DASK, 6.0, ms=100)]
    listed, targets = farm.tables(measured).values()
    assert listed[0]["us"] == 3.0 and listed[0]["fastest"] == 2.0
    assert [(line["what"], line["target"], line["verdict"]) for line in targets] == [
        ("tasks of 0 ms", "≤ 1 × concurrent.futures", "met"),
        ("tasks of 0 ms", "stated, × concurrent.futures, chunks of 1/16 of all", ""),
        ("tasks of 1 ms", "≤ 1 × Dask", "missed by 50%"),
        ("tasks of 100 ms", "stated, × Dask", ""),
    ]


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(pools.PACKAGES, pools.DASK, "no_such_package>=1")
    told = farm.notes(argparse.Namespace(only=None))
    assert told == [f"Dask is left out, it is not installed: {pip_install('no_such_package>=1')}"]
    assert list(farm.rows(tasks=(0,), pools=(pools.DASK,), repeat=1)) == []


@pytest.mark.parametrize("wrong", [{"repeat": 0}, {"workers": 0}, {"seconds": 0}, {"tasks": (-1,)}])
def test_bad_arguments(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        list(farm.rows(**wrong))


def test_a_pool_that_returns_something_else_is_noticed() -> None:
    with pytest.raises(SFMError, match="wrong results"):
        pools.measure(lambda count, ms, chunk: [], 1, 0, 0)


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["farm", "--quick", "--only", "SFM farm,concurrent*"]) == 0
    shown = capsys.readouterr().out
    assert "Time a task (µs)" in shown and "tasks of 1 ms" in shown
