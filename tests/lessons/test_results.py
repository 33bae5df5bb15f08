"""Rows are kept as they are measured, a stopped program goes on, and disturbed rows are marked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sfm_kernel.errors import SFMError
from sfm_kernel.lessons.measure import machine, results
from sfm_kernel.lessons.measure.results import Part, Results
from sfm_kernel.lessons.measure.rows import Row

PROGRAM = """
'''A program that can be stopped in its second part.'''
import argparse, functools, os, sys, time
from sfm_kernel.lessons.measure.command import add_program, run
from sfm_kernel.lessons.measure.results import Part
from sfm_kernel.lessons.measure.rows import Row

def rows(name):
    yield {"name": name, "round": 0}
    if name == "second" and "STOP" in os.environ:
        time.sleep(100)
    yield {"name": name, "round": 1}

def plan(options):
    return [Part(name, functools.partial(rows, name), 30, 2) for name in ("first", "second", "third")]

def summary(measured):
    return [{"measured": len(measured)}]

parser = argparse.ArgumentParser()
add_program(parser.add_subparsers(dest="command"), "fake", sys.modules["__main__"])
sys.exit(run(parser))
"""  # noqa: E501


def lines(file: Path) -> list[Row]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_program_keeps_its_rows_and_goes_on(
    number: signal.Signals, tmp_path: Path
) -> None:
    file = tmp_path / "rows.json"
    command = [sys.executable, "-c", PROGRAM, "fake", "--json", str(file)]
    with subprocess.Popen(
        command, env={**os.environ, "STOP": "1"}, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        before = list[str]()
        for line in program.stdout:
            before.append(line)
            if line.startswith("second | "):
                program.send_signal(number)
                break
        rest = program.stdout.read()
    assert "to measure: 3, rounds: 2, time: about 90 s\n  first\n  second\n" in "".join(before)
    assert program.returncode == 128 + number
    assert "measured\n--------\n       2" in rest  # the table of the first part, which is whole
    assert f"{file} has 3 rows; the same command with --resume measures the rest" in rest
    kept = lines(file)
    assert [row["part"] for row in kept if "part" in row] == ["first", "first", "second"]

    went_on = subprocess.run([*command, "--resume"], capture_output=True, text=True, check=True)
    assert f"to measure: 2 ({file} has 1 more), rounds: 2, time: about 60 s" in went_on.stdout
    shown = [line.split()[0] for line in went_on.stdout.splitlines() if " | " in line]
    assert shown == ["second", "second", "third", "third"]
    assert "measured\n--------\n       6" in went_on.stdout  # the lone row of "second" is replaced
    assert lines(file)[: len(kept)] == kept
    assert subprocess.run(command, capture_output=True).returncode == 1  # the file exists


def parts(*names: str) -> list[Part]:
    def rows(name: str) -> Iterator[Row]:
        yield {"name": name, "seconds": 1.0}

    return [Part(name, lambda name=name: rows(name), 1.0) for name in names]  # type: ignore[misc]


def test_only_comparable_results_are_gone_on_with(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    about = {"command": "fake", "--repeat": 5, "sizes": (1, 2), "host": "here", "time": "noon"}
    Results(file, about).measure(parts("a"))
    with pytest.raises(SFMError, match="exists: --resume goes on with it"):
        Results(file, about)
    later = Results(file, {**about, "time": "midnight"}, resume=True)
    assert later.finished == {"a"}
    with pytest.raises(SFMError, match=r"compared .* --repeat was 5 and is 9; host was 'here' and"):
        Results(file, {**about, "--repeat": 9, "host": "there"}, resume=True)
    for text in ("", "{}", '{\n  "rows": []\n}\n', "[]\n[]\n"):
        (tmp_path / "other.json").write_text(text)
        with pytest.raises(SFMError, match=r"other\.json .*give another name|Give another name"):
            Results(tmp_path / "other.json", about, resume=True)
        assert (tmp_path / "other.json").read_text() == text


def test_a_line_that_was_not_written_to_its_end_is_dropped(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    Results(file, {"command": "fake"}).measure(parts("a"))
    whole = file.read_text()
    file.write_text(whole + '{"part": "b", "na')
    again = Results(file, {"command": "fake"}, resume=True)
    assert file.read_text() == whole
    again.measure(parts("a", "b"))
    assert [row["name"] for row in again.rows()] == ["a", "b"]


def test_rows_that_other_programs_disturb_are_marked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    shares = iter((0.01, 0.375))
    monkeypatch.setattr(results.Others, "share", lambda others: next(shares))
    kept = Results(tmp_path / "rows.json", {})
    kept.measure(parts("quiet", "busy"))
    quiet, busy = capsys.readouterr().out.splitlines()
    assert quiet == "quiet | seconds 1, others_percent 1"
    assert busy == "busy | seconds 1, others_percent 37.5 (disturbed)"
    marked = {
        row["part"]: row["disturbed"] for row in lines(tmp_path / "rows.json") if "part" in row
    }
    assert marked == {"quiet": False, "busy": True}
    assert "1 of 2 rows were disturbed" in kept.doubts() and "38 %" in kept.doubts()


def test_others_are_not_this_program_and_its_children(monkeypatch: pytest.MonkeyPatch) -> None:
    before = machine._ticks_of_descendants()
    busy = "import time\nwhile time.process_time() < 0.2: pass"
    subprocess.run([sys.executable, "-c", busy], check=True)
    assert machine._ticks_of_descendants() - before >= 0.2 * os.sysconf("SC_CLK_TCK") - 1
    times = iter([(1000, 400), (1200, 450), (1200, 450)])
    monkeypatch.setattr(machine, "_times", lambda: next(times))
    monkeypatch.setattr(machine.Others, "SHORTEST", 0.0)
    others = machine.Others()
    assert others.share() == 0.25
    assert others.share() == 0.0  # no tick has passed
