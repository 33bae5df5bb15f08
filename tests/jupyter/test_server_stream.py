"""The websocket: each panel gets what it has subscribed to, and nothing else."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from tests.jupyter.server import Server, blocked, processes, programs

pytestmark = [pytest.mark.keeps("one server for the whole module"), pytest.mark.fault]

WAITS = "sfm.recv(never=1)"
WORKS = "while True: sfm.send(dest=sfm.name, n=1); sfm.recv(n=1); time.sleep(0.05)"
HOLDS = "say('holds'); ctypes.PyDLL(None).sleep(600)"


def test_the_list_comes_first_and_when_it_changes(shared: Server, world: str) -> None:
    with shared.stream() as stream:
        first = stream.next()
        assert first["type"] == "worlds"
        assert world not in [entry["world"] for entry in first["worlds"]]
        with programs(world, A=WAITS):
            stream.until("worlds", lambda listed: [w for w in listed if w["world"] == world])
        stream.until("worlds", lambda listed: not [w for w in listed if w["world"] == world])


def test_two_clients_get_the_same(shared: Server, world: str) -> None:
    with programs(world, A=WAITS, B=WAITS), shared.stream() as first, shared.stream() as second:
        first.watch(world, "snapshot")
        ours = [{"snapshot": first.until("snapshot", blocked("A", "B"))}, *first.until_silence()]
        second.watch(world, "snapshot")
        theirs = second.until("snapshot")
        assert [message for message in ours if "snapshot" in message][-1]["snapshot"] == theirs
        assert theirs["world"] == world


def test_nothing_is_sent_while_nothing_changes(shared: Server, world: str) -> None:
    with programs(world, A=WAITS, B=WAITS), shared.stream() as stream:
        stream.watch(world, "snapshot")
        stream.until("snapshot", blocked("A", "B"))
        stream.until_silence()  # which never comes if the same is sent again and again
        with programs(world, C=WAITS):
            stream.until("snapshot", lambda seen: "C" in processes(seen))


def test_nothing_is_sent_to_who_hides(shared: Server, world: str) -> None:
    with programs(world, A=WORKS), shared.stream() as hidden, shared.stream() as stream:
        hidden.watch(world, "snapshot")
        hidden.until("snapshot")
        hidden.watch(world)
        hidden.until_silence()  # snapshots were on their way
        stream.watch(world, "snapshot")
        for _ in range(20):
            stream.until("snapshot")
        assert "snapshot" not in [message["type"] for message in hidden.until_silence()]
        hidden.watch(world, "snapshot")
        hidden.until("snapshot")


def test_snapshots_come_while_a_process_holds_its_gil_and_another_is_stopped(
    shared: Server, world: str
) -> None:
    with programs(world, A=WORKS, B=HOLDS, C=WAITS) as running, shared.stream() as stream:
        assert running["B"].line() == "holds"
        stream.watch(world, "snapshot")
        stream.until("snapshot", blocked("C"))
        os.kill(running["C"].process.pid, signal.SIGSTOP)
        sent = processes(stream.until("snapshot"))["A"]["sent"]
        seen = stream.until("snapshot", lambda now: processes(now)["A"]["sent"] > sent + 10)
        states = {name: process["state"] for name, process in processes(seen).items()}
        assert states["B"] == "running" and states["C"] == "blocked in recv"


def test_a_death_is_seen(shared: Server, world: str) -> None:
    with programs(world, A=WAITS, B=WAITS) as running, shared.stream() as stream:
        stream.watch(world, "snapshot")
        stream.until("snapshot", blocked("A", "B"))
        running["A"].close()
        seen = stream.until("snapshot", lambda now: not processes(now)["A"]["alive"])
        assert processes(seen)["A"]["state"] == "ended" and processes(seen)["B"]["alive"]
        entry = shared.worlds()[world]
        assert (entry["engines"], entry["blocked"], entry["ended"]) == (2, 1, 1)


def test_a_world_that_ends_is_told_once(shared: Server, world: str) -> None:
    with shared.stream() as stream:
        with programs(world, A="sfm.recv(1000, go=1)") as running:
            stream.watch(world, "snapshot")
            stream.until("snapshot", blocked("A"))
            running["A"].process.send_signal(signal.SIGINT)  # it leaves
            assert stream.until("gone") == world
        assert "gone" not in [message["type"] for message in stream.until_silence()]
        stream.watch(world, "snapshot")
        assert stream.until("gone") == world


@pytest.mark.parametrize(
    "text",
    ["", "[]", "1", "{}", '{"type": "listen"}', '{"type": "watch", "world": 1, "parts": []}',
     '{"type": "watch", "world": null, "parts": ["all"]}',
     '{"type": "watch", "world": null, "parts": [], "rate": "often"}',
     '{"type": "watch", "world": null, "parts": [], "rate": 1' + 400 * "0" + "}",
     200_000 * "[", 100_000 * '{"type":'],
    ids=range(11),
)  # fmt: skip
def test_a_wrong_subscription_is_answered_with_an_error(shared: Server, text: str) -> None:
    with shared.stream() as stream:
        for _ in range(2):  # and the stream stays
            stream.socket.send(text)
            assert '"type": "watch"' in stream.until("error")


def test_a_name_that_is_no_world(shared: Server) -> None:
    with shared.stream() as stream:
        stream.watch("../etc", "snapshot")
        assert stream.until("gone") == "../etc"


def test_watching_is_no_activity(shared: Server, world: str) -> None:
    """Otherwise a server that only shows its panel would never be culled."""
    before = shared.get("api/status")[1]["last_activity"]
    with programs(world, A=WORKS), shared.stream() as stream:
        stream.watch(world, "snapshot")
        for _ in range(10):
            stream.until("snapshot")
        shared.worlds()
    assert shared.get("api/status")[1]["last_activity"] == before


def test_a_deadlock_is_explained(shared: Server, world: str) -> None:
    bodies = {"A": "sfm.recv(src='B', tag=2)", "B": "sfm.recv(src='A', tag=1)"}
    with (
        programs(world, **bodies, C="sfm.wait_for('B'); time.sleep(600)"),
        shared.stream() as stream,
    ):
        stream.watch(world, "diagnosis")
        diagnosis = stream.until("diagnosis", lambda it: it["verdict"] == "deadlock")
        assert sorted(diagnosis["cycle"]) == ["A", "B"] and diagnosis["world"] == world
        assert any("recv(src='B', tag=2)" in sentence for sentence in diagnosis["sentences"])
        assert "diagnosis" not in [message["type"] for message in stream.until_silence(6)]


SENDS = """
for n in range(10 ** 9):
    sfm.send(dest='B', n=n)
    sys.stdin.readline()
"""


def test_the_timeline_comes_whole_and_then_what_is_new(shared: Server, world: str) -> None:
    with shared.stream() as stream, programs(world, B="while True: sfm.recv()", A=SENDS) as running:
        sent_at: dict[str, float] = {}

        def take(timeline: Any) -> list[str]:
            """The ids of its flights that have arrived."""
            assert timeline["world"] == world
            sent_at.update((flight["id"], flight["sent"]) for flight in timeline["flights"])
            return [flight["id"] for flight in timeline["flights"] if flight["received"]]

        stream.watch(world, "timeline")
        first = take(stream.until("timeline", take))
        stream.until_silence()
        running["A"].tell("go on")
        second = take(stream.until("timeline", take))
        assert len(first) == len(second) == 1 and first != second, "only what is new"
        assert sent_at[first[0]] < sent_at[second[0]]
        stream.until_silence()
        stream.watch(world, "timeline")
        assert sorted(take(stream.until("timeline"))) == sorted(first + second), "all again"


def test_the_trace_is_a_file_for_perfetto(shared: Server, world: str) -> None:
    with programs(world, B="while True: sfm.recv()", A=SENDS):
        with shared.stream() as stream:
            stream.watch(world, "timeline")
            stream.until(
                "timeline", lambda it: [1 for flight in it["flights"] if flight["received"]]
            )
        status, trace = shared.get(f"sfm/worlds/{world}/trace")
        assert status == 200
        assert {event["ph"] for event in trace["traceEvents"]} >= {"X", "s", "f"}
    assert shared.get(f"sfm/worlds/{world}/trace")[0] == 404
