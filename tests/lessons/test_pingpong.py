"""Ping-pong: every mechanism carries every message, and what was sent comes back.

No test here looks at how long anything took.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfm_kernel.errors import SFMError
from sfm_kernel.lessons import pingpong
from sfm_kernel.lessons.__main__ import main
from sfm_kernel.lessons.measure import launched
from sfm_kernel.lessons.measure.arguments import chosen
from sfm_kernel.lessons.pingpong import MECHANISMS, PACKAGES
from sfm_kernel.lessons.pingpong.messages import MESSAGES, SIZES, THREE, attributes_of, same

pytestmark = pytest.mark.usefixtures("forked")  # their processes: tests.forks

BETWEEN_ENGINES = [mechanism for mechanism in MECHANISMS if mechanism not in PACKAGES]
SMALL = (THREE, "bytes 128 B", "array 8 B", "array 64 kB")

needs_mpi = pytest.mark.skipif(find_spec("mpi4py") is None, reason="mpi4py is not installed")
RANKS = "sfm_kernel.lessons.ranks"


def test_every_mechanism_between_engines_carries_every_kind_of_message() -> None:
    rows = list(pingpong.rows(messages=SMALL, mechanisms=BETWEEN_ENGINES, repeat=2, count=3))
    wanted = [(m, how) for m in SMALL for how in BETWEEN_ENGINES if pingpong.fits(how, m)]
    assert (THREE, "sockets") not in wanted and ("array 8 B", "SFM w/Q untraced") not in wanted
    # Rounds are interleaved: each takes every message through all mechanisms.
    assert [(row["message"], row["mechanism"]) for row in rows] == 2 * wanted
    assert [row["round"] for row in rows] == [0] * len(wanted) + [1] * len(wanted)
    assert all(0 < row["fastest_us"] <= row["latency_us"] for row in rows)
    assert all(row["count"] == 3 for row in rows)
    routes = {row["mechanism"]: row["route"] for row in rows}
    assert routes == {
        "sockets": "tcp", "pickle": "tcp", "SFM": "tcp",
        "SFM w/Q": "shm", "SFM w/Q untraced": "shm",
        "SFM w/Q zmq": "zmq",
        "pyzmq tcp": "tcp", "pyzmq tcp curve": "tcp encrypted", "pyzmq ipc": "ipc",
        "unix sockets": "unix", "unix pickle": "unix", "Pipe": "unix",
    }  # fmt: skip


def test_large_messages_come_back_too() -> None:
    messages = ("bytes 1 MB", "array 1 MB")
    rows = list(
        pingpong.rows(messages=messages, mechanisms=BETWEEN_ENGINES, repeat=1, seconds=1e-6)
    )
    assert all(row["count"] == pingpong.FEWEST for row in rows)
    assert {row["mechanism"] for row in rows} == {*BETWEEN_ENGINES} - {"SFM w/Q untraced"}
    assert {row["bytes"] for row in rows} == {1 << 20}


@needs_mpi
def test_mpi_plays_between_its_own_processes() -> None:
    mechanisms = ("mpi4py pickled", "mpi4py buffers")
    rows = list(pingpong.rows(messages=SMALL, mechanisms=mechanisms, repeat=1, count=2))
    wanted = [(m, how) for m in SMALL for how in mechanisms if pingpong.fits(how, m)]
    assert [(row["message"], row["mechanism"]) for row in rows] == wanted
    assert all(row["route"] for row in rows)


@pytest.mark.jupyter
def test_ipyparallel_pushes_and_pulls() -> None:
    messages = (THREE, "array 128 B", "bytes 1 MB")
    rows = list(pingpong.rows(messages=messages, mechanisms=("ipyparallel",), repeat=1, count=1))
    assert [row["message"] for row in rows] == [THREE, "array 128 B"]  # 1 MB would take long


# --- what is sent ------------------------------------------------------------------------------


def test_messages_have_the_size_that_their_name_says() -> None:
    for name, nbytes in MESSAGES.items():
        if nbytes <= SIZES["1 MB"]:
            assert memoryview(attributes_of(name)["data"]).nbytes == nbytes
    assert len(MESSAGES) == 2 * len(SIZES) + 1


def frozen(array: Any) -> Any:
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("message", "opened", "good"),
    [
        (THREE, ("result", 7, bytes(128)), True),
        (THREE, ("result", 8, bytes(128)), False),
        ("bytes 8 B", bytes(8), True),
        ("bytes 8 B", bytearray(8), True),
        ("bytes 8 B", bytes(7) + b"x", False),
        ("array 128 B", np.arange(16.0), True),
        ("array 128 B", np.ones(16), False),
        ("array 128 B", frozen(np.arange(16.0)), False),  # the receiver's own, and writable
    ],
)
def test_the_returned_message_is_compared(message: str, opened: Any, good: bool) -> None:
    assert same(opened, message) is good


def test_names_are_chosen_by_patterns() -> None:
    known = ["SFM", "SFM w/Q", "Pipe"]
    assert chosen(None, known, "x") == known
    assert chosen(["pipe", "sfm*"], known, "x") == known  # in their own order, any case
    assert chosen(["SFM"], known, "x") == ["SFM"]
    with pytest.raises(ValueError, match="no x 'nothing'; there are SFM, SFM w/Q, Pipe"):
        chosen(["SFM", "nothing"], known, "x")


# --- what is not there -------------------------------------------------------------------------


def test_a_peer_that_is_not_installed_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(launched, "find_spec", lambda name: None)
    line = "pingpong --only mpi4py*,Pipe --messages bytes?8?B --repeat 1 --count 1"
    assert main(line.split()) == 0
    printed = capsys.readouterr().out
    assert "mpi4py is left out, it is not installed: " in printed
    assert "-m pip install 'mpi4py>=" in printed
    assert "Pipe" in printed and "mpi4py pickled" not in printed


def test_without_mpiexec_mpi_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launched, "find_spec", lambda name: object())
    monkeypatch.setattr(launched, "beside", lambda tool: None)
    assert "there is no mpiexec" in str(launched.absent("mpi4py"))
    assert launched.absent("ipyparallel") is None
    assert pingpong.available(["SFM", "mpi4py buffers"]) == ["SFM"]


@pytest.mark.parametrize("command", ["raise SystemExit('no MPI today')", "pass"])
def test_a_crew_that_does_not_start_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str
) -> None:
    mpiexec = tmp_path / "mpiexec"
    mpiexec.write_text(f"#!/usr/bin/env python3\n{command}\n")
    mpiexec.chmod(0o755)
    monkeypatch.setattr(launched, "beside", lambda tool: str(mpiexec))
    with pytest.raises(SFMError, match="mpi4py did not start") as failed:
        launched.ranks("mpi4py", 2, RANKS)
    assert ("no MPI today" in str(failed.value)) == ("no MPI" in command)


@needs_mpi
def test_a_job_that_fails_in_a_crew_is_reported() -> None:
    with launched.ranks("mpi4py", 2, RANKS) as ranks:
        with pytest.raises(SFMError, match=r"mpi4py failed: KeyError\('no such thing'\)"):
            ranks.ask("pingpong", mechanism="no such thing", message=THREE, count=1, warm_up=0)
        with pytest.raises(SFMError, match=r"mpi4py (failed|ended)"):  # and is not asked again
            ranks.ask("pingpong", mechanism="mpi4py pickled", message=THREE, count=1, warm_up=0)


# --- rows --------------------------------------------------------------------------------------


def row(message: str, mechanism: str, number: int, latency: float) -> dict[str, Any]:
    return {
        "message": message, "bytes": 128, "mechanism": mechanism, "route": "r", "round": number,
        "latency_us": latency, "fastest_us": latency / 2, "bandwidth_mbit_s": 1 / latency,
    }  # fmt: skip


def test_tables_show_the_paper_beside_it_and_ratios_of_medians() -> None:
    measured = [
        row(message, mechanism, number, latency)
        for message in ("bytes 128 B", THREE)
        for mechanism, latencies in {
            "SFM w/Q": (1.0, 2.0, 9.0), "SFM w/Q zmq": (8.0, 8.0, 8.0),
            "mpi4py pickled": (4.0, 4.0, 5.0),
        }.items()
        for number, latency in enumerate(latencies)
    ]  # fmt: skip
    tables = pingpong.tables(measured)
    then_and_now = tables["Table 2, then and now"]
    assert [(line["mechanism"], line["paper_2007_us"]) for line in then_and_now] == [
        ("SFM w/Q", 97), ("SFM w/Q zmq", 97),
    ]  # fmt: skip
    assert (then_and_now[0]["latency_us"], then_and_now[0]["fastest_us"]) == (2.0, 0.5)
    assert [line["SFM / mpi4py pickled"] for line in tables["Ratios of medians"]] == [0.5, 0.5]
    assert tables["One way as over a network, µs (medians)"] == [
        {"message": "bytes 128 B", "SFM w/Q zmq": 8.0}, {"message": THREE, "SFM w/Q zmq": 8.0},
    ]  # fmt: skip


def test_the_papers_bandwidths_are_one_way_and_in_binary_megabits() -> None:
    for message in ("bytes 16 kB", "bytes 64 kB"):
        for figures in pingpong.PAPER.values():
            microseconds, bandwidth = figures[message]
            computed = 8 * MESSAGES[message] / (microseconds * 1e-6) / pingpong.MEGABIT
            assert computed == pytest.approx(bandwidth, rel=0.005)


@pytest.mark.parametrize(
    "wrong",
    [
        {"repeat": 0},
        {"count": 0},
        {"seconds": 0.0},
        {"messages": ("a letter",)},
        {"mechanisms": ("pigeons",)},
    ],
)
def test_bad_arguments_start_nothing(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"above 0|there are"):
        next(pingpong.rows(**wrong))


def test_the_quick_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rows.json"
    assert (
        main(["pingpong", "--quick", "--repeat", "1", "--seconds", "1e-3", "--json", str(file)])
        == 0
    )
    printed = capsys.readouterr().out
    for title in ("Table 2, then and now", "One way within a machine", "Ratios of medians"):
        assert title in printed
    rows = [row for row in map(json.loads, file.read_text().splitlines()) if "part" in row]
    assert {row["message"] for row in rows} == set(pingpong.QUICK_MESSAGES)
    assert len(rows) == len(pingpong.summary(rows))


DRIVER = """
from sfm_kernel.lessons.measure.launched import ranks

with ranks("mpi4py", 2, "sfm_kernel.lessons.ranks") as both:
    print(both._stderr.parent, flush=True)
    mechanism, message = "mpi4py pickled", "bytes 8 B"
    both.ask("pingpong", mechanism=mechanism, message=message, count=10**9, warm_up=0)
"""


@needs_mpi
def test_a_crew_ends_with_its_driver_even_in_a_job() -> None:
    driver = subprocess.Popen([sys.executable, "-c", DRIVER], stdout=subprocess.PIPE)
    with driver:
        assert driver.stdout is not None
        folder = driver.stdout.readline().decode().strip()
        driver.kill()
    shutil.rmtree(folder)  # a killed process cannot remove it
    # A check after every test makes sure that no process is left.
