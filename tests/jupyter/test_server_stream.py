"""The websocket: each panel gets what it has subscribed to, and nothing else."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.jupyter.server import Server, processes, programs, server

pytestmark = [pytest.mark.keeps("one server for the whole module"), pytest.mark.fault]

WAITS = "sfm.recv(never=1)"
WORKS = "while True: sfm.send(dest=sfm.name, n=1); sfm.recv(n=1); time.sleep(0.05)"
HOLDS = "say('holds'); ctypes.PyDLL(None).sleep(600)"


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with server(tmp_path_factory.mktemp("notebooks")) as running:
        yield running


def blocked(*names: str) -> Any:
    """Whether these processes are blocked in recv in a snapshot."""
    return lambda content: all(
        processes(content)[name]["state"] == "blocked in recv" for name in names
    )


def test_the_list_comes_first_and_when_it_changes(one: Server, world: str) -> None:
    with one.stream() as stream:
        first = stream.next()
        assert first["type"] == "worlds"
        assert world not in [entry["world"] for entry in first["worlds"]]
        with programs(world, A=WAITS):
            stream.until("worlds", lambda all: [w for w in all if w["world"] == world])
        stream.until("worlds", lambda all: not [w for w in all if w["world"] == world])


def test_two_clients_get_the_same(one: Server, world: str) -> None:
    with programs(world, A=WAITS, B=WAITS), one.stream() as first, one.stream() as second:
        first.watch(world, "snapshot")
        ours = [{"snapshot": first.until("snapshot", blocked("A", "B"))}, *first.until_silence()]
        second.watch(world, "snapshot")
        theirs = second.until("snapshot")
        assert [one for one in ours if "snapshot" in one][-1]["snapshot"] == theirs
        assert theirs["world"] == world


def test_nothing_is_sent_while_nothing_changes(one: Server, world: str) -> None:
    with programs(world, A=WAITS, B=WAITS), one.stream() as stream:
        stream.watch(world, "snapshot")
        stream.until("snapshot", blocked("A", "B"))
        stream.until_silence()  # which never comes if the same is sent again and again
        with programs(world, C=WAITS):
            stream.until("snapshot", lambda seen: "C" in processes(seen))


def test_nothing_is_sent_to_who_hides(one: Server, world: str) -> None:
    with programs(world, A=WORKS), one.stream() as hidden, one.stream() as stream:
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
    one: Server, world: str
) -> None:
    with programs(world, A=WORKS, B=HOLDS, C=WAITS) as running, one.stream() as stream:
        assert running["B"].line() == "holds"
        stream.watch(world, "snapshot")
        stream.until("snapshot", blocked("C"))
        os.kill(running["C"].process.pid, signal.SIGSTOP)
        sent = processes(stream.until("snapshot"))["A"]["sent"]
        seen = stream.until("snapshot", lambda now: processes(now)["A"]["sent"] > sent + 10)
        states = {name: one["state"] for name, one in processes(seen).items()}
        assert states["B"] == "running" and states["C"] == "blocked in recv"


def test_a_death_is_seen(one: Server, world: str) -> None:
    with programs(world, A=WAITS, B=WAITS) as running, one.stream() as stream:
        stream.watch(world, "snapshot")
        stream.until("snapshot", blocked("A", "B"))
        running["A"].close()
        seen = stream.until("snapshot", lambda now: not processes(now)["A"]["alive"])
        assert processes(seen)["A"]["state"] == "dead" and processes(seen)["B"]["alive"]
        entry = one.worlds()[world]
        assert (entry["engines"], entry["blocked"], entry["dead"]) == (2, 1, 1)


def test_a_world_that_ends_is_told_once(one: Server, world: str) -> None:
    with one.stream() as stream:
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
def test_a_wrong_subscription_is_answered_with_an_error(one: Server, text: str) -> None:
    with one.stream() as stream:
        for _ in range(2):  # and the stream stays
            stream.socket.send(text)
            assert '"type": "watch"' in stream.until("error")


def test_a_name_that_is_no_world(one: Server) -> None:
    with one.stream() as stream:
        stream.watch("../etc", "snapshot")
        assert stream.until("gone") == "../etc"


def test_watching_is_no_activity(one: Server, world: str) -> None:
    """Otherwise a server that only shows its panel would never be culled."""
    before = one.get("api/status")[1]["last_activity"]
    with programs(world, A=WORKS), one.stream() as stream:
        stream.watch(world, "snapshot")
        for _ in range(10):
            stream.until("snapshot")
        one.worlds()
    assert one.get("api/status")[1]["last_activity"] == before


def test_a_deadlock_is_explained(one: Server, world: str) -> None:
    bodies = {"A": "sfm.recv(src='B', tag=2)", "B": "sfm.recv(src='A', tag=1)"}
    with programs(world, **bodies, C="sfm.wait_for('B'); time.sleep(600)"), one.stream() as stream:
        stream.watch(world, "diagnosis")
        told = stream.until("diagnosis", lambda it: it["verdict"] == "deadlock")
        assert sorted(told["cycle"]) == ["A", "B"] and told["world"] == world
        assert any("recv(src='B', tag=2)" in sentence for sentence in told["sentences"])
        assert "diagnosis" not in [message["type"] for message in stream.until_silence(6)]


SENDS = """
for n in range(10 ** 9):
    sfm.send(dest='B', n=n)
    sys.stdin.readline()
"""


def test_the_timeline_comes_whole_and_then_what_is_new(one: Server, world: str) -> None:
    with one.stream() as stream, programs(world, B="while True: sfm.recv()", A=SENDS) as running:
        sent_at: dict[str, float] = {}

        def take(told: Any) -> list[str]:
            """The ids of its flights that have arrived."""
            assert told["world"] == world
            sent_at.update((flight["id"], flight["sent"]) for flight in told["flights"])
            return [flight["id"] for flight in told["flights"] if flight["received"]]

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


def test_the_trace_is_a_file_for_perfetto(one: Server, world: str) -> None:
    with programs(world, B="while True: sfm.recv()", A=SENDS):
        with one.stream() as stream:
            stream.watch(world, "timeline")
            stream.until("timeline", lambda it: [1 for one in it["flights"] if one["received"]])
        status, trace = one.get(f"sfm/worlds/{world}/trace")
        assert status == 200
        assert {event["ph"] for event in trace["traceEvents"]} >= {"X", "s", "f"}
    assert one.get(f"sfm/worlds/{world}/trace")[0] == 404
