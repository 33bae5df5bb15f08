"""The directory server's carrier between relays and observers, without a real relay."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from sfm_kernel._native import LARGEST_FRAME
from sfm_kernel.directory import Client, DirectoryServer, carrier
from sfm_kernel.directory.carrier import Carrier
from sfm_kernel.errors import WorldAccess, WorldError
from tests.unit.states import RELAY, UID

pytestmark = pytest.mark.zmq

KEY = bytes(range(32))
OTHER = "2" * 32
SNAPSHOT = b"bytes that the server does not read"


class Played:
    """``Carrier`` with a relay and an observer, and a clock that tests set."""

    def __init__(self) -> None:
        self.now = 100.0
        self.carrier = Carrier(lambda: self.now)
        self.answers: list[dict[str, Any]] = []
        self.orders: list[bytes] = []

    def ask(
        self, body: bytes = b"", relay: str = RELAY, owner: str = "client", **changes: Any
    ) -> None:
        """Ask as the relay; the answer, now or later, goes to ``answers`` and ``orders``."""
        asked = {"relay": relay, "snapshot": 0, "request": -1, "clock": None, "hold": 1}
        asked |= {"watched": False, "uids": [UID]}
        self.carrier.serve_relay(asked | changes, body, self._reply, owner)

    def _reply(self, answer: dict[str, Any], bodies: Sequence[bytes]) -> None:
        self.answers.append(answer)
        self.orders = list(bodies)

    def show(self, fresh: bool = False, **known: int) -> tuple[list[list[Any]], list[bytes], int]:
        """Ask as the observer."""
        asked = {"known": known, "fresh": fresh}
        answer, bodies = self.carrier.serve_observer(asked, frozenset())
        return answer["relays"], bodies, answer["request"]


@pytest.fixture
def played() -> Played:
    return Played()


def test_an_answer_is_held_until_there_is_news(played: Played) -> None:
    played.ask()
    assert not played.answers and played.carrier.next() == 1.0 and not played.carrier.release()
    played.now += 1
    assert played.carrier.release() and played.carrier.next() is None
    assert played.answers.pop() == {"watched": False, "request": 0, "snapshot": 0, "orders": []}
    played.ask()
    played.show()
    assert played.answers.pop()["watched"]
    played.ask(watched=True, request=0, hold=0.1)
    played.show()
    assert not played.answers  # it knows that it is watched
    played.show(fresh=True)
    assert played.answers.pop()["request"] == 1
    played.now += carrier.WATCHED_SECONDS
    played.ask(watched=True, request=1, hold=0)
    assert not played.answers.pop()["watched"]


def test_a_snapshot_read_before_a_request_is_not_fresh(played: Played) -> None:
    *_, request = played.show(fresh=True)
    played.ask(SNAPSHOT, snapshot=1, request=request - 1, clock=5.0, watched=True)
    (row,), bodies, _ = played.show()
    assert row == [RELAY, 1, request - 1, 5.0, 0.0, False, True] and bodies == [SNAPSHOT]
    played.ask(snapshot=1, request=request, clock=6.0, watched=True)
    played.now += 0.5
    (row,), bodies, _ = played.show(**{RELAY: 1})
    assert row == [RELAY, 1, request, 6.0, 0.5, False, False] and bodies == []
    played.ask(snapshot=1, request=request + 1, clock=None, watched=True)  # it has not read
    played.ask(snapshot=2, request=request + 1, clock=7.0, watched=True)  # the server lacks it
    assert played.show()[0][0][2] == request
    played.ask(snapshot=1, request=request + 100, clock=7.0, watched=True)  # not requested
    assert played.show()[0][0][2] == request


def test_silent_relays_are_shown_until_their_processes_have_other_relays(played: Played) -> None:
    played.ask(SNAPSHOT, snapshot=1)
    played.now += carrier.SILENT_SECONDS + 0.1
    asked = {"known": {}, "fresh": False}
    answer, bodies = played.carrier.serve_observer(asked, frozenset([UID]))
    assert answer["relays"][0][5] and len(bodies) == 1
    played.ask(SNAPSHOT, relay=OTHER, snapshot=1)  # one that has taken its place
    assert [row[0] for row in played.show()[0]] == [OTHER]
    played.now += carrier.SILENT_SECONDS + 0.1
    assert played.show()[0] == []
    played.ask(SNAPSHOT, snapshot=1)
    played.ask(bye=True)
    assert played.show()[0] == [] and played.answers[-1] == {}


def test_the_answer_to_an_order_comes_back(played: Played) -> None:
    played.ask(SNAPSHOT, snapshot=1)
    replies: list[tuple[Any, ...]] = []

    def reply(*answer: Any) -> None:
        replies.append(answer)

    played.carrier.order(UID, b"an order", reply)
    (order,) = played.answers.pop()["orders"]
    assert played.orders == [b"an order"] and not replies
    with pytest.raises(WorldAccess, match="another client's"):
        played.carrier.answer(order, b"forged", "another")
    played.carrier.answer(order, b"done", "client")
    assert replies.pop() == ({}, [b"done"])
    played.carrier.answer(order, b"done", "client")  # once more
    played.carrier.answer(99, b"done", "client")  # an unknown order
    played.carrier.order(UID, b"an order", reply)
    played.now += carrier.ORDER_SECONDS
    assert played.carrier.next() == 0 and played.carrier.release()
    ((answer, bodies),) = replies
    assert answer["error"] == "WorldError" and "is silent" in answer["message"] and not bodies


def test_nobody_speaks_for_another_clients_relay(played: Played) -> None:
    played.ask(SNAPSHOT, snapshot=1)
    for forged in ({"bye": True}, {"body": b"another", "snapshot": 2}):
        with pytest.raises(WorldAccess, match="another client's"):
            played.ask(owner="another", **forged)
    assert played.show()[1] == [SNAPSHOT]


def test_an_order_goes_to_the_relay_that_was_heard_last(played: Played) -> None:
    """The other one was killed a moment ago."""
    played.ask(SNAPSHOT, snapshot=1, relay=RELAY)
    played.now += 1.0
    played.ask(SNAPSHOT, snapshot=1, relay=OTHER)
    played.answers.clear()
    played.carrier.order(UID, b"an order", lambda *_: None)
    (answer,) = played.answers
    assert answer["orders"] and played.carrier._relays[OTHER].held is None


def test_orders_that_cannot_be_given(played: Played) -> None:
    with pytest.raises(WorldError, match="no relay sees"):
        played.carrier.order(UID, b"", played._reply)
    played.ask(SNAPSHOT, snapshot=1)
    for uid, body in (([], b""), ("x", b""), (UID, bytes(carrier.LARGEST_ORDER + 1))):
        with pytest.raises(ValueError, match=r"uid|order"):
            played.carrier.order(uid, body, played._reply)
    with pytest.raises(ValueError, match="answer"):
        played.carrier.answer(1, bytes(carrier.LARGEST_ORDER + 1), "client")
    for _ in range(1 + carrier.MOST_ORDERS):  # the first one goes with the answer that was held
        played.carrier.order(UID, b"", played._reply)
    with pytest.raises(WorldError, match="keep up"):
        played.carrier.order(UID, b"", played._reply)


def test_limits_of_relays_and_snapshots(played: Played) -> None:
    for number in range(carrier.MOST_SNAPSHOTS):
        played.ask(SNAPSHOT, snapshot=number)
    with pytest.raises(WorldError, match="in a second"):
        played.ask(SNAPSHOT, snapshot=99)
    played.now += 1
    played.ask(SNAPSHOT, snapshot=99)
    with pytest.raises(ValueError, match="at most"):
        played.ask(bytes(carrier.LARGEST_SNAPSHOT + 1), snapshot=100)
    for number in range(carrier.MOST_RELAYS - 1):
        played.ask(relay=f"{number:032x}")
    with pytest.raises(WorldError, match="its limit"):
        played.ask(relay="f" * 32)
    played.now += carrier.SILENT_SECONDS
    played.ask(relay="f" * 32)


BAD: list[dict[str, Any]] = [
    {"ask": "relay"},
    {"ask": "snapshots"},
    {"ask": "order"},
    {"ask": "answer"},
    {"ask": "answer", "order": []},
    {"ask": "snapshots", "known": 7, "fresh": True},
    {"ask": "order", "uid": {}},
]
COMPLETE = {"ask": "relay", "relay": RELAY, "snapshot": 1, "request": 1, "clock": 1.0, "hold": 0}
COMPLETE |= {"watched": True, "uids": [UID], "dead": []}
BAD += [
    COMPLETE | {field: value}
    for field in COMPLETE
    for value in (float("inf"), float("nan"), [[]], "x")
    if field != "watched"
]


def test_the_server_outlives_nonsense(world: str) -> None:
    with DirectoryServer(world, KEY, "tcp://127.0.0.1:0") as server:
        client = Client(world, server.url, KEY)
        try:
            for bad in BAD:
                ask = bad["ask"] if isinstance(bad["ask"], str) else "x"
                rest = {field: value for field, value in bad.items() if field != "ask"}
                with pytest.raises(WorldError):
                    client.exchange(ask, b"x", **rest)
            rest = {field: value for field, value in COMPLETE.items() if field != "ask"}
            large = random.randbytes(carrier.LARGEST_SNAPSHOT)  # in many pieces
            for snapshot in (SNAPSHOT, large):
                assert client.exchange("relay", snapshot, **rest)[0]["snapshot"] == 1
                assert client.exchange("snapshots", known={}, fresh=False)[1] == [snapshot]
            with pytest.raises(WorldError, match="has at most"):
                client.exchange("relay", large + b"x", **rest)
            assert client.ask("hello", more="é" * LARGEST_FRAME)["world"] == world
        finally:
            client.close()
