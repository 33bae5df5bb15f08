"""The directory between machines. Machines are folders: each has its own SFM_DIR."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import pytest
import zmq

from sfm_kernel.directory import (
    Client,
    DirectoryServer,
    Member,
    RemoteDirectory,
    open_directory,
)
from sfm_kernel.errors import (
    BadName,
    EndpointClosed,
    NameInUse,
    WorldAccess,
    WorldError,
    WorldGone,
)
from sfm_kernel.transport.base import Directory
from tests.dealers import connect_member, place
from tests.unit.machines import KEY, Machine, MakeMachine
from tests.unit.processes import child, kill
from tests.waiting import wait_until

pytestmark = pytest.mark.zmq


def test_machines_meet(machine: MakeMachine) -> None:
    here, there = machine().directory, machine()
    assert isinstance(here, Directory) and here.folder != there.directory.folder
    member = there.join(name="A", names=("A", "B"), info={"x": [1]})
    assert here.members() == [member] and here.members()[0].info == {"x": [1]}
    assert here.alive(member) and there.directory.alive(member)
    there.directory.leave(member)
    there.directory.leave(member)
    assert here.members() == [] and not here.alive(member)


def test_watchers_learn_of_processes_that_left_or_died(machine: MakeMachine) -> None:
    here, there = machine(), machine()
    here.join(name="A")
    gone: list[str] = []
    here.directory.watch(lambda changes: gone.extend(changes.departed))
    first, second = there.join(name="B"), there.join(name="C")
    there.directory.leave(second)
    wait_until(lambda: gone == [second.uid])
    there.directory.leave(first)
    wait_until(lambda: gone == [second.uid, first.uid])


def test_watchers_learn_of_a_process_that_joined_and_left_between_two_updates(
    machine: MakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = machine(), machine()
    here.join(name="A")
    gone: list[str] = []
    here.directory.watch(lambda changes: gone.extend(changes.departed))
    with monkeypatch.context() as busy:
        busy.setattr(DirectoryServer, "_publish", lambda server: False)
        short = there.join(name="B")
        there.directory.leave(short)
    last = there.join(name="C")
    wait_until(lambda: gone == [short.uid])
    there.directory.leave(last)
    wait_until(lambda: gone == [short.uid, last.uid])


def test_a_client_that_is_closed_while_others_use_it(server: DirectoryServer) -> None:
    """At whatever moment: its thread wakes up, others ask, or have just begun to wait."""
    for nth in range(40):
        client = Client(server.world, server.url, server.key)
        asked = threading.Event()

        def ask(client: Client = client, asked: threading.Event = asked) -> None:
            with contextlib.suppress(EndpointClosed):
                while client.ask("state"):
                    asked.set()

        with ThreadPoolExecutor(3) as pool:
            asking = [pool.submit(ask) for _ in range(2)]
            if nth % 4:
                asked.wait()
            if nth % 2:
                client.subscribe(lambda _: None)
            closing = pool.submit(client.close)
            client.close()
            closing.result()
            for thread in asking:
                thread.result()


def test_a_name_is_given_once_in_the_world(machine: MakeMachine) -> None:
    here, there = machine(), machine()
    assert here.join(name="A").rank == 0
    with pytest.raises(NameInUse, match="'A'"):
        there.join(name="A")
    assert there.join().rank == 1
    with pytest.raises(BadName):
        there.join(rank=-1)


def test_many_join_at_once(machine: MakeMachine) -> None:
    machines = [machine() for _ in range(4)]

    def join(machine: Machine) -> list[Member]:
        return [machine.join() for _ in range(5)]

    with ThreadPoolExecutor(4) as pool:
        joined = list(chain(*pool.map(join, machines)))
    for field in ("slot", "rank", "name"):
        assert sorted(getattr(member, field) for member in joined) == list(range(20))


@pytest.mark.fault
def test_the_killed_are_dead_and_the_stopped_are_not(machine: MakeMachine) -> None:
    here, there = machine(), machine()
    process = there.process()
    with process.moved() as pid:
        member = process.join(there.directory, name="A")
        os.kill(pid, signal.SIGSTOP)
        os.waitpid(pid, os.WUNTRACED)
        assert here.directory.members() == [member]
        for _ in range(5):
            time.sleep(0.1)  # it asks again after that
            assert here.directory.alive(member) and there.directory.alive(member)
        kill(pid)
        assert not there.directory.alive(member)  # its segment shows it, without the server
        wait_until(lambda: not here.directory.alive(member))
    assert here.directory.members() == [member]  # listed until another process replaces it


@pytest.mark.fault
def test_a_restarted_process_takes_the_place_of_the_killed(machine: MakeMachine) -> None:
    here, there = machine(), machine()
    here.join(name="first")
    process = there.process()
    with process.moved() as pid:
        process.join(there.directory, name="A")
        kill(pid)
        again = here.join(name="A")  # at once: the server may not have noticed yet
    assert (again.name, again.rank) == ("A", 1)
    assert [member.name for member in here.directory.members()] == ["first", "A"]


def test_members_go_on_when_the_server_has_ended(
    machine: MakeMachine, server: DirectoryServer
) -> None:
    here, there = machine(), machine()
    remote_member, local_member = there.join(name="A"), here.join(name="B")
    assert here.directory.alive(remote_member)
    server.close()
    with pytest.raises(WorldGone, match="does not answer"):
        here.directory.members()
    with pytest.raises(WorldGone, match=server.world):
        here.join(name="C")
    time.sleep(2.1)  # it asks a silent server again after two seconds
    assert here.directory.alive(remote_member)  # the server's last answer
    here.processes[0].die()
    assert not here.directory.alive(local_member)  # its segment shows it
    here.directory.leave(local_member)  # harmless


def test_a_new_server_at_the_old_address_is_another_one(
    machine: MakeMachine, server: DirectoryServer
) -> None:
    here = machine()
    here.join(name="A")
    server.close()
    with DirectoryServer(server.world, KEY, place(server.url)):
        with pytest.raises(WorldGone, match="is not the server with the key in this address"):
            here.directory.members()
        with pytest.raises(WorldGone, match="with the address that it then prints"):
            machine()  # who has the key of the world, and the former address


def test_a_closed_directory_says_so(machine: MakeMachine) -> None:
    here = machine()
    here.directory.close()
    here.directory.close()
    with pytest.raises(EndpointClosed):
        here.directory.members()


def test_a_forked_child_leaves_the_connection_alone(machine: MakeMachine) -> None:
    here = machine()

    def use() -> None:
        with pytest.raises(EndpointClosed):
            here.directory.members()
        here.directory.close()
        os.kill(os.getpid(), signal.SIGTERM)

    with child(use) as pid:
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGTERM
    assert here.directory.members() == []


# ---- refusals --------------------------------------------------------------------------------


def test_a_wrong_key_is_refused(server: DirectoryServer) -> None:
    with pytest.raises(WorldAccess, match="refuses the key"):
        RemoteDirectory(server.world, server.url, bytes(32))


def test_the_wrong_world(server: DirectoryServer) -> None:
    with pytest.raises(WorldGone, match=server.world):
        RemoteDirectory("another", server.url, KEY)


def test_nobody_there(server: DirectoryServer) -> None:
    server.close()
    server.close()
    with pytest.raises(WorldGone, match="does not answer"):
        RemoteDirectory(server.world, server.url, KEY)


@pytest.mark.parametrize("key", [b"", b"short"])
def test_no_world_without_a_secret(world: str, key: bytes) -> None:
    with pytest.raises(WorldAccess, match="IPP_SESSION_KEY"):
        DirectoryServer(world, key)
    with pytest.raises(WorldAccess, match="IPP_SESSION_KEY"):
        RemoteDirectory(world, f"tcp://127.0.0.1:1/{KEY.hex()}", key)


def test_strangers_are_not_heard(server: DirectoryServer, dealer: zmq.Socket[bytes]) -> None:
    dealer.connect(place(server.url))  # no CURVE at all
    dealer.send(json.dumps({"number": 1, "ask": "hello"}).encode())
    assert not dealer.poll(300)
    with RemoteDirectory(server.world, server.url, KEY) as member:
        assert member.members() == []


@pytest.mark.parametrize(
    "request_",
    [b"", b"{", b"[]", b"{}", b'{"number": 1}', b'{"number": 1, "ask": "eval"}']
    + [json.dumps({"number": 1, "ask": "join", "wish": wish}).encode() for wish in ({}, None, 7)]
    + [b'{"number": 1, "ask": "leave"}', b'{"number": 1, "ask": ["join"]}'],
)
def test_nonsense_is_answered(
    server: DirectoryServer, dealer: zmq.Socket[bytes], request_: bytes
) -> None:
    connect_member(dealer, server.url, KEY)
    dealer.send(request_)
    assert json.loads(dealer.recv())["error"] == "WorldError"
    dealer.send_multipart([b"too", b"many", b"parts"])
    dealer.recv()


@pytest.mark.parametrize(
    "address",
    [
        "",
        "tcp://localhost:1",
        "tcp://127.0.0.1",
        "ipc:///x",
        "7",
        "tcp://127.0.0.1:7\n",
        "tcp://127.0.0.1:7/\x1b[31m",
    ],
)
def test_members_have_an_address(machine: MakeMachine, address: str) -> None:
    here = machine()
    process = here.process()
    process.address = address
    with pytest.raises(WorldError):
        process.join(here.directory)


# ---- finding it ------------------------------------------------------------------------------


def test_open_directory_takes_the_environment(
    server: DirectoryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFM_DIRECTORY", server.url)
    with pytest.raises(WorldError, match="SFM_KEY"):
        open_directory(server.world, create=True)
    monkeypatch.setenv("SFM_KEY", "no hex")
    with pytest.raises(WorldError, match="SFM_KEY"):
        open_directory(server.world, create=True)
    monkeypatch.setenv("SFM_KEY", KEY.hex())
    opened = open_directory(server.world, create=True)
    assert isinstance(opened, RemoteDirectory) and opened.key == KEY
    opened.close()


@pytest.mark.parametrize("url", ["nonsense", "tcp://", "http://127.0.0.1:1"])
def test_invalid_addresses_are_refused(world: str, url: str) -> None:
    for text in (url, f"{url}/{bytes(32).hex()}"):
        with pytest.raises(WorldError, match="no address of a directory server"):
            RemoteDirectory(world, text, KEY)
    with pytest.raises(WorldError, match=url):
        DirectoryServer(world, KEY, url)


def test_the_command(world: str) -> None:
    command = [sys.executable, "-m", "sfm_kernel.directory", "--bind", "tcp://127.0.0.1:0"]
    command += ["--world", world]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        lines = [running.stdout.readline().split() for _ in range(3)]
        printed = dict(line[1].split("=", 1) for line in lines)
        key = bytes.fromhex(printed["SFM_KEY"])
        with RemoteDirectory(printed["SFM_WORLD"], printed["SFM_DIRECTORY"], key) as opened:
            assert opened.members() == []
        running.terminate()
        assert running.wait() == 0
    failed = subprocess.run([*command[:-1], "/"], capture_output=True, text=True)
    assert failed.returncode == 1 and "world name '/'" in failed.stderr
