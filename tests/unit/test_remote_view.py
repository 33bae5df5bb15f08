"""An observer's view of other machines, and interrupts."""

from __future__ import annotations

import os
import signal
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sfm_kernel
from sfm_kernel._native import UNSETTLED
from sfm_kernel.directory import LocalDirectory, Member, carrier
from sfm_kernel.directory.signals import interrupt
from sfm_kernel.errors import WorldError, WorldGone
from sfm_kernel.observe.snapshot import snapshot
from sfm_kernel.observe.states import SCHEMA, State
from sfm_kernel.observe.states import check as check_state
from sfm_kernel.relay import view
from sfm_kernel.relay.view import RemoteView
from sfm_kernel.relay.wire import pack
from tests.observe.pictures import check
from tests.unit.states import RELAY, UID, state

pytestmark = pytest.mark.zmq


class FakeServer:
    """Answers an observer with the content of ``rows`` and ``members``."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []
        self.bodies: list[bytes] = []
        self.members: list[Member] = []
        self.dead: list[str] = []
        self.request = 0
        self.gone = False

    def exchange(
        self, kind: str, body: bytes = b"", limit: float = 1.0, **asked: Any
    ) -> tuple[dict[str, Any], list[bytes]]:
        assert kind == "snapshots"
        if self.gone:
            raise WorldGone("gone")
        self.request += asked["fresh"]
        members = [member.to_json() for member in self.members]
        answer = {"request": self.request, "version": 1, "members": members, "dead": self.dead}
        answer["unreachable"] = {}
        return answer | {"relays": self.rows}, self.bodies

    def show(
        self, *read: State, request: int = 0, silent: bool = False, clock: float = 0.0
    ) -> None:
        number = self.rows[0][1] + 1 if self.rows else 1
        self.rows = [[RELAY, number, request, clock or time.time(), 0.0, silent, True]]
        self.bodies = [pack(read)]


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


Show = Callable[..., dict[str, Any]]


@pytest.fixture
def seen(server: FakeServer) -> Show:
    observer = RemoteView(server)

    def show(fresh: bool = False) -> dict[str, Any]:
        (process,) = observer.states(fresh)
        return process

    return show


def test_only_snapshots_that_were_read_after_the_request_prove_anything(
    server: FakeServer, seen: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "FRESH_SECONDS", 0.01)
    server.show(state())
    assert seen()["examined"] == 0 and seen(True)["examined"] == UNSETTLED
    server.show(state(), request=server.request + 1)
    assert seen(True)["examined"] == 0
    for activity in ("idle", "blocked in cell"):
        server.show(state(state=activity), request=server.request)
        assert seen()["state"] == activity and seen(True)["state"] == "running"
    server.members = [Member(UID, 0, 1, "B", 7, "there", "", "")]
    server.show(state(), request=server.request + 9, silent=True)
    assert seen()["examined"] == UNSETTLED and seen()["alive"]
    server.dead = [UID]
    assert not seen()["alive"]


def test_the_last_snapshots_are_shown_when_the_server_has_ended(
    server: FakeServer, seen: Show
) -> None:
    server.members = [Member(UID, 0, 1, "B", 7, "there", "", "")]
    server.show(state(), request=9)
    assert seen(True)["examined"] == 0
    server.gone = True
    for fresh in (False, True):
        assert seen(fresh)["examined"] == UNSETTLED and seen(fresh)["alive"]


def test_times_are_of_this_machines_clock(server: FakeServer, seen: Show) -> None:
    relay_time = 5000.0  # when the relay read it, by its clock
    times = {"since": relay_time - 60, "looked": relay_time - 1, "until": relay_time + 30}
    server.show(state(**times), request=9, clock=relay_time)
    for fresh in (False, True):
        b = seen(fresh)
        assert b["clock"] == pytest.approx(time.time() - relay_time, abs=30)
        assert 59 < time.time() - b["since"] < 90 and 29 < b["until"] - b["since"] - 60 < 31
        assert 0 < time.time() - b["looked"] < 30
    # A wait that had just begun when the relay read it is young, however late its state arrives.
    server.rows[0][4] = 0.9
    server.show(state(since=relay_time), request=9, clock=relay_time)
    assert time.time() - seen(True)["since"] < 0.2


def test_a_member_that_nobody_shows_computes(
    server: FakeServer, seen: Show, tmp_path: Path
) -> None:
    server.members = [Member(UID, 0, 1, "B", 7, "there", "", "", {"engine_id": 3})]
    b = seen()
    assert b["state"] == "running" and b["alive"] and b["since"] == seen()["since"]
    (shown,) = snapshot(tmp_path, [b])["processes"]
    assert (shown["name"], shown["kind"]) == ("B", "engine")
    assert (shown["host"], shown["here"]) == ("there", False)
    server.dead = [UID]
    assert not seen()["alive"]


def test_what_is_old_says_how_old(
    server: FakeServer, seen: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.members = [Member(UID, 0, 1, "B", 7, "there", "", "")]
    observer = RemoteView(server)
    assert seen()["unseen"] is None, "it has only joined"
    server.show(state(state="idle"), request=9)
    now = observer.pulse()
    assert seen()["unseen"] is None
    server.rows[0][4] = carrier.SILENT_SECONDS + 60
    server.rows[0][3] -= 1.0  # the relay's clock when it read it
    assert observer.pulse() != now
    old = seen()
    assert 61 < time.time() - old["unseen"] < 180
    now = observer.pulse()
    assert (seen()["unseen"], observer.pulse()) == (old["unseen"], now), "the same, not about it"
    assert seen(True)["state"] == "idle", "what it is shown as proves nothing anyway"
    server.rows, server.bodies = [], []
    monkeypatch.setattr(view, "SILENT_SECONDS", 0.0)
    assert seen()["unseen"], "nobody shows it"


def test_it_adds_what_the_schema_says(server: FakeServer, seen: Show) -> None:
    fields = {name: set(SCHEMA["$defs"][name]["properties"]) for name in ("segment", "remote")}
    server.members = [Member(UID, 0, 1, "B", 7, "there", "", "")]
    unseen = seen()
    server.show(state(), request=9)
    for b in (unseen, seen(), seen(True)):
        assert set(b) == fields["segment"] | fields["remote"], "see schema.json, remote"
        check_state({name: value for name, value in b.items() if name in fields["segment"]})
        check("remote", {name: value for name, value in b.items() if name in fields["remote"]})


def test_a_world_of_one_machine_has_nobody_on_another(world: str) -> None:
    with LocalDirectory(world) as directory:
        here = RemoteView.of(directory)
        assert (here.states(), here.pulse(), here.judge("prepare", UID, 1, "{}")) == ([], 0, False)
        with pytest.raises(WorldError, match="only one"):
            here.interrupt(UID)


def test_a_snapshot_that_is_not_valid_shows_nothing(server: FakeServer, seen: Show) -> None:
    server.members = [Member(UID, 0, 1, "B", 7, "there", "", "")]
    server.show(state(), request=9)
    assert seen()["state"] == "blocked in recv"
    for bad in (b"x", pack([state()])[:-1], zlib.compress(b"[1]")):
        server.show(request=9)
        server.bodies = [bad]
        assert seen()["state"] == "running" and seen(True)["examined"] == UNSETTLED


# ---- interrupting ----------------------------------------------------------------------------


def test_no_stranger_is_interrupted(world: str, tmp_path: Path) -> None:
    with sfm_kernel.join(world, "A") as a:
        segment = os.path.join(a.folder, f"{a.uid}.seg")
        got: list[int] = []
        before = signal.signal(signal.SIGINT, lambda number, _: got.append(number))
        try:
            assert interrupt(segment, os.getpid()) == ""
            while not got:
                time.sleep(0.001)
        finally:
            signal.signal(signal.SIGINT, before)
        assert "another container" in interrupt(segment, os.getppid())
        for none in (None, (1 << 22) - 1, 1 << 31, -1):
            assert "cannot be reached" in interrupt(segment, none)
    assert "ended" in interrupt(segment, os.getpid())
