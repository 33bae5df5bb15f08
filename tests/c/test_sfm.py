"""sfm.h: C programs in one world with Python."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel.errors import PeerLost
from sfm_kernel.observe import snapshot
from sfm_kernel.observe.deadlocks import DeadlockMonitor, end_calls
from tests.c.building import INCLUDE, PROGRAMS, program
from tests.waiting import wait_until

PATIENCE = 60.0


@pytest.fixture
def world() -> str:
    return f"c-{uuid.uuid4().hex[:12]}"


@contextmanager
def running(name: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A C program, which is killed at the end if it has not ended."""
    words = [str(program(name)), *arguments]
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def outcome(process: subprocess.Popen[str], status: int = 0) -> str:
    """The program's output; the program must end with this status, and without complaints."""
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == status, (out, err)
    assert not err
    return out


def ran(name: str, *arguments: str) -> str:
    with running(name, *arguments) as process:
        return outcome(process)


def shown(sfm: sfm_kernel.Endpoint, name: str) -> dict[str, Any]:
    """The process as observers see it; empty if they do not see it."""
    processes = snapshot(sfm.folder)["processes"]
    return next((process for process in processes if process["name"] == name), {})


# ---- the header ----


def example() -> str:
    """The program in the header's first comment."""
    text = (INCLUDE / "sfm.h").read_text()
    comment = text[: text.index("*/")]
    lines = [line[3:] for line in comment.splitlines() if line.startswith(" *     ")]
    return "\n".join(line.removeprefix("    ") for line in lines) + "\n"


def test_the_example_in_the_header_runs() -> None:
    done = subprocess.run(
        [program("example.c", example())], capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello from me\n", "")


@pytest.mark.parametrize("dialect", ["c11", "c17", "c++11", "c++17"])
def test_the_header_stands_alone(dialect: str) -> None:
    language = "c++" if "+" in dialect else "c"
    words = ["cc", f"-std={dialect}", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wconversion"]
    words += ["-fsyntax-only", "-x", language, str(INCLUDE / "sfm.h")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    assert "pragma" not in done.stderr and done.returncode == 0, done.stderr


# ---- exchange ----


def test_values_go_to_c_and_back_as_they_are(world: str) -> None:
    values: dict[str, Any] = {
        "small": -5,
        "large": 2**63 - 1,
        "real": 0.1,
        "endless": float("inf"),
        "text": "Grüße",
        "long_text": "ä" * 5000,
        "empty": "",
        "raw": b"\0\xff",
        "long_raw": bytes(range(256)) * 50,
        "nothing": b"",
        "vector": np.arange(5, dtype=np.int16),
        "matrix": np.linspace(0, 1, 12).reshape(3, 4),
        "cube": np.ones((2, 3, 4), dtype=np.complex64) * 1j,
        "truths": np.array([True, False]),
        "hollow": np.zeros((0, 3), dtype=np.uint8),
        "scalar": np.array(2.5, dtype=np.float32),
    }
    with sfm_kernel.join(world, name="P") as sfm, running("echo.c", world, "C") as process:
        sfm.wait_for("C", timeout=PATIENCE)
        sfm.send(dest="C", tag="end", **values)
        message = sfm.recv(PATIENCE, src="C", small=-5, text="Grüße", real=0.1)
        assert outcome(process) == ""
    for name, value in values.items():
        assert type(message[name]) is type(value), name
        if isinstance(value, np.ndarray):
            assert message[name].dtype == value.dtype and message[name].shape == value.shape
            assert np.array_equal(message[name], value)
        else:
            assert message[name] == value, name


def test_many_messages_and_large_ones(world: str) -> None:
    with sfm_kernel.join(world, name="P") as sfm, running("echo.c", world, "C") as process:
        sfm.wait_for("C", timeout=PATIENCE)
        for begin in range(0, 100_000, 1000):
            for number in range(begin, begin + 1000):
                sfm.send(dest="C", number=number)
            for number in range(begin, begin + 1000):
                assert sfm.recv(PATIENCE).number == number
        for size in (1 << 13, 1 << 18, 1 << 22, 1 << 26):
            data = np.arange(size, dtype=np.uint8)
            sfm.send(dest="C", data=data)
            assert np.array_equal(sfm.recv(PATIENCE).data, data)
        sfm.send(dest="C", tag="end")
        sfm.recv(PATIENCE, tag="end")
        outcome(process)


def test_c_takes_by_templates(world: str) -> None:
    with sfm_kernel.join(world, rank=0) as sfm, running("templates.c", world, "C") as process:
        sfm.wait_for("C", timeout=PATIENCE)
        sfm.send(dest=1, number=0, tag="first")
        sfm.send(dest=1, number=1, x=2)
        sfm.send(dest=1, number=2, x=3.0)
        sfm.send(dest=1, number=3, x=0.5)
        sfm.send(dest=1, number=4, x=1e300)
        sfm.send(dest=1, number=5, key=b"\0\1")
        sfm.send(dest=1, number=6, tag="y" * 3000)
        sfm.send(dest=1, number=7, z=[1, 2])
        sfm.send(dest=1, number=8, z=1.5)
        sfm.send(dest=1, number=9, z=np.ones(3))
        sfm.send(dest=1, number=99, tag="last")
        outcome(process)


def test_values_that_only_python_can_open_are_refused_by_name(world: str) -> None:
    columns = np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3))
    with sfm_kernel.join(world, name="P") as sfm, running("pickles.c", world, "C") as process:
        sfm.wait_for("C", timeout=PATIENCE)
        sfm.send(dest="C", list=[1, 2], huge=2**70, none=None, truth=True, columns=columns)
        pickled, huge, none = outcome(process).splitlines()
    assert '"list"' in pickled and "numpy.array" in pickled
    assert '"huge"' in huge and "64 bits" in huge
    assert '"none"' in none and "None" in none


def test_c_plus_plus_and_threads(world: str) -> None:
    assert ran("whole.cpp", world) == "5\n"
    assert world not in os.listdir(os.environ["SFM_DIR"])  # it has left at its end


# ---- what goes wrong ----


def test_each_mistake_has_a_code_and_a_text(world: str) -> None:
    lines = ran("errors.c", world).splitlines()
    assert len(lines) > 40
    assert all(re.fullmatch(r"\d+ .{15,}", line) for line in lines), lines
    assert any("There: 'errors'" in line for line in lines)


def test_nothing_leaks(world: str) -> None:
    ran("leaks.c", world)


def test_a_receive_ends_when_its_time_is_up(world: str) -> None:
    code, text = ran("wait.c", world, "C", "P", "0.2").splitlines()[1].split(" ", 1)
    assert code == "2" and "recv(src='P', n=7) within 0.2 s" in text


def test_a_late_joiner_is_waited_for_and_its_message_comes(world: str) -> None:
    for src, names in [("P", {"name": "P"}), ("3", {"name": "Q", "rank": 3})]:
        with running("wait.c", world, "C", src, "-1") as process:
            assert process.stdout and process.stdout.readline() == "waits\n"
            with sfm_kernel.join(world, **names) as sfm:  # type: ignore[arg-type]
                sfm.send(dest="C", n=6)
                sfm.send(dest="C", n=7)
                assert outcome(process) == "0 came\n"


@pytest.mark.fault
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_python_learns_that_a_c_process_has_died(world: str, number: int) -> None:
    with sfm_kernel.join(world, name="P") as sfm, running("echo.c", world, "C") as process:
        sfm.wait_for("C", timeout=PATIENCE)
        sfm.send(dest="C", number=1)
        assert sfm.recv(PATIENCE, src="C").number == 1
        process.send_signal(number)
        with pytest.raises(PeerLost):
            sfm.recv(PATIENCE, src="C")
        with pytest.raises(PeerLost):
            sfm.send(dest="C", number=2)
    sfm_kernel.directory.clean()


@pytest.mark.fault
def test_c_learns_that_its_peer_has_died(world: str) -> None:
    with (
        running("echo.c", world, "victim") as victim,
        running("wait.c", world, "waits", "victim", "-1") as waits,
        running("fill.c", world, "fills", "victim", "1000000") as fills,
    ):
        with sfm_kernel.join(world, name="P") as sfm:
            sfm.wait_for("victim", "waits", "fills", timeout=PATIENCE)
            wait_until(lambda: shown(sfm, "waits").get("state") == "blocked in recv")
            victim.send_signal(signal.SIGSTOP)
            wait_until(lambda: shown(sfm, "fills").get("state") == "blocked in send")
            victim.kill()
            code, text = outcome(waits).splitlines()[1].split(" ", 1)
            assert code == "3" and "'victim' has ended while 'waits' waited" in text
            code, text = outcome(fills).split(" ", 1)
            assert code == "3" and "'victim' has ended and did not receive" in text
    sfm_kernel.directory.clean()


def test_without_buffering_a_send_waits_until_it_is_received(world: str) -> None:
    with (
        sfm_kernel.join(world, name="P") as sfm,
        running("fill.c", world, "C", "P", "0") as process,
    ):
        sfm.wait_for("C", timeout=PATIENCE)
        assert sfm.recv(PATIENCE).numbers.shape == (256, 256)
        # First for room, if the ring is still full of the first message.
        wait_until(lambda: shown(sfm, "C").get("waits") == "'P' to receive it (buffering=0)")
        sfm.recv(PATIENCE)
        sfm.close()
        assert outcome(process).startswith("3 ")


# ---- observers ----


def test_observers_see_what_a_c_process_waits_for_and_what_it_has(world: str) -> None:
    with (
        sfm_kernel.join(world, name="P") as sfm,
        running("wait.c", world, "C", "P", "-1") as process,
    ):
        sfm.wait_for("C", timeout=PATIENCE)
        sfm.send(dest="C", n=6, tag="other")
        seen = wait_until(
            lambda: (
                (found := shown(sfm, "C")).get("state") == "blocked in recv"
                and found["messages"]
                and found["wait"]
                and found
            )
        )
        assert seen["waits"] == "sfm_recv(src='P', n=7)" and seen["pid"] == process.pid
        assert seen["wait"]["peers"] == ["P"]
        assert "'other'" in str(seen["messages"])
        sfm.send(dest="C", n=7)
        assert "came" in outcome(process)


def test_a_proven_deadlock_ends_the_call(world: str) -> None:
    with (
        sfm_kernel.join(world, name="P") as sfm,
        running("wait.c", world, "A", "B", "-1") as a,
        running("wait.c", world, "B", "A", "-1") as b,
    ):
        sfm.wait_for("A", "B", timeout=PATIENCE)
        watch = DeadlockMonitor(sfm.folder, proof=0.5)
        found = wait_until(watch.check)
        assert found["verdict"] == "deadlock" and set(found["cycle"]) == {"A", "B"}
        assert set(end_calls(sfm.folder, found)) == {"A", "B"}
        for process in (a, b):
            code, text = outcome(process).split("\n", 1)[1].split(" ", 1)
            assert code == "6" and text.startswith("Deadlock: ") and "recv(src='A', n=7)" in text


# ---- the environment ----


def joined(**environment: str) -> tuple[int, str]:
    """The exit status and output of ``environment.c`` with these variables."""
    others = {key: value for key, value in os.environ.items() if key != "SFM_WORLD"}
    done = subprocess.run(
        [program("environment.c")],
        env=others | environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert not done.stderr
    return done.returncode, done.stdout


def test_a_process_takes_its_name_and_rank_from_the_environment(world: str) -> None:
    assert joined(SFM_WORLD=world) == (0, "0 0 1\n")
    named = {"SFM_NAME": "B", "SFM_RANK": "3", "SFM_SIZE": "7"}
    assert joined(SFM_WORLD=world, **named) == (0, "B 3 7\n")
    rank = {"SFM_MPI_WORLD": world, "SFM_MPI_RANK": "2", "SFM_MPI_SIZE": "4"}
    assert joined(**rank) == (0, "2 2 4\n")
    assert joined(**rank, SFM_MPI_PID="1") == (0, "0 0 4\n")  # something that a rank has started
    for wrong, said in [
        ({}, "set SFM_WORLD"),
        ({"SFM_WORLD": world, "SFM_RANK": "x"}, "SFM_RANK"),
        ({"SFM_WORLD": world, "SFM_DIRECTORY": "tcp://localhost:1"}, "SFM_DIRECTORY"),
        ({"SFM_WORLD": world, "SFM_TRANSPORT": "zmq"}, "SFM_TRANSPORT"),
        ({"SFM_WORLD": world, "SFM_DIR": "/proc/nowhere"}, "/proc"),
        ({"SFM_WORLD": world, "SFM_SITE": "two words"}, "SFM_SITE"),
    ]:
        status, text = joined(**wrong)
        assert status == 1 and said in text


def test_a_process_of_c_has_a_site(world: str) -> None:
    with sfm_kernel.join(world, "home", guest=True) as home:
        for nth, site in enumerate(({}, {"SFM_SITE": "Zürich"})):
            joined(SFM_WORLD=world, SFM_NAME=f"C{nth}", **site)
        left = home._directory.departed()
        assert {member.name: member.site for member in left} == {"C0": home.site, "C1": "Zürich"}


def test_every_program_is_part_of_a_test() -> None:
    used = Path(__file__).read_text()
    assert all(f'"{path.name}"' in used for path in PROGRAMS.glob("*.c*"))
