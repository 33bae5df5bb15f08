"""Observers see processes on other machines, and can interrupt them.

Machines are folders. A is on the observer's own one, B is not, and the observer is no member.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from sfm_kernel._native import JUDGEMENT_BYTES
from sfm_kernel.directory import carrier, server
from sfm_kernel.directory.liveness import ATTEMPT_SECONDS
from sfm_kernel.errors import WorldError
from sfm_kernel.jupyter.tables import status_table
from sfm_kernel.observe import DeadlockMonitor
from sfm_kernel.observe.deadlocks import end_calls
from tests.waiting import next_line, wait_until
from tests.zmq.machines import Machines, two_machines

pytestmark = [pytest.mark.zmq, pytest.mark.fault]

HOLDS_THE_GIL = "ctypes.PyDLL(None).sleep(1000)"
TELLS = """
try:
    {call}
except sfm_kernel.DeadlockDetected as error:
    print(*error.cycle, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def machines(world: str, sfm_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    monkeypatch.setenv("SFM_DIR", str(sfm_dir))  # put back at the end
    with two_machines(world, sfm_dir) as running:
        yield running


def is_stuck(machines: Machines, *names: str) -> bool:
    return machines.diagnosis()["stuck"] == list(names)


# ---- the snapshot ----------------------------------------------------------------------------


def test_state_inbox_and_wait_on_another_machine(machines: Machines) -> None:
    b = machines.process("B", "there", "sfm.recv(src='A', tag=1)")
    machines.process("A", "here", "sfm.send(dest='B', tag=2, n=7)\nsfm.recv(src='B', tag=3)")
    wait_until(lambda: machines.seen("B").get("depth") and machines.seen("B")["wait"])
    shown, a = machines.seen("B"), machines.seen("A")
    assert (shown["here"], shown["alive"], shown["pid"]) == (False, True, b.pid) and a["here"]
    assert (shown["site"], a["site"]) == ("site-of-there", "site-of-here")
    assert shown["state"] == "blocked in recv" and shown["waits"] == "recv(src='A', tag=1)"
    assert [condition["name"] for condition in shown["wait"]["template"]] == ["src", "tag"]
    assert shown["where"]["line"] > 0 and shown["size"] == 2
    (message,) = shown["messages"]
    assert message["src"] == "A" and ["n", "7"] in message["attributes"]
    assert [(peer["name"], peer["arrived"]) for peer in shown["peers"]] == [("A", 1)]
    assert [(peer["name"], peer["sent"]) for peer in a["peers"]] == [("B", 1)]
    wait_until(lambda: "tag is 2, not 1" in " ".join(machines.diagnosis()["sentences"]))


def test_while_it_holds_its_gil(machines: Machines) -> None:
    # The thread that receives needs no GIL.
    machines.process("B", "there", f"sfm.recv()\nsfm.send(dest='A')\nsfm.recv()\n{HOLDS_THE_GIL}")
    code = "sfm.send(dest='B')\nsfm.recv()\nsfm.send(dest='B')\n"  # they are connected then
    code += "sys.stdin.read(1)\nsfm.send(dest='B', tag=1)\nsfm.recv()"
    a = machines.process("A", "here", code)
    wait_until(lambda: machines.seen("B").get("received") == 2)
    time.sleep(0.5)  # B has come to the call that holds its GIL
    assert a.stdin
    print("x", file=a.stdin, end="")
    a.stdin.close()
    wait_until(lambda: machines.seen("B")["depth"] == 1)
    assert machines.seen("B")["state"] == "running"
    assert machines.diagnosis()["verdict"] == "waiting"


def test_while_it_is_stopped_and_after_its_death(machines: Machines) -> None:
    b = machines.process("B", "there", "sfm.recv(src='A', tag=1)")
    wait_until(lambda: machines.seen("B").get("wait"))
    b.send_signal(signal.SIGSTOP)
    machines.process("A", "here", "sfm.recv()")
    time.sleep(carrier.SILENT_SECONDS)  # it is the relay that must not be silent
    assert machines.seen("B")["alive"] and machines.seen("B")["waits"] == "recv(src='A', tag=1)"
    b.kill()
    wait_until(lambda: machines.seen("B")["state"] == "ended")
    assert not machines.seen("B")["alive"] and "B has ended." in machines.diagnosis()["sentences"]


def test_the_relay_sees_the_death_of_a_process_that_cannot_be_reached(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process may be reached through a gateway only, which proves nothing."""

    def has_no_way(self: server.LivenessMonitor) -> None:
        self._begun_at = time.monotonic()
        self._retry_at = self._begun_at + ATTEMPT_SECONDS

    monkeypatch.setattr(server.LivenessMonitor, "_connect", has_no_way)
    b = machines.process("B", "there", "sfm.recv()")
    c = machines.process("C", "there", "sys.stdin.read(1); sfm.close()")
    last = machines.process("D", "far", "sfm.recv()")  # its relay ends with it
    wait_until(lambda: len(machines.known_relays()) == 2)
    listed = {member.name: member for member in machines.observer.members()}
    assert all(machines.observer.alive(member) for member in listed.values())
    b.kill()
    last.kill()
    wait_until(lambda: not any(machines.observer.alive(listed[name]) for name in ("B", "D")))
    assert machines.observer.alive(listed["C"])
    c.communicate("x")
    wait_until(lambda: [member.name for member in machines.observer.members()] == ["B", "D"])


def test_a_machine_without_a_relay_proves_nothing(machines: Machines) -> None:
    machines.process("A", "here", "sfm.recv()")
    machines.process("B", "there", "sfm.recv()")
    hidden = machines.process("C", "far", "sys.stdin.read(1); sfm.close()", relay=False)
    wait_until(lambda: machines.seen("A")["settled"] and machines.seen("B")["settled"])
    assert machines.seen("C")["state"] == "running" and machines.seen("C")["rank"] == 2
    time.sleep(0.5)
    assert machines.diagnosis()["verdict"] == "waiting"
    hidden.communicate("x")
    wait_until(lambda: is_stuck(machines, "A", "B"))


# ---- deadlocks -------------------------------------------------------------------------------


def test_crossed_receives_end_on_both_machines(machines: Machines) -> None:
    processes = [
        machines.process("A", "here", TELLS.format(call="sfm.recv(src='B', tag=1)")),
        machines.process("B", "there", TELLS.format(call="sfm.recv(src='A', tag=2)")),
    ]
    watch = DeadlockMonitor(machines.observer.folder, remote=machines.view.states)
    while (proof := watch.check()) is None or proof["but_for"]:  # B is seen before its call
        time.sleep(0.05)
    assert proof["title"] == "Deadlock: A → B → A" and proof["cycle"] == ["A", "B"]
    assert end_calls(machines.observer, proof, remote=machines.view.judge) == ["A", "B"]
    assert [next_line(process) for process in processes] == ["A B", "A B"]
    assert not machines.view.judge("prepare", "0" * 32, 1, "{}")  # nobody's


SAYS_WHY = """
try:
    sfm.recv(src="A")
except sfm_kernel.DeadlockDetected as error:
    print(len(str(error).encode()), *error.cycle, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("size", [5000, 7900, 20_000])
def test_a_long_judgement_ends_a_call_on_another_machine(machines: Machines, size: int) -> None:
    """One that is longer than a segment has room for is shortened."""
    machines.process("A", "here", "sfm.recv(src='B')")
    b = machines.process("B", "there", SAYS_WHY)
    wait_until(lambda: is_stuck(machines, "A", "B"))
    found = machines.diagnosis()
    found["sentences"] = ["é" * 49] * (size // 99)
    assert end_calls(machines.observer, found, remote=machines.view.judge) == ["A", "B"]
    length, *cycle = next_line(b).split()
    assert cycle == ["A", "B"] and min(size, 7900) - 200 < int(length) < JUDGEMENT_BYTES


def test_an_observer_may_give_a_judgement_of_any_length(machines: Machines) -> None:
    b = machines.process("B", "there", SAYS_WHY)
    wait_until(lambda: machines.seen("B").get("wait"))
    shown = machines.seen("B")
    judgement = json.dumps({"cycle": ["B"], "why": "\n".join(["A line."] * 5000)})
    for step in ("prepare", "commit"):
        assert machines.view.judge(step, shown["uid"], shown["call"], judgement)
    length, *cycle = next_line(b).split()
    assert cycle == ["B"] and 7000 < int(length) < JUDGEMENT_BYTES
    assert not machines.view.judge(
        "prepare", shown["uid"], shown["call"], judgement
    )  # that call is over


def test_sends_that_wait_for_each_other(machines: Machines) -> None:
    code = "sfm.buffering = 0\nsfm.wait_for('A', 'B')\nsfm.send(dest='{}', data=bytes(100_000))"
    machines.process("B", "there", code.format("A"))
    machines.process("A", "here", code.format("B"))
    wait_until(lambda: is_stuck(machines, "A", "B") or is_stuck(machines, "B", "A"))
    assert sorted(machines.diagnosis()["cycle"]) == ["A", "B"]


def test_a_message_on_its_way_is_no_deadlock(machines: Machines) -> None:
    b = machines.process("B", "there", "sfm.recv(src='A')\nsfm.send(dest='A')\nprint('sent')")
    wait_until(lambda: machines.seen("B").get("settled"))
    b.send_signal(signal.SIGSTOP)  # its network thread as well: nothing arrives
    a = machines.process("A", "here", "sfm.send(dest='B')\nsfm.recv(src='B')\nprint('received')")
    wait_until(lambda: machines.seen("A").get("settled") and machines.seen("B").get("settled"))
    for _ in range(10):
        time.sleep(0.1)
        assert machines.diagnosis()["verdict"] == "waiting"
    assert "a message is on its way" in " ".join(machines.diagnosis()["sentences"])
    b.send_signal(signal.SIGCONT)
    assert (next_line(a), next_line(b)) == ("received", "sent")


def test_no_false_alarm_while_they_talk(machines: Machines, effort: int) -> None:
    rounds = 1500 * effort
    say = f"""
sfm.wait_for("A", "B")
for n in range({rounds}):
    {{first}}
    {{second}}
    if n % 97 == 0: time.sleep(0.02)
print("done")
"""
    ask, answer = "sfm.send(dest='{}', n=n)", "sfm.recv(src='{}', n=n)"
    a = machines.process("A", "here", say.format(first=ask.format("B"), second=answer.format("B")))
    b = machines.process("B", "there", say.format(first=answer.format("A"), second=ask.format("A")))
    while a.poll() is None or b.poll() is None:
        assert machines.diagnosis()["stuck"] == []
    assert (next_line(a), next_line(b)) == ("done", "done")


# ---- relays that are silent ------------------------------------------------------------------


@pytest.fixture
def stuck(machines: Machines) -> psutil.Process:
    """A and B wait for each other; the relay of B's machine."""
    machines.process("A", "here", "sfm.recv(src='B')")
    machines.process("B", "there", "sfm.recv(src='A')")
    wait_until(lambda: is_stuck(machines, "A", "B"))
    (relay,) = machines.relays("there")
    return relay


def test_nothing_is_proven_without_the_relay(machines: Machines, stuck: psutil.Process) -> None:
    stuck.suspend()
    assert machines.diagnosis()["stuck"] == []  # at once: the relay does not read again
    wait_until(lambda: not machines.seen("B")["settled"])
    assert machines.seen("B")["waits"] == "recv(src='A')"  # the last that was seen
    stuck.resume()
    wait_until(lambda: is_stuck(machines, "A", "B"))


def test_what_was_seen_long_ago_is_shown_so(machines: Machines, stuck: psutil.Process) -> None:
    stuck.suspend()  # it has its lock, so that no other one begins
    wait_until(lambda: machines.seen("B")["unseen"])
    shown = machines.seen("B")
    assert shown["alive"] and shown["state"] == "blocked in recv" and not shown["here"]
    assert time.time() - shown["unseen"] > carrier.SILENT_SECONDS
    found = machines.diagnosis()
    assert (
        found["verdict"] == "waiting" and found["title"] == "No deadlock is proven: B is not seen"
    )
    assert "B has not been seen for " in " ".join(found["sentences"])
    assert "It waited for recv(src='A') in " in " ".join(found["sentences"])
    table = repr(status_table(machines.snapshot()["processes"]))
    assert "unseen" in table and "was blocked in recv: recv(src='A')" in table
    with pytest.raises(WorldError, match="no relay sees"):
        machines.view.interrupt(shown["uid"])
    stuck.resume()
    wait_until(lambda: machines.seen("B")["unseen"] is None and is_stuck(machines, "A", "B"))


def test_a_relay_that_is_killed_is_replaced(machines: Machines, stuck: psutil.Process) -> None:
    machines.process("C", "there", "time.sleep(1000)", size=3)
    for _ in range(2):
        (relay,) = machines.relays("there")
        relay.kill()
        wait_until(lambda gone=relay: not gone.is_running() and machines.relays("there"))
        wait_until(lambda: is_stuck(machines, "A", "B") and machines.seen("B")["unseen"] is None)
        assert len(machines.relays("there")) == 1, "one of the two processes has started it"


def test_nothing_is_proven_without_the_server(machines: Machines, stuck: psutil.Process) -> None:
    machines.server.close()
    assert machines.diagnosis()["stuck"] == []
    assert machines.seen("B")["waits"] == "recv(src='A')" and not machines.seen("B")["settled"]
    wait_until(lambda: not machines.relays("there"))


# ---- what it costs ---------------------------------------------------------------------------


def test_nothing_is_sent_while_nobody_observes(
    machines: Machines, stuck: psutil.Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[bytes] = []
    serve = carrier.Carrier.serve_relay

    def count(self: carrier.Carrier, asked: Any, body: bytes, *rest: Any) -> None:
        heard.append(body)
        serve(self, asked, body, *rest)

    monkeypatch.setattr(carrier.Carrier, "serve_relay", count)
    there = machines.seen("B")["site"]

    def says_nothing_while_observed() -> bool:
        # A connection is reported up to two seconds after it was made, its round trip once more.
        sites = [link["from"] for link in machines.snapshot()["links"]]
        return there in sites and len(heard) > 20 and not any(heard[-20:])

    wait_until(says_nothing_while_observed)
    time.sleep(carrier.WATCHED_SECONDS + carrier.HELD_SECONDS)
    heard.clear()
    begun = time.monotonic()
    extra = machines.process("C", "there", "sfm.send(dest='B', n=1)\nsfm.recv()")  # much happens
    time.sleep(2 * carrier.HELD_SECONDS)
    held = (time.monotonic() - begun) / carrier.HELD_SECONDS
    assert 1 <= len(heard) <= 2 * held + 1 and not any(heard)
    wait_until(lambda: machines.seen("C") and machines.seen("B")["depth"] == 1)
    assert any(heard)
    assert extra.poll() is None


def test_the_first_snapshot_shows_the_present(machines: Machines) -> None:
    a, _ = (machines.process(name, "there", "sfm.recv()") for name in ("A", "B"))
    wait_until(machines.known_relays)
    time.sleep(1)  # nobody has observed them, and A is in its call
    assert machines.seen("A")["state"] == "blocked in recv"
    time.sleep(carrier.WATCHED_SECONDS + carrier.HELD_SECONDS)
    a.kill()
    a.wait()
    assert machines.seen("A")["state"] == "ended"


def test_one_relay_for_a_machine_which_ends_with_its_processes(machines: Machines) -> None:
    first = machines.process("A", "there", "sys.stdin.read(1); sfm.close()")
    second = machines.process("B", "there", "sys.stdin.read(1); sfm.close()")
    wait_until(lambda: not machines.seen("A").get("here", True) and machines.seen("B"))

    def parents() -> list[int]:
        with contextlib.suppress(psutil.Error):
            return [relay.ppid() for relay in machines.relays("there")]
        return []  # one has just ended

    wait_until(lambda: len(seen := parents()) == 1 and seen[0] not in (first.pid, second.pid))
    (relay,) = machines.relays("there")
    assert machines.server.key.hex() not in " ".join(relay.cmdline())
    assert {os.readlink(f"/proc/{relay.pid}/fd/{fd}") for fd in (0, 1, 2)} == {os.devnull}
    first.communicate("x")
    assert machines.relays("there") == [relay]
    second.communicate("x")
    wait_until(lambda: not machines.relays("there"))
    assert not machines.folder("there").exists()
    assert machines.snapshot()["processes"] == []


def test_a_process_that_comes_later_is_seen(machines: Machines) -> None:
    for _ in range(3):  # the relay of the one before is ending, or has ended
        process = machines.process("A", "there", "sys.stdin.read(1); sfm.close()")
        wait_until(lambda: machines.seen("A").get("sent") == 0 and machines.relays("there"))
        uid = machines.seen("A")["uid"]
        wait_until(lambda uid=uid: machines.tell_of("A", uid))
        process.communicate("x")
        wait_until(lambda: not machines.seen("A"))


# ---- orders, and by hand ---------------------------------------------------------------------


def test_interrupt(machines: Machines) -> None:
    code = (
        "try: sfm.recv()\nexcept KeyboardInterrupt: print('stopped', flush=True)\nsys.stdin.read()"
    )
    b = machines.process("B", "there", code)
    wait_until(lambda: machines.seen("B").get("wait"))
    machines.view.interrupt(machines.seen("B")["uid"])
    assert next_line(b) == "stopped"
    b.kill()
    wait_until(lambda: machines.seen("B")["state"] == "ended")
    with pytest.raises(WorldError, match="it has ended"):
        machines.view.interrupt(machines.seen("B")["uid"])


def test_the_command(machines: Machines) -> None:
    machines.process("B", "there", "sfm.recv()", relay=False)
    command = [sys.executable, "-m", "sfm_kernel.relay"]
    env = machines.environment("there")
    with subprocess.Popen(command, env=env) as running:
        wait_until(lambda: machines.seen("B").get("wait"))
        again = subprocess.run(command, env=env, capture_output=True, text=True)
        assert again.returncode == 0 and "runs on this machine already" in again.stderr
        running.terminate()
    assert running.returncode == 0
    assert not (machines.folder("there") / "relay").exists()
    wait_until(lambda: machines.seen("B")["state"] == "running")  # nobody sees it any more
    env.pop("SFM_KEY")
    failed = subprocess.run(command, env=env, capture_output=True, text=True)
    assert failed.returncode == 1 and "SFM_KEY is not set" in failed.stderr
