"""Processes on other machines, which are folders here, as the Jupyter server shows them."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import socket
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import sfm_kernel
from sfm_kernel.directory import DirectoryServer
from sfm_kernel.directory.client import Client
from sfm_kernel.jupyter.cluster_files import DIRECTORY, world_key, world_name
from sfm_kernel.jupyter.server import remote
from sfm_kernel.jupyter.server.clusters import Clusters, NotInterrupted, interrupt
from sfm_kernel.jupyter.server.sampler import Worlds
from sfm_kernel.jupyter.server.stream import Subscription
from tests.jupyter.server import Server, blocked, processes, programs, server
from tests.jupyter.test_server_sampling import publisher, subscriber, touch, until
from tests.observe.pictures import check
from tests.waiting import wait_until
from tests.zmq import machines as simulated
from tests.zmq.machines import Machines, two_machines

pytestmark = [pytest.mark.zmq, pytest.mark.fault]

WAITS = """
while True:
    try:
        sfm.recv(src='{}', tag={})
    except KeyboardInterrupt:
        print('stopped', flush=True)
"""


class Cluster:
    """The files of a cluster that does not run."""

    def __init__(self) -> None:
        self.connection = {
            "registration": "tcp://10.0.0.1:4711",
            "location": "far",
            "key": secrets.token_hex(16),
        }
        self.world, self.key = world_name(self.connection), world_key(self.connection)
        self._folder = Path(os.environ["IPYTHONDIR"], "profile_default", "security")

    def write(self, url: str | None = None) -> None:
        """Have the files name this url of the world's directory."""
        self._folder.mkdir(parents=True, exist_ok=True)
        served = {DIRECTORY: url} if url else {}
        for name, content in (("cluster", {}), ("ipcontroller", self.connection | served)):
            suffix = "-client" if name == "ipcontroller" else ""
            path = self._folder / f"{name}-{self.world}{suffix}.json"
            path.write_text(json.dumps(content))

    def remove(self) -> None:
        for path in self._folder.glob(f"*-{self.world}*.json"):
            path.unlink()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    yield made
    made.remove()


@pytest.fixture
def machines(
    cluster: Cluster, sfm_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Machines]:
    """Two machines with the cluster's world; this one is "here"."""
    monkeypatch.setenv("SFM_DIR", str(sfm_dir))  # put back at the end

    def serve(world: str, key: bytes, bind: str) -> DirectoryServer:
        return DirectoryServer(world, cluster.key, bind)

    monkeypatch.setattr(simulated, "DirectoryServer", serve)
    with two_machines(cluster.world, sfm_dir) as running:
        cluster.write(running.server.url)
        yield running


@pytest.fixture
def stuck(machines: Machines) -> dict[str, subprocess.Popen[str]]:
    """A on this machine and B on the other, which wait for each other."""
    return {
        "A": machines.process("A", "here", WAITS.format("B", 1)),
        "B": machines.process("B", "there", WAITS.format("A", 2)),
    }


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def uids(running: Server, world: str, *names: str) -> list[str]:
    with running.stream() as stream:
        stream.watch(world, "snapshot")
        seen = processes(stream.until("snapshot", blocked(*names)))
        return [seen[name]["uid"] for name in names]


# ---- with a Jupyter server -------------------------------------------------------------------


def test_the_stream_shows_both_machines(
    machines: Machines, stuck: dict[str, subprocess.Popen[str]], tmp_path: Path
) -> None:
    with server(tmp_path) as running, running.stream() as stream:
        # At once, before there is a list: no false claim about A, who seems to be alone.
        stream.watch(machines.world, "snapshot", "diagnosis", "timeline")
        came, found = [], dict[str, Any]()
        while not {"snapshot", "diagnosis", "timeline"} <= found.keys():
            came.append(message := stream.next())
            kind = message["type"]
            if kind == "diagnosis" and message[kind]["verdict"] == "deadlock":
                assert sorted(message[kind]["cycle"]) == ["A", "B"]
                found[kind] = message[kind]
            elif kind == "snapshot" and blocked("A", "B")(message[kind]):
                found[kind] = processes(message[kind])
            elif kind == "timeline":
                found[kind] = message[kind]
        assert found["diagnosis"]["title"].startswith("Deadlock: ")
        a, b = found["snapshot"]["A"], found["snapshot"]["B"]
        assert (a["here"], b["here"]) == (True, False) and b["pid"] == stuck["B"].pid
        assert b["waits"] == "recv(src='A', tag=2)" and b["where"]["line"] > 0
        machines.process("C", "there", "sfm.send(dest='A', n=1)\nsfm.recv()")
        stream.until("snapshot", blocked("C"))
        entry = running.worlds()[machines.world]
        assert (entry["engines"], entry["cluster"]) == (3, machines.world)
        published = json.dumps([came, entry])
        assert machines.server.key.hex() not in published and "tcp://" not in published


def test_an_interrupt_reaches_both_machines(
    machines: Machines, stuck: dict[str, subprocess.Popen[str]], tmp_path: Path
) -> None:
    machines.process("C", "far", "sys.stdin.read()", relay=False)
    with server(tmp_path) as running:
        path = f"sfm/worlds/{machines.world}/interrupt"
        (there,) = uids(running, machines.world, "B")
        assert running.done(path, {"uids": [there]}) == {"interrupted": [there]}
        assert said(stuck["B"]) == "stopped"
        both = uids(running, machines.world, "A", "B")
        assert sorted(running.done(path, {"uids": both})["interrupted"]) == sorted(both)
        assert [said(process) for process in stuck.values()] == ["stopped", "stopped"]
        uids(running, machines.world, "A", "B")
        status, answer = running.post(path, {"uids": None})
        assert status == 409 and "no relay sees" in answer["message"]
        assert answer["message"].count("Interrupted: A, B") == 1
        assert [said(process) for process in stuck.values()] == ["stopped", "stopped"]


def test_an_interrupt_needs_nobody_who_watches(
    machines: Machines, stuck: dict[str, subprocess.Popen[str]], tmp_path: Path
) -> None:
    wait_until(lambda: blocked("B")(machines.snapshot()))
    there = machines.seen("B")["uid"]
    with server(tmp_path) as running:
        running.done(f"sfm/worlds/{machines.world}/interrupt", {"uids": [there]})
        assert said(stuck["B"]) == "stopped"


def test_a_directory_server_that_ends(
    machines: Machines, stuck: dict[str, subprocess.Popen[str]], tmp_path: Path, world: str
) -> None:
    goes_on = "while True: sfm.send(dest=sfm.name, n=1); sfm.recv(n=1); time.sleep(0.05)"
    with (
        server(tmp_path) as running,
        running.stream() as stream,
        running.stream() as other,
        programs(world, C=goes_on),
    ):
        stream.watch(machines.world, "snapshot", "diagnosis")
        stream.until("diagnosis", lambda diagnosis: diagnosis["verdict"] == "deadlock")
        other.watch(world, "snapshot")
        machines.server.close()
        shown = stream.until_each(
            snapshot=lambda seen: not processes(seen)["B"]["settled"],
            diagnosis=lambda diagnosis: diagnosis["verdict"] == "waiting",
        )["snapshot"]
        assert processes(shown)["B"]["waits"] == "recv(src='A', tag=2)"  # the last that was seen
        for _ in range(30):
            other.until("snapshot")
        path, there = f"sfm/worlds/{machines.world}/interrupt", processes(shown)["B"]["uid"]
        status, answer = running.post(path, {"uids": [there]})
        assert status == 409 and "directory server" in answer["message"]
        here = processes(shown)["A"]["uid"]
        assert running.done(path, {"uids": [here]}) == {"interrupted": [here]}
        assert said(stuck["A"]) == "stopped"


# ---- without one -----------------------------------------------------------------------------


@pytest.fixture
def silent(cluster: Cluster) -> Iterator[str]:
    """A socket accepts connections at the directory server's url, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        cluster.write(f"tcp://127.0.0.1:{listener.getsockname()[1]}/{bytes(32).hex()}")
        yield cluster.world


def test_a_silent_server_keeps_nobody_waiting(
    silent: str, world: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "OPEN_SECONDS", 30.0)  # as good as for ever
    parts = frozenset({"snapshot", "diagnosis", "timeline"})

    async def story() -> None:
        async with (
            publisher() as running,
            subscriber(running) as (first, ours),
            subscriber(running) as (second, theirs),
        ):

            def came(sent: list[dict[str, Any]], kind: str) -> int:
                return [message["type"] for message in sent].count(kind)

            running.subscribe(first, Subscription(silent, 20, parts))
            running.subscribe(second, Subscription(world, 20, parts))
            while came(ours, "snapshot") < 5 or came(theirs, "snapshot") < 5:
                touch(a)
                touch(b)
                await asyncio.sleep(0.05)
            await until(lambda: came(theirs, "diagnosis"))
            there = running._worlds.find(silent).remote
            assert there is not None and (asked := there.ask()) is not None
            assert not asked.done() and not came(ours, "diagnosis")
            there.close()

    with sfm_kernel.join(silent, "A") as a, sfm_kernel.join(world, "B") as b:
        asyncio.run(story())


@pytest.mark.parametrize("url", ["silent", f"tcp://127.0.0.1:9/{32 * '00'}", "nonsense"])
def test_nobody_is_called_stuck_while_the_server_is_not_reached(
    cluster: Cluster, silent: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "OPEN_SECONDS", 0.5)
    if url != "silent":
        cluster.write(url)
    with sfm_kernel.join(cluster.world, "A") as sfm:
        sfm.describe(kind="engine")
        worlds = Worlds()
        worlds.refresh()
        seen = worlds.find(cluster.world)
        diagnosis = check("diagnosis", seen.diagnoses.read())
        assert (
            diagnosis["verdict"] == "waiting"
            and not diagnosis["stuck"]
            and "other machines" in diagnosis["title"]
        )
        (why,) = diagnosis["sentences"]
        assert "directory server" in why and cluster.key.hex() not in why
        assert "A" in processes(seen.snapshots.read())
        assert seen.remote is not None
        there = {"uid": "b" * 32, "name": "B", "pid": 1, "host": "far", "here": False}
        with pytest.raises(NotInterrupted, match=r"B on far: .*directory server"):
            interrupt(seen.folder, [there], ["b" * 32], seen.remote.interrupt)
        seen.remote.close()


def test_the_server_is_asked_only_for_who_watches(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    exchange = Client.exchange

    def count(self: Client, request: str, *args: Any, **details: Any) -> Any:
        asked.append(request)
        return exchange(self, request, *args, **details)

    monkeypatch.setattr(Client, "exchange", count)

    async def story() -> None:
        async with publisher() as running, subscriber(running) as (first, _):
            worlds = running._worlds
            worlds.refresh()
            worlds.find(cluster.world).snapshots.read()  # as for the list of worlds
            assert not asked
            for _ in range(2):
                running.subscribe(first, Subscription(cluster.world, 20, frozenset({"snapshot"})))
                await until(lambda: "snapshots" in asked)
                running.subscribe(first, Subscription(None, 20, frozenset({"snapshot"})))
                await asyncio.sleep(0.3)
                asked.clear()
                await asyncio.sleep(0.3)
                assert not asked
            there = worlds.find(cluster.world).remote
            assert there is not None
            there.close()

    with DirectoryServer(cluster.world, cluster.key, "tcp://127.0.0.1:0") as served:
        cluster.write(served.url)
        with sfm_kernel.join(cluster.world, "A"):
            asyncio.run(story())


def test_a_directory_server_is_kept_while_its_cluster_is_there(cluster: Cluster) -> None:
    worlds = Worlds()
    cluster.write()
    with sfm_kernel.join(cluster.world, "A"):
        find = partial(worlds.find, cluster.world)
        worlds.refresh()
        assert find().remote is None, "all its processes are on this machine"
        with DirectoryServer(cluster.world, cluster.key, "tcp://127.0.0.1:0") as served:
            cluster.write(served.url)
            (known,) = (
                entry for name, entry in Clusters().by_world().items() if name == cluster.world
            )
            assert known.directory == served.url and known.key == cluster.key
            assert str(cluster.key) not in str(known) and cluster.key.hex() not in str(known)
            worlds.refresh()
            there = find().remote
            assert there is not None and there.view() is not None
            worlds.refresh()
            assert find().remote is there and there.view() is there.view()
            cluster.remove()
            worlds.refresh()
            assert find().remote is None and there.executor is None
            wait_until(lambda: there.view() is None)
            assert there.ask() is None and not there.states
