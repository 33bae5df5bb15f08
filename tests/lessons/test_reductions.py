"""Reductions: a row for each measurement, and what is drawn of them.

No test here looks at how long anything took.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import pytest

import sfm_kernel
from sfm_kernel.collectives import ALGORITHMS, Group
from sfm_kernel.errors import SFMError
from sfm_kernel.lessons import reductions
from sfm_kernel.lessons.__main__ import main
from sfm_kernel.lessons.reductions import work
from sfm_kernel.lessons.reductions.fit import BACK_TO_BACK, LogGP, Prices
from sfm_kernel.lessons.reductions.plots import Growth, Model, laws
from sfm_kernel.lessons.reductions.work import _Worlds as Worlds
from sfm_kernel.plots import still
from tests.lessons.engines import serving
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("forked")  # their processes: tests.forks

PROCESSES = (2, 4, 6, 8, 12, 16)

# --- the measurement ---------------------------------------------------------------------------


def test_every_algorithm_is_measured_through_both_transports() -> None:
    rows = list(reductions.rows(processes=(2, 3), model_sizes=(8, 4096), repeat=2, seconds=1e-3))
    reduced = [row for row in rows if row["algorithm"] != BACK_TO_BACK]
    for row in reduced:
        assert row["us"] > 0 and row["cpu_us"] >= 0 and row["switches"] >= 0
        assert row["cores"] > 0 and row["count"] >= reductions.FEWEST
    measured = {(row["transport"], row["algorithm"], row["processes"]) for row in reduced}
    assert measured == {
        (transport, algorithm, p)
        for transport, algorithms in reductions.USING.items()
        for algorithm in algorithms
        for p in (2, 3)
    }
    assert {row["algorithm"] for row in reduced} == set(ALGORITHMS["allreduce"])
    assert {row["bytes"] for row in reduced} == {8, 4096}
    floods = [row for row in rows if row["algorithm"] == BACK_TO_BACK]
    assert {(row["transport"], row["bytes"]) for row in floods} == {
        (transport, n) for transport in ("shm", "zmq") for n in (8, 4096)
    }
    # Rounds are interleaved: each measures everything once.
    cell = ("transport", "algorithm", "processes", "bytes")
    half = len(rows) // 2
    assert [row["round"] for row in rows] == [0] * half + [1] * half
    first, second = (
        [[row[key] for key in cell] for row in part] for part in (rows[:half], rows[half:])
    )
    assert first == second

    found = reductions.model(rows)
    assert found.message.points > 4 and found.flags is not None
    assert all(price >= 0 for price in found.message[:3])
    # Two numbers of processes are too few for a law.
    assert set(reductions.tables(rows)) == {
        "An allreduce of 8 B through shm, µs (medians)",
        "An allreduce of 8 B through zmq, µs (medians)",
        "An allreduce of 4,096 B through shm, µs (medians)",
        "An allreduce of 4,096 B through zmq, µs (medians)",
        "Processor time and switches of all processes",
        "Prices of the model",
    }


def test_processes_share_as_few_cores_as_they_are_told() -> None:
    before = os.sched_getaffinity(0)
    rows = list(
        reductions.rows(
            transports=("shm",), algorithms=("binomial",), processes=(2, 4, 6), cores=1,
            repeat=1, seconds=1e-3,
        )
    )  # fmt: skip
    assert os.sched_getaffinity(0) == before
    assert [(row["processes"], row["cores"]) for row in rows] == [(2, 1), (4, 1), (6, 1)]
    (line,) = reductions.tables(rows)["What the times follow"]
    assert line["fits better"] in ("log2", "linear")
    assert {row["messages"] for row in reductions.summary(rows)} == {2, 6, 10}


def test_engines_of_a_notebook_are_measured_too(world: str) -> None:
    wanted: dict[str, Any] = {"transports": ("shm",), "algorithms": ("linear",), "repeat": 1}
    with serving(world, 3, reductions.serve) as home:  # one engine takes no part
        rows = list(reductions.rows(home=home, processes=(2,), seconds=1e-3, **wanted))
        assert [(row["algorithm"], row["processes"]) for row in rows] == [("linear", 2)]
        with pytest.raises(ValueError, match="more than the 3 engines"):
            next(reductions.rows(home=home, processes=(4,), **wanted))
        with pytest.raises(ValueError, match="only for local processes"):
            next(reductions.rows(home=home, processes=(2,), cores=1, **wanted))


def test_a_wrong_sum_is_noticed(monkeypatch: pytest.MonkeyPatch, world: str) -> None:
    def forgets_one(self: Any, value: Any, op: Any, *, out: Any, algorithm: str) -> None:
        out[...] = value

    monkeypatch.setattr(Group, "allreduce", forgets_one)
    failures: list[SFMError] = []

    def serve(sfm: sfm_kernel.Endpoint) -> None:
        try:
            reductions.serve(sfm)
        except SFMError as error:
            failures.append(error)

    with serving(world, 2, serve) as home:
        with pytest.raises(SFMError, match=r"2 processes added 3\.0 up to \[1\.\]"):
            list(reductions.rows(home=home, transports=("shm",), processes=(2,), repeat=1))
        wait_until(lambda: len(failures) == 2)


def test_tcp_is_not_taken_for_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFM_TRANSPORT", "zmq")
    with pytest.raises(SFMError, match="through zmq, not shm"):
        list(reductions.rows(transports=("shm",), processes=(2,), repeat=1))


def test_nobody_waits_for_an_engine_that_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def serve(sfm: sfm_kernel.Endpoint) -> None:
        endpoint = Worlds.endpoint

        def second_fails(worlds: Worlds, transport: str, processes: int) -> sfm_kernel.Endpoint:
            if sfm.rank == 1:
                raise ValueError("out of order")
            wait_until(lambda: all(member.rank != 1 for member in sfm.members()))
            return endpoint(worlds, transport, processes)

        Worlds.endpoint = second_fails  # type: ignore[method-assign]
        work.serve(sfm)

    monkeypatch.setattr(reductions, "serve", serve)
    monkeypatch.setattr(reductions, "START_SECONDS", 10.0)
    with pytest.raises(SFMError, match="out of order") as caught:
        list(reductions.rows(transports=("shm",), processes=(2,), repeat=1))
    assert "do not answer" not in str(caught.value.__context__)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"repeat": 0}, "at least 1"),
        ({"seconds": 0}, "above 0"),
        ({"processes": ()}, "at least 2 each"),
        ({"processes": (1, 2)}, "at least 2 each"),
        ({"sizes": ()}, "at least 8 bytes"),
        ({"sizes": (12,)}, "whole floats"),
        ({"model_sizes": (0,)}, "at least 8 bytes"),
        ({"transports": ("pigeon",)}, "no transport 'pigeon'; there are shm, zmq"),
        ({"algorithms": ("guess",)}, "no algorithm 'guess'; there are .*binomial"),
        ({"algorithms": ("flags",), "transports": ("zmq",)}, "measured with shm alone"),
        ({"cores": 0}, "cores 0: 1 to "),
        ({"cores": 10_000}, "cores 10000: 1 to "),
    ],
)
def test_bad_arguments_start_nothing(
    wrong: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reductions, "driving", None)
    with pytest.raises(ValueError, match=says):
        next(reductions.rows(**wrong))


# --- plots -------------------------------------------------------------------------------------


def plotted() -> list[dict[str, Any]]:
    return [
        {
            "algorithm": algorithm, "transport": transport, "processes": p, "cores": 2, "bytes": 8,
            "round": 0, "us": 10.0 * (index + 1) * p,
        }
        for transport, algorithms in reductions.USING.items()
        for index, algorithm in enumerate(algorithms)
        for p in PROCESSES
    ]  # fmt: skip


def test_an_algorithm_has_one_colour_whatever_the_transport() -> None:
    figure = still(
        plotted(), *[Growth(transport, PROCESSES, cores=2) for transport in reductions.TRANSPORTS]
    )
    colours = [{text.get_text(): text.get_color() for text in axes.texts} for axes in figure.axes]
    for algorithm in reductions.USING["zmq"]:
        assert colours[0][algorithm] == colours[1][algorithm]
    assert len(set(colours[0].values())) == 1 + len(reductions.USING["shm"])
    assert "cores: 2" in colours[0]


def test_both_laws_are_drawn_with_their_residuals() -> None:
    figure = laws(plotted(), "shm")
    shown = [axes for axes in figure.axes if axes.get_title()]
    assert [axes.get_title() for axes in shown] == list(reductions.USING["shm"])
    for axes in shown:
        dots, log2, linear = axes.lines
        assert list(dots.get_xdata()) == list(PROCESSES)
        assert (log2.get_linestyle(), linear.get_linestyle()) == ("--", ":")
        first, second = [text.get_text() for text in axes.get_legend().get_texts()]
        assert first.startswith("log2: ±") and second == "linear: ±0 µs (0 %)"


def test_the_model_is_drawn_as_a_model_and_measurements_as_dots() -> None:
    model = LogGP(Prices(step=40.0, gap=3.0, byte=0.002, points=0, relative=0.0))
    (axes,) = still(plotted(), Model(model, cores=2)).axes
    assert "dashed: model;  dots: measured" in {text.get_text() for text in axes.texts}
    dashed = [line for line in axes.lines if line.get_linestyle() == "--"]
    assert len(dashed) == len(model.algorithms())
    for line, algorithm in zip(dashed, model.algorithms(), strict=True):
        assert line.get_xdata()[-1] == 2**20
        assert line.get_ydata()[-1] == pytest.approx(model.us(algorithm, 2**20, 8))
    full = [
        line for line in axes.lines
        if line.get_linestyle() != "--" and line.get_markerfacecolor() != "white"
    ]  # fmt: skip
    empty = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
    assert all(list(line.get_xdata()) == [2] for line in full) and len(full) == len(dashed)
    assert all(list(line.get_xdata()) == list(PROCESSES[1:]) for line in empty)
    assert len(empty) == len(dashed)


# --- the command line --------------------------------------------------------------------------


def options(*line: str) -> Any:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeat", type=int)
    parser.add_argument("--quick", action="store_true")
    reductions.add_arguments(parser)
    return parser.parse_args(line)


def test_a_quick_run_prints_and_draws(tmp_path: Path) -> None:
    asked = options("--quick", "--repeat", "1", "--only", "bin*,fl*", "--processes", "2,3,4")
    rows = [row for part in reductions.plan(asked) for row in part.rows()]
    assert {row["algorithm"] for row in rows} == {"binomial", "flags", BACK_TO_BACK}
    assert {row["transport"] for row in rows} == {"shm", "zmq"}
    assert len(reductions.plot(rows).axes) == 3
    json.dumps(rows, allow_nan=False)
    titles = reductions.tables(rows)
    assert {"What the times follow", "Prices of the model"} <= set(titles)
    (over_tcp, tree) = titles["Prices of the model"]
    assert over_tcp["points"] >= 6 and tree["prices of"] == "flags"


@pytest.mark.parametrize("cores", [1, 2, 8])
def test_the_size_that_was_asked_for_is_drawn(cores: int) -> None:
    """Whether or not there are cores for the model's sizes on as many processes."""
    algorithms, transports = ALGORITHMS["allreduce"], reductions.TRANSPORTS
    asked = reductions._cells(
        transports, algorithms, (2, 4, 8), (65536, 1024), reductions.MODEL_SIZES, cores
    )
    rows = [cell.row() | {"cores": cores, "us": float(cell.nbytes)} for cell in asked]
    assert min(row["bytes"] for row in rows) == 8
    figure = reductions.plot([row | {"cpu_us": 1.0, "switches": 0} for row in rows])
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "shm: µs for 64 kB", "zmq: µs for 64 kB", "zmq: µs for 64 kB",
    ]  # fmt: skip
    drawn = [line for line in figure.axes[0].lines if list(line.get_xdata()) == [2, 4, 8]]
    assert drawn and all(set(line.get_ydata()) == {65536} for line in drawn)


def test_measurements_without_two_processes_have_no_model() -> None:
    rows = [row | {"cores": 2} for row in plotted() if row["processes"] > 2]
    assert "Prices of the model" not in reductions.tables(rows)
    assert len(reductions.plot(rows).axes) == 2


def test_a_command_line_that_measures_nothing_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["reductions", "--only", "flags", "--transport", "zmq"]) == 1
    refused = capsys.readouterr().err
    assert refused.startswith("reductions: flags") and "measured with shm alone" in refused
    assert main(["reductions", "--cores", "10000"]) == 1
    assert "reductions: cores 10000: 1 to " in capsys.readouterr().err
