"""An observer survives segments that a process of the same user has cut or overwritten, and still
reports the other processes."""

from __future__ import annotations

import json
import os
import random
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sfm_kernel import Endpoint, PeerLost
from sfm_kernel.directory.signals import interrupt
from sfm_kernel.observe import explain
from sfm_kernel.observe.snapshot import segments, snapshot
from tests.conftest import Spawn
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("over_shm")  # chosen before the guest joins

HEADER = 4096
"""Some first bytes of a segment, but not all that an observer reads."""
LIFE = 528
"""Offset of the word that the kernel marks (``life`` in native/src/segment.rs), and its mark."""
OWNER_DIED = 0x4000_0000

MEMBER = """
import sys, sfm_kernel
with sfm_kernel.join(sys.argv[1], sys.argv[2]) as sfm:
    sfm.wait_for("home")
    for n in range(5): sfm.send(dest="home", n=n, text="x" * 100)
    sfm.recv(tag="never")
"""

Look = Callable[[], dict[str, str]]
Members = dict[str, subprocess.Popen[bytes]]


@pytest.fixture
def members(home: Endpoint, spawn: Spawn) -> Members:
    """Processes A, B and C, which wait for a message, by their uids."""
    started = {name: spawn(MEMBER, home.world, name) for name in ("A", "B", "C")}
    for name in started:
        home.recv(30, src=name, n=4)

    def waiting() -> dict[str, str]:
        processes = snapshot(home.folder)["processes"]
        waiting = (process for process in processes if process["state"] == "blocked in recv")
        return {process["name"]: process["uid"] for process in waiting}

    wait_until(lambda: waiting().keys() >= started.keys())
    uids = waiting()
    return {uids[name]: process for name, process in started.items()}


@pytest.fixture
def look(home: Endpoint) -> Iterator[Look]:
    """States by uid, as an observer in another process sees them; the observer must end well."""
    command = [sys.executable, "-m", "tests.fault.onlooker", home.folder]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as onlooker:
        assert onlooker.stdin and onlooker.stdout

        def look() -> dict[str, str]:
            print("look", file=onlooker.stdin, flush=True)
            assert onlooker.stdout
            line = onlooker.stdout.readline()
            assert line, f"the observer has ended: {onlooker.wait()}"
            states: dict[str, str] = json.loads(line)
            return states

        yield look
        onlooker.stdin.close()
        assert onlooker.wait() == 0


def test_a_segment_that_is_cut_is_reported_as_damaged(
    home: Endpoint, members: Members, look: Look, effort: int
) -> None:
    (uid, victim), *others = members.items()
    path = Path(segments(home.folder)[uid])
    victim.send_signal(signal.SIGSTOP)  # it would touch the memory that is gone
    contents = path.read_bytes()
    before = look()
    assert before[uid] == "blocked in recv"
    for size in (0, len(contents) // 2, HEADER, len(contents) - 1) * effort:
        os.truncate(path, size)
        states = look()
        # Observers do not miss the old events, which they need not read.
        assert states[uid] == ("damaged" if size <= HEADER else before[uid])
        assert {**states, uid: ""} == {**before, uid: ""}, "the others are reported as before"
        with open(path, "r+b") as file:
            file.write(contents)
        assert look() == before
    os.truncate(path, 0)
    diagnosis = explain(home.folder)
    assert not diagnosis["stuck"], "nobody knows what it does"
    assert f"{uid[:8]} lives, and its segment is damaged" in "\n".join(diagnosis["sentences"])
    victim.kill()
    victim.wait()
    assert look()[uid] == "ended"
    assert all(process.poll() is None for _, process in others)


@pytest.mark.parametrize("pid", [1 << 31, 1 << 63, -1, 0, 1.5, "7", None, 1 << 22])
def test_no_pid_of_a_segment_is_taken_at_its_word(home: Endpoint, pid: object) -> None:
    (path,) = segments(home.folder).values()
    home._inbox.set_info(json.dumps({"name": "home", "pid": pid}))
    (shown,) = snapshot(home.folder)["processes"]
    assert shown["state"] == ("running" if pid in (None, 1 << 22) else "damaged")
    assert shown["pid"] is (None if shown["state"] == "damaged" else shown["pid"])
    assert "cannot be reached" in interrupt(path, pid)


def test_random_damage(home: Endpoint, members: Members, look: Look, effort: int) -> None:
    """Flip bits in all segments but this process's, while all are in use."""
    seed = random.randrange(1 << 32) if effort > 1 else 11
    print("seed", seed)
    chance = random.Random(seed)
    paths = {uid: Path(path) for uid, path in segments(home.folder).items() if uid in members}
    contents = {uid: path.read_bytes() for uid, path in paths.items()}
    ends = (200, HEADER, 12_000, 80_000, len(next(iter(contents.values()))))
    for _ in range(12 * effort):
        for path in paths.values():
            flip(path, chance, chance.choice(ends))
        states = look()
        assert states.keys() >= members.keys()
        assert states[home.uid] == "running"
        for uid, path in paths.items():
            with open(path, "r+b") as file:
                file.write(contents[uid])
    for process in members.values():
        assert (process.poll() or 0) >= 0, "the members may fail, but not by a signal"


def test_messages_still_reach_a_living_process_that_is_marked_dead(
    home: Endpoint, members: Members
) -> None:
    """The sender waits a while for the process to end; then it believes the segment's lock."""
    home.send(dest="A", n=0)
    uid, *_ = members
    with open(segments(home.folder)[uid], "r+b") as file:
        (word,) = struct.unpack("<I", os.pread(file.fileno(), 4, LIFE))
        assert Path(f"/proc/{members[uid].pid}/task/{word}").exists()
        os.pwrite(file.fileno(), struct.pack("<I", OWNER_DIED), LIFE)
    for n in range(3):
        home.send(dest="A", n=n)
    home.send(dest="A", tag="never")
    assert members[uid].wait(30) == 0
    with pytest.raises(PeerLost):
        home.send(dest="A", n=4)


def flip(path: Path, chance: random.Random, end: int) -> None:
    """Change some bits of the first bytes of a file."""
    with open(path, "r+b") as file:
        for _ in range(chance.choice((1, 10, 300))):
            offset = chance.randrange(end)
            (byte,) = os.pread(file.fileno(), 1, offset)
            os.pwrite(file.fileno(), bytes([byte ^ 1 << chance.randrange(8)]), offset)
