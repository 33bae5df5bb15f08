"""Members that are put out of a world, and another key for it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import zmq

import sfm_kernel
from sfm_kernel import PeerLost
from sfm_kernel.directory import Client, DirectoryServer, RemoteDirectory
from sfm_kernel.directory.gateways import GatewayKey
from sfm_kernel.directory.zmq import admission
from sfm_kernel.directory.zmq.sockets import has_mail
from sfm_kernel.errors import WorldAccess, WorldError
from sfm_kernel.observe import snapshot
from tests.dealers import connect, connect_newcomer
from tests.unit.machines import KEY, MakeMachine
from tests.waiting import wait_until

pytestmark = pytest.mark.zmq


def test_the_others_see_that_it_has_left_and_why(machine: MakeMachine) -> None:
    here, there = machine(), machine()
    here.join(name="A")
    gone: list[str] = []
    here.directory.watch(lambda changes: gone.extend(changes.departed))
    member = there.join(name="B")
    wait_until(lambda: here.directory.alive(member))
    here.directory.client.ask("expel", name="B")
    wait_until(lambda: gone == [member.uid])
    assert [other.name for other in here.directory.members()] == ["A"]
    assert [other.uid for other in here.directory.departed()] == [member.uid]
    assert not here.directory.alive(member)
    assert here.directory.why_departed(member) == "(it was put out of the world)"


def test_it_learns_that_it_is_out(machine: MakeMachine, capsys: pytest.CaptureFixture[str]) -> None:
    here, there = machine(), machine()
    a, b = here.join(name="A"), there.join(name="B")
    here.directory.client.ask("expel", name=1)  # its rank
    wait_until(lambda: not there.directory.alive(a))
    assert "was put out of world" in capsys.readouterr().err
    for read in (there.directory.members, lambda: there.join(name="C")):
        with pytest.raises(WorldAccess, match="put out of"):
            read()
    assert there.directory.why_departed(a) == "(this process was put out of the world)"
    there.directory.leave(b)  # harmless


def test_its_key_is_never_admitted_again(
    machine: MakeMachine, server: DirectoryServer, dealer: zmq.Socket[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(admission, "FAREWELL_SECONDS", 0.1)
    here, there = machine(), machine()
    here.join(name="A")
    public = there.join(name="B").public
    breaks = there.directory.client.native.breaks
    here.directory.client.ask("expel", name="B")
    wait_until(lambda: there.directory.client.native.breaks > breaks)  # it is hung up on
    wait_until(lambda: there.directory.client.native.refused)
    connect_newcomer(dealer, server.url, KEY)
    dealer.send(json.dumps({"number": 1, "ask": "hello", "public": public}).encode())
    assert "put out" in json.loads(dealer.recv())["message"]
    with zmq.Context() as context, context.socket(zmq.DEALER) as again:
        again.linger = 0
        monitor = again.get_monitor_socket(zmq.Event.HANDSHAKE_FAILED_AUTH)
        connect(again, server.url, there.directory.pair)
        assert monitor.poll(20_000)
        monitor.close()
    assert machine().join(name="B").name == "B"  # another process may have the name


def test_who_has_only_just_joined_is_hung_up_on_as_well(
    machine: MakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "FAREWELL_SECONDS", 0.1)
    here, there = machine(), machine()
    here.join(name="A")
    serve_one = DirectoryServer._serve_one

    def serve_one_and_wait(
        self: DirectoryServer, client: bytes, user: str, request: bytes, body: bytes
    ) -> None:
        serve_one(self, client, user, request, body)
        if b'"join"' in request:  # the next request comes before the server's thread rests
            wait_until(lambda: has_mail(self._router))

    monkeypatch.setattr(DirectoryServer, "_serve_one", serve_one_and_wait)
    there.join(name="B")
    here.directory.client.ask("expel", name="B")
    wait_until(lambda: there.directory.client.native.refused)


def test_only_processes_that_are_there_are_put_out(machine: MakeMachine) -> None:
    here, there = machine(), machine()
    here.join(name="A")
    there.join(name="B")
    with pytest.raises(WorldError, match=r"called C.* Known: A, B"):
        here.directory.client.ask("expel", name="C")
    with pytest.raises(WorldError, match="does not put itself out"):
        here.directory.client.ask("expel", name="A")
    assert len(here.directory.members()) == 2


def test_a_gateway_puts_nobody_out(machine: MakeMachine, server: DirectoryServer) -> None:
    machine().join(name="A")
    with closing(Client(server.world, server.url, GatewayKey.of_world(KEY))) as gateway:
        for request in ({"kind": "expel", "name": "A"}, {"kind": "rekey", "key": "00" * 32}):
            with pytest.raises(WorldAccess, match="may not ask"):
                gateway.ask(**request)


def test_endpoints_say_who_was_put_out(
    server: DirectoryServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFM_TRANSPORT", "shm,zmq")
    ends = []
    for name in "AB":
        monkeypatch.setenv("SFM_DIR", str(tmp_path / name))
        ends.append(sfm_kernel.join(server.world, name, directory=server.url, key=KEY))
    a, b = ends
    with a, b:
        a.send(dest="B", n=1)
        b.recv(src="A")
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(b.recv, src="A")
            wait_until(lambda: snapshot(b)["processes"][0]["wait"])
            a.directory.client.exchange("expel", name="B")
            with pytest.raises(PeerLost, match=r"'A' has ended while .*this process was put out"):
                waiting.result()
        with pytest.raises(PeerLost, match=r"'B' has ended while .* was put out of the world"):
            a.recv(src="B")
        with contextlib.suppress(PeerLost):
            while True:  # what the link has not noticed yet is sent
                a.send(dest="B", n=2)
        with pytest.raises(PeerLost, match=r"'B' has ended .* was put out of the world"):
            a.send(dest="B", n=3)
        with pytest.raises(WorldAccess, match="this process was put out"):
            b.recv(src="A")


# ---- another key -----------------------------------------------------------------------------


def test_newcomers_need_the_new_key_and_who_is_there_stays(
    machine: MakeMachine, server: DirectoryServer
) -> None:
    here, there = machine(), machine()
    member = here.join(name="A")
    there.join(name="B")
    key = bytes(reversed(KEY))
    here.directory.client.ask("rekey", key=key.hex())
    with pytest.raises(WorldAccess, match="refuses the key"):
        RemoteDirectory(server.world, server.url, KEY)
    with pytest.raises(WorldAccess, match="refuses the key"):
        Client(server.world, server.url, GatewayKey.of_world(KEY))
    with RemoteDirectory(server.world, server.url, key) as newcomer:
        assert len(newcomer.members()) == 2
    assert there.directory.members()[0] == member and there.directory.alive(member)
    here.directory.leave(member)
    assert [other.name for other in there.directory.members()] == ["B"]


def test_a_short_key_is_refused(machine: MakeMachine, server: DirectoryServer) -> None:
    here = machine().directory
    for key, error in (("00", WorldAccess), ("no hex", WorldError)):
        with pytest.raises(error):
            here.client.ask("rekey", key=key)
    RemoteDirectory(server.world, server.url, KEY).close()


# ---- the commands ----------------------------------------------------------------------------


def test_the_commands(machine: MakeMachine, server: DirectoryServer) -> None:
    here, there = machine(), machine()
    here.join(name="A")
    there.join(name="B")
    about = {"SFM_WORLD": server.world, "SFM_DIRECTORY": server.url, "SFM_KEY": KEY.hex()}

    def command(*words: str, **changes: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "sfm_kernel.directory", *words],
            env=os.environ | about | changes, capture_output=True, text=True,
        )  # fmt: skip
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout + done.stderr

    assert command("expel", "B") == (0, f"process B was put out of world {server.world!r}\n")
    assert [member.name for member in here.directory.members()] == ["A"]
    status, said = command("expel", "B")
    assert status == 1 and "Known: A" in said
    status, said = command("rekey", SFM_KEY="")
    assert status == 1 and "SFM_KEY is not set" in said
    status, said = command("rekey")
    printed = dict(line.removeprefix("export ").split("=") for line in said.splitlines())
    assert status == 0 and printed.keys() == {"SFM_KEY", "SFM_GATEWAY_KEY"}
    key = bytes.fromhex(printed["SFM_KEY"])
    assert printed["SFM_GATEWAY_KEY"] == str(GatewayKey.of_world(key))
    status, said = command("expel", "A")
    assert status == 1 and "refuses the key" in said
    RemoteDirectory(server.world, server.url, key).close()
