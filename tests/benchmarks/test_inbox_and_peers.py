"""The benchmarks of full inboxes, of many processes, and of the targets.

No test here looks at how long anything took.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import sfm_kernel
from benchmarks import inbox, peers, targets
from benchmarks.__main__ import main
from benchmarks.memory import occupied, talk_to_all
from benchmarks.patterns import PATTERNS
from benchmarks.verdict import Pair, verdict
from sfm_kernel.lessons.measure import launched
from sfm_kernel.lessons.pingpong.messages import THREE

pytestmark = pytest.mark.usefixtures("forked")  # their processes: tests.forks

needs_mpi = pytest.mark.skipif(find_spec("mpi4py") is None, reason="mpi4py is not installed")

SHORT: dict[str, Any] = {"seconds": 1e-3, "blocked_seconds": 0.05, "calls": 3}

# --- inbox -------------------------------------------------------------------------------------


def test_inbox_measures_every_call_at_every_depth() -> None:
    rows = list(inbox.rows(depths=(0, 30), repeat=2, count=4, mpi=False))
    timed = [row for row in rows if row["call"] != inbox.MEMORY]
    assert [(row["depth"], row["round"], row["call"]) for row in timed] == [
        (depth, number, call) for depth in (0, 30) for number in (0, 1) for call in inbox.CALLS
    ]
    assert all(row["us"] > 0 for row in timed)
    (memory,) = [row for row in rows if row["call"] == inbox.MEMORY]
    # An inbox accounts for what a message holds: 128 bytes of data and some for the rest.
    assert memory["depth"] == 30 and 128 < memory["accounted_each"] < 1000
    ratios = {(row["call"], row["depth"]): row["ratio"] for row in inbox.summary(rows)}
    assert len(ratios) == 2 * len(inbox.CALLS)
    assert all(ratio == 1 for (_, depth), ratio in ratios.items() if depth == 0)


@needs_mpi
def test_inbox_measures_mpi_beside_it() -> None:
    calls = ("recv(tag=x)",)
    rows = list(inbox.rows(depths=(0, 20), calls=calls, repeat=1, count=3))
    timed = [(row["call"], row["depth"]) for row in rows if row["call"] != inbox.MEMORY]
    assert timed == [(call, depth) for depth in (0, 20) for call in (*calls, inbox.MPI)]


@pytest.mark.parametrize(
    "wrong",
    [{"repeat": 0}, {"count": 0}, {"depths": ()}, {"depths": (-1,)}, {"calls": ("shout()",)}],
)
def test_inbox_starts_nothing_with_bad_arguments(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"at least|there are"):
        next(inbox.rows(**wrong))


# --- peers -------------------------------------------------------------------------------------


def test_peers_measures_patterns_waiting_and_memory() -> None:
    rows = list(peers.rows(processes=(2, 3), repeat=2, mpi=False, **SHORT))
    patterns = [(row["processes"], row["round"], row["what"]) for row in rows if "us" in row][:8]
    assert patterns == [(n, number, what) for n in (2, 3) for number in (0, 1) for what in PATTERNS]
    assert all(row["us"] > 0 for row in rows if "us" in row)
    shares = {row["what"]: row["percent"] for row in rows if "percent" in row}
    assert shares.keys() == {"blocked in recv()", "blocked in recv(src=…)"}
    memory = {row["mechanism"]: row["bytes"] for row in rows if "bytes" in row}
    assert memory.keys() == peers.WORLDS.keys() and all(n > 4096 for n in memory.values())
    assert sum(row["what"] == peers.CALLBACK for row in rows) == 2
    assert set(peers.tables(rows)) == {"One message, µs", "Waiting", "Shared memory"}


@needs_mpi
def test_peers_measures_mpi_in_turn() -> None:
    rows = list(peers.rows(processes=(3,), repeat=1, **SHORT))
    timed = [(row["what"], row["mechanism"]) for row in rows if row["processes"] == 3]
    assert timed == [(what, mechanism) for what in PATTERNS for mechanism in ("SFM", "mpi4py")]
    (line, *_) = peers.tables(rows)["One message, µs"]
    assert line["SFM / mpi4py"] == line["SFM"] / line["mpi4py"]


def test_shared_memory_is_counted_once_and_with_rings_that_have_no_name() -> None:
    def of_one(sfm: sfm_kernel.Endpoint) -> tuple[int, int]:
        nbytes = talk_to_all(sfm)
        files = occupied(sfm.folder)
        again = files | occupied(sfm.folder)
        return nbytes, sum(again.values())

    whole, seen = sfm_kernel.run(of_one, 3)[0]
    # Rank 0 sees the folder and its own four rings; the ring between the others is missing.
    assert 0 < seen < whole


@pytest.mark.parametrize(
    "wrong",
    [{"repeat": 0}, {"processes": ()}, {"processes": (1, 2)}, {"calls": 0}, {"seconds": 0}],
)
def test_peers_starts_nothing_with_bad_arguments(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"at least|above 0"):
        next(peers.rows(**wrong))


# --- targets -----------------------------------------------------------------------------------


def test_the_pair_that_is_furthest_from_its_target_decides() -> None:
    pairs = [Pair("small", 1.0, 4.0, 1.0, 2.0), Pair("large", 9.0, 10.0, 6.0, 10.0)]
    line = verdict("a message", 0.5, "MPI", pairs)
    assert (line["target"], line["at"], line["ratio"]) == ("≤ 0.5 × MPI", "large", 0.9)
    assert line["by_fastest"] == 0.6 and line["verdict"] == "missed by 80%"
    assert verdict("a message", 0.9, "MPI", pairs)["verdict"] == "met"
    assert verdict("a message", None, "MPI", pairs)["verdict"] == ""
    assert verdict("a message", 0.9, "MPI", [])["verdict"] == "not measured"


def row(benchmark: str, **columns: Any) -> dict[str, Any]:
    return {"part": benchmark, "round": 0, **columns}


def pingpong_row(benchmark: str, message: str, mechanism: str, latency: float) -> dict[str, Any]:
    return row(
        benchmark, message=message, kind="", bytes=128, mechanism=mechanism, route="r",
        latency_us=latency, fastest_us=latency, bandwidth_mbit_s=1.0,
    )  # fmt: skip


def test_every_target_is_in_the_table_with_its_figures() -> None:
    measured = [
        pingpong_row("tracing", THREE, "SFM w/Q", 1.03),
        pingpong_row("tracing", THREE, "SFM w/Q untraced", 1.0),
        *[
            pingpong_row("pingpong", message, mechanism, latency)
            for message in (THREE, "bytes 64 kB", "array 16 MB")
            for mechanism, latency in {
                "SFM w/Q": 1.0, "mpi4py pickled": 4.0, "mpi4py buffers": 0.9,
                "SFM w/Q zmq": 20.0, "pyzmq tcp": 10.0, "pyzmq tcp curve": 25.0,
            }.items()
        ],
        row("inbox", call="recv(tag=x)", depth=0, us=2.0),
        row("inbox", call="recv(tag=x)", depth=100_000, us=4.0),
        row("hop", what="one way", mechanism="C", bytes=8, latency_us=0.4, fastest_us=0.4),
        row("busy", busy=1, what="round trips", processes=4, mechanism="SFM", us=1.0),
        row("busy", busy=1, what="round trips", processes=4, mechanism="mpi4py", us=4.0),
        *[
            row("busy", busy=1) | pingpong_row("busy", THREE, mechanism, latency)
            for mechanism, latency in {"SFM w/Q": 1.0, "mpi4py pickled": 1.25}.items()
        ],
        row("peers", what="round trips", processes=8, mechanism="SFM", us=1.0),
        row("peers", what="round trips", processes=8, mechanism="mpi4py", us=10.0),
        row("peers", what="blocked in recv()", processes=2, mechanism="SFM", percent=0.05),
        row("peers", what="blocked in recv()", processes=2, mechanism="mpi4py", percent=100.0),
        row("peers", what="callback", processes=2, mechanism="SFM", us=90.0, fastest_us=30.0),
        row("peers", what="shared memory", processes=4, mechanism="4 engines", bytes=8 << 20),
    ]  # fmt: skip
    said = {(line["what"], line["target"]): line["verdict"] for line in targets.summary(measured)}
    assert said == {
        ("3 attributes, one way", "≤ 0.5 × mpi4py pickled"): "met",
        ("3 attributes, one way: about 1 µs", "≤ 1.5 × 1 µs"): "met",
        ("128 B … 64 kB", "≤ 0.7 × mpi4py pickled"): "met",
        ("128 B … 64 kB", "≤ 1.2 × mpi4py buffers"): "met",
        ("array of 1 … 64 MB", "≤ 1 × mpi4py buffers"): "missed by 11%",
        ("array of 1 … 64 MB", "≤ 0.1 × mpi4py pickled"): "missed by 150%",
        ("3 attributes, µs above C's hop of 8 B", "≤ 1 × 0.5 µs"): "missed by 20%",
        ("3 attributes, beside 1 that compute", "≤ 0.7 × mpi4py pickled"): "missed by 14%",
        ("bytes 64 kB, beside 1 that compute", "stated, × mpi4py pickled"): "not measured",
        ("round trips, beside 1 that compute", "stated, × mpi4py"): "",
        ("over zmq, encrypted, small", "stated, × pyzmq tcp"): "",
        ("over zmq, encrypted, most", "stated, × pyzmq tcp"): "",
        ("over zmq, both encrypted", "≤ 1.2 × pyzmq tcp curve"): "met",
        ("recv(tag=x) behind unmatched", "≤ 1.5 × empty inbox"): "missed by 33%",
        ("mpi4py recv(tag=x) behind unmatched", "stated, × empty inbox"): "not measured",
        ("round trips, crowded", "≤ 0.5 × mpi4py"): "met",
        ("many to one, crowded", "≤ 0.5 × mpi4py"): "not measured",
        ("blocked in recv, % of a core", "≤ 1 × 0.1 %"): "met",
        ("trace and state recording", "≤ 1.05 × untraced"): "met",
        ("callback, µs after the send", "≤ 1 × 60 µs"): "missed by 50%",
        ("MB of an engine with 3 peers", "≤ 1 × 4 MB"): "met",
        ("MB of 8 engines and a notebook", "≤ 1 × 64 MB"): "not measured",
    }


# --- the command line --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["inbox", "peers", "targets"])
def test_quick_runs_without_mpi(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(launched, "find_spec", lambda name: None)
    file = tmp_path / "rows.json"
    assert main([name, "--quick", "--repeat", "1", "--json", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "mpi4py is left out" in printed
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert {row["part"] for row in lines if "part" in row} == {
        line["finished"] for line in lines if "finished" in line
    }
    assert "mpi4py recv" not in printed or name == "targets"
    if name == "targets":
        assert "not measured" in printed and "trace and state recording" in printed


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("inbox --depths 10,many", "'many' is not a whole number"),
        ("peers --processes 0", "must be at least 1"),
        ("targets --repeat 0", "must be at least 1"),
    ],
)
def test_bad_values_are_refused(line: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as status:
        main(line.split())
    assert status.value.code == 2
    assert says in capsys.readouterr().err
