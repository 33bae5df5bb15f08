"""The benchmark of collectives. No test here looks at how long anything took."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from benchmarks import collectives
from benchmarks.__main__ import main

pytestmark = pytest.mark.usefixtures("forked")  # their processes: tests.forks

needs_mpi = pytest.mark.skipif(find_spec("mpi4py") is None, reason="mpi4py is not installed")


def test_every_call_is_measured_in_every_round() -> None:
    rows = list(collectives.rows(processes=(1, 3), mpi=False, repeat=2, seconds=1e-3))
    assert [(row["processes"], row["round"], row["call"]) for row in rows] == [
        (n, number, call) for n in (1, 3) for number in (0, 1) for call in collectives.CALLS
    ]
    assert all(row["mechanism"] == collectives.SFM and row["us"] > 0 for row in rows)


@needs_mpi
def test_mpi_takes_turns_with_sfm() -> None:
    rows = list(collectives.rows(processes=(2,), repeat=1, seconds=1e-3))
    assert [(row["call"], row["mechanism"]) for row in rows] == [
        (call, mechanism)
        for call in collectives.CALLS
        for mechanism in (collectives.SFM, collectives.MPI)
    ]


def row(call: str, processes: int, mechanism: str, us: float, number: int = 0) -> dict[str, Any]:
    about = {"call": call, "processes": processes, "mechanism": mechanism}
    return about | {"round": number, "us": us}


def test_targets_compare_medians_with_mpi4py() -> None:
    sfm, mpi = collectives.SFM, collectives.MPI
    rows = [
        row(collectives.BARRIER, 2, sfm, 9.0),
        row(collectives.BARRIER, 2, sfm, 1.0, 1),
        row(collectives.BARRIER, 2, sfm, 2.0, 2),
        row(collectives.BARRIER, 2, mpi, 4.0),
        row(collectives.BARRIER, 4, sfm, 6.0),
        row(collectives.BARRIER, 4, mpi, 10.0),
        row(collectives.BARRIER, 8, sfm, 1.0),
        row(collectives.BARRIER, 8, mpi, 10.0),
        row(collectives.ARRAY, 4, sfm, 10.0),
        row(collectives.ARRAY, 4, mpi, 10.0),
    ]
    tables = collectives.tables(rows)
    first = tables["Collectives (times in µs)"][0]
    assert (first["SFM us"], first["SFM fastest"], first["SFM / mpi4py"]) == (2.0, 1.0, 0.5)
    verdicts = {line["what"]: line for line in tables["Targets (times in µs)"]}
    assert verdicts["barrier, 2 processes"]["verdict"] == "met"
    assert verdicts["barrier, more processes"]["verdict"] == "missed by 20%"
    assert verdicts["barrier, more processes"]["at"] == "4 processes"
    assert verdicts["allreduce 1 MB"]["verdict"] == "met"
    assert verdicts["allreduce 8 B, 2 processes"]["verdict"] == "not measured"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"repeat": 0}, "at least 1"),
        ({"processes": ()}, "at least 1"),
        ({"processes": (0,)}, "at least 1"),
        ({"seconds": 0.0}, "more than 0"),
        ({"calls": ("fly",)}, "no call 'fly'; there are barrier"),
    ],
)
def test_bad_input_starts_nothing(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        next(collectives.rows(**options))


def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "rows.json"
    command = ["collectives", "--quick", "--repeat", "1", "--processes", "2", "--json", str(file)]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "allreduce 1 MB" in printed and "Targets" in printed
    assert '"call": "barrier"' in (text := file.read_text())

    monkeypatch.delattr(collectives, "driving")  # nothing is measured again
    assert main([*command, "--resume"]) == 0
    assert file.read_text() == text
    assert "to measure: 0 (" in (again := capsys.readouterr().out)
    assert again.partition("Collectives")[2] == printed.partition("Collectives")[2]
    assert main([*command, "--resume", "--quick", "--repeat", "2"]) == 1
    assert "--repeat was 1 and is 2" in capsys.readouterr().err
